"""The policy of a job: the user's annotations on its MPIJob, parsed.

The webhook (`webhook.rules.validate`) rejects bad values that an edit brings. A value that missed
the webhook is a `Problem`, and its default holds.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from mpijob_elastic import names
from mpijob_elastic.model import parking, phrases, sizes
from mpijob_elastic.model.bounds import MOST_WORKERS
from mpijob_elastic.model.sizes import AllowedSizes

DEFAULT_DRAIN_TIMEOUT = 60.0
LONGEST_DRAIN_TIMEOUT = 24 * 3600.0
# The option is --host-discovery-script, which may be shortened to this.
_DISCOVERY_MARKS = (names.KEY_DISCOVER_HOSTS, "--host-d", names.ELASTIC_PATH)


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Annotations of an MPIJob; None if absent and without a default. Times in seconds."""

    enabled: bool | None = None
    min_replicas: int | None = None
    max_replicas: int | None = None
    drain_timeout: float = DEFAULT_DRAIN_TIMEOUT
    replace_failed_workers: bool | None = None
    #: The job must wait.
    suspend: bool | None = None
    #: The size 0 suspends the job; otherwise there is no such size.
    zero_suspends: bool | None = None
    #: The sizes that the job may have, within its bounds.
    sizes: AllowedSizes | None = None
    #: What the operator drops of the pod templates is put back.
    put_back: bool | None = None
    #: The launcher gets the variables by which any mpirun finds the workers.
    mpi_variables: bool | None = None
    #: The indices of the workers that the job does without.
    parked: frozenset[int] | None = None


@dataclass(frozen=True, kw_only=True)
class Problem:
    """An unusable annotation."""

    #: Path of the field.
    field: str
    value: str
    #: The allowed values, in words.
    allowed: str

    def __str__(self) -> str:
        return f'{self.field}: "{self.value}" is not allowed; use {self.allowed}'


class Annotation(NamedTuple):
    """An annotation that users write."""

    key: str
    #: Parses a value; returns None for a value that cannot be used.
    convert: Callable[[str], object]
    #: The allowed values, in words.
    allowed: str


def parse(annotations: Mapping[str, str]) -> tuple[Policy, list[Problem]]:
    """Return the policy, and a problem for each unusable value, whose default holds."""
    values, problems = read(annotations, _ANNOTATIONS)
    policy = Policy(**values)
    if policy.min_replicas and policy.max_replicas and policy.min_replicas > policy.max_replicas:
        allowed = f"a number not above {names.MAX_REPLICAS} ({policy.max_replicas})"
        problems.append(problem(names.MIN_REPLICAS, annotations[names.MIN_REPLICAS], allowed))
        policy = replace(policy, min_replicas=None, max_replicas=None)
    if policy.sizes:
        bounded = _bounded(policy, policy.sizes)
        if bounded is None:
            problems.append(_out_of_bounds(policy, annotations[names.SIZES]))
        policy = replace(policy, sizes=bounded)
    return policy, problems


def _bounded(policy: Policy, allowed: AllowedSizes) -> AllowedSizes | None:
    least, most = policy.min_replicas or 1, policy.max_replicas or MOST_WORKERS
    return sizes.within(allowed, least=least, most=most)


def _out_of_bounds(policy: Policy, text: str) -> Problem:
    least, most = policy.min_replicas or 1, policy.max_replicas or MOST_WORKERS
    allowed = (
        f"sizes, at least one of them between {names.MIN_REPLICAS} ({least}) and "
        f"{names.MAX_REPLICAS} ({most})"
    )
    return problem(names.SIZES, text, allowed)


def read(
    annotations: Mapping[str, str], known: Mapping[str, Annotation]
) -> tuple[dict[str, Any], list[Problem]]:
    """Return the usable values by field, and a problem for each unusable value."""
    values: dict[str, Any] = {}
    problems = []
    for field, (key, convert, allowed) in known.items():
        text = annotations.get(key)
        value = None if text is None else convert(text)
        if value is not None:
            values[field] = value
        elif text is not None:
            problems.append(problem(key, text, allowed))
    return values, problems


def startup_workers(policy: Policy, *, np_workers: int) -> int | None:
    """Return the number of workers that a launcher waits for at its start.

    That is min-replicas, but at least enough for -np; None for all workers.
    """
    return None if policy.min_replicas is None else max(policy.min_replicas, np_workers)


def least_workers(policy: Policy, replicas: int, *, elastic: bool) -> int:
    """Return the number of workers that a job begins with, and keeps at least."""
    return min(policy.min_replicas or replicas, replicas) if elastic else replicas


#: What is wrong with the script of Arena's image.
ARENA_SCRIPT = (
    f"{names.ARENA_DISCOVER_HOSTS_PATH} of Arena's image prints another operator's list; write "
    f"{names.DISCOVER_HOSTS_PATH}"
)


def names_discovery(texts: Iterable[str]) -> bool:
    """Return True if a text names discover_hosts.sh, horovodrun's option for it, or elastic.sh."""
    return any(mark in text for text in texts for mark in _DISCOVERY_MARKS)


def names_elastic(texts: Iterable[str]) -> bool:
    """Return True if a text names elastic.sh, which is mounted only then."""
    return any(names.ELASTIC_PATH in text for text in texts)


def problem(key: str, value: str, allowed: str) -> Problem:
    """Return the problem with an annotation."""
    return Problem(field=f"metadata.annotations[{key}]", value=value[:64], allowed=allowed)


def boolean(text: str) -> bool | None:
    """Return the value of "true" or "false"."""
    return {"true": True, "false": False}.get(text)


def _count(text: str) -> int | None:
    plain = text.isascii() and text.isdigit() and len(text) <= len(str(MOST_WORKERS))
    return int(text) if plain and 1 <= int(text) <= MOST_WORKERS else None


def _drain_timeout(text: str) -> float | None:
    seconds = phrases.parse_duration(text)
    return seconds if seconds is not None and seconds <= LONGEST_DRAIN_TIMEOUT else None


def _zero_suspends(text: str) -> bool | None:
    return True if text == "suspend" else None


_BOOLEAN = (boolean, '"true" or "false"')
_COUNT = (_count, f"a whole number from 1 to {MOST_WORKERS}")
_ANNOTATIONS: Mapping[str, Annotation] = {
    "enabled": Annotation(names.ENABLED, *_BOOLEAN),
    "min_replicas": Annotation(names.MIN_REPLICAS, *_COUNT),
    "max_replicas": Annotation(names.MAX_REPLICAS, *_COUNT),
    "drain_timeout": Annotation(
        names.DRAIN_TIMEOUT, _drain_timeout, 'a duration from 0s to 24h, such as "90s" or "2m30s"'
    ),
    "replace_failed_workers": Annotation(names.REPLACE_FAILED_WORKERS, *_BOOLEAN),
    "suspend": Annotation(names.SUSPEND, *_BOOLEAN),
    "put_back": Annotation(names.PUT_BACK, *_BOOLEAN),
    "mpi_variables": Annotation(names.MPI_VARIABLES, *_BOOLEAN),
    "zero_suspends": Annotation(names.SCALE_TO_ZERO, _zero_suspends, '"suspend"'),
    "sizes": Annotation(names.SIZES, sizes.parse, sizes.ALLOWED),
    "parked": Annotation(names.PARKED, parking.parse, parking.ALLOWED),
}
# The annotations of the core that users write.
KEYS = frozenset(each.key for each in _ANNOTATIONS.values())
