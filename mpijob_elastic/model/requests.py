"""The resources that pods request, added up as the scheduler adds them.

https://kubernetes.io/docs/concepts/workloads/pods/init-containers/#resource-sharing-within-containers
https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from decimal import Decimal
from itertools import islice
from typing import Any

# So many resources of a container or a quota are read, and so many characters of their names: their
# author may be anybody.
MOST = 32
_LONGEST_NAME = 253
# By resource, in billionths of its unit: the smallest that the API server knows.
Amounts = Counter[str]
UNIT = 10**9
# Long numbers take long to read, and are no amounts that a node has.
_QUANTITY = re.compile(r"([+-]?[0-9.]{1,32})(?:[eE]([+-]?[0-9]{1,2})|([numkMGTPE]|[KMGTPE]i)?)")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {f"{prefix}i": 1024**power for power, prefix in enumerate("KMGTPE", 1)}


def of_pod(spec: Mapping[str, Any]) -> Amounts:
    """Return the requests of a pod, from its spec as the API server has stored it.

    Raises ValueError if a text is no quantity.
    """
    beside, most = Amounts(), Amounts()  # sidecars so far; the most while it starts
    for container in spec.get("initContainers") or ():
        asked = _asked(container)
        if container.get("restartPolicy") == "Always":
            beside += asked
            most |= beside
        else:
            most |= beside + asked
    running = sum(map(_asked, spec.get("containers") or ()), beside)
    # Requests of the pod itself count instead of those of its containers.
    return Amounts({**(running | most), **_asked(spec)}) + _amounts(spec.get("overhead") or {})


def total(parts: Iterable[tuple[Amounts, int]]) -> dict[str, str]:
    """Return the sum of amounts, each times its count, as quantities (see `rendered`)."""
    found = Amounts()
    for amounts, count in parts:
        found.update({name: amount * count for name, amount in amounts.items()})
    return {name: rendered(amount) for name, amount in sorted(found.items())}


def readable(quantities: Mapping[str, object] | None) -> Amounts:
    """Return the amounts of the first MOST resources, without those that are no quantities."""
    found = Amounts()
    for name, text in islice((quantities or {}).items(), MOST):
        with suppress(ValueError, ArithmeticError):  # the latter for 1.2.3
            found[name[:_LONGEST_NAME]] = _parsed(str(text))
    return found


def quota_counts(*, limits: Mapping[str, int], given: Mapping[str, int]) -> Amounts:
    """Return what limits and requests count for in a ResourceQuota, by the quota's keys.

    A limit without a request counts as the request, too. `cpu` is another name of `requests.cpu`.
    """
    asked = {**limits, **given}
    found = Amounts()
    for prefix, amounts in (("limits.", limits), ("requests.", asked), ("", asked)):
        found.update({f"{prefix}{name}": amount for name, amount in amounts.items()})
    return found


def rendered(amount: int) -> str:
    """Return an amount as a quantity: a whole number, or else rounded up to thousandths."""
    whole, rest = divmod(amount, UNIT)
    return f"{-(-amount * 1000 // UNIT)}m" if rest else str(whole)


def _asked(where: Mapping[str, Any]) -> Amounts:
    return _amounts((where.get("resources") or {}).get("requests") or {})


def _amounts(quantities: Mapping[str, str]) -> Amounts:
    return Amounts({name: _parsed(text) for name, text in quantities.items()})


def _parsed(text: str) -> int:
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise ValueError(f"{text} is no quantity")
    number, exponent, unit = match.groups()
    if unit in _BINARY:
        return int(Decimal(number) * _BINARY[unit] * UNIT)
    return int(Decimal(number).scaleb(int(exponent) if exponent else _DECIMAL[unit or ""]) * UNIT)
