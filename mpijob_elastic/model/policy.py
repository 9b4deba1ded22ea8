"""The policy of a job: the user's annotations on its MPIJob, parsed.

Admission rejects bad values. A value that missed admission is a `Problem`, and its default holds.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mpijob_elastic import names
from mpijob_elastic.model import autoscale, durations
from mpijob_elastic.model.autoscale import Autoscale
from mpijob_elastic.model.bounds import MOST_WORKERS

DEFAULT_DRAIN_TIMEOUT = 60.0
LONGEST_DRAIN_TIMEOUT = 24 * 3600.0
SHORTEST_SCALE_TIMEOUT = 1.0
LONGEST_SCALE_TIMEOUT = 24 * 3600.0
# The values of the annotation gang.
GANGS = (names.VOLCANO, names.COSCHEDULING, names.KOORDINATOR, names.KUBERNETES)
_DISCOVERY_MARKS = (names.KEY_DISCOVER_HOSTS, "--host-discovery-script")


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Annotations of an MPIJob; None if absent and without a default. Times in seconds."""

    enabled: bool | None = None
    min_replicas: int | None = None
    max_replicas: int | None = None
    drain_timeout: float = DEFAULT_DRAIN_TIMEOUT
    replace_failed_workers: bool | None = None
    scale_timeout: float | None = None
    run_policy: bool = False
    suspend: bool = False
    gang: str | None = None
    autoscale: Autoscale | None = None

    @property
    def fill(self) -> bool:
        """True if the job takes what lies idle."""
        return self.autoscale is not None and self.autoscale.fill


@dataclass(frozen=True, kw_only=True)
class Problem:
    """An unusable annotation: the field's path, its value, and the allowed values."""

    field: str
    value: str
    allowed: str

    def __str__(self) -> str:
        return f'{self.field}: "{self.value}" is not allowed; use {self.allowed}'


def parse(annotations: Mapping[str, str]) -> tuple[Policy, list[Problem]]:
    """Return the policy, with defaults for unusable values, and a problem for each of these."""
    values: dict[str, Any] = {}
    problems = []
    for field, (key, convert, allowed) in _ANNOTATIONS.items():
        text = annotations.get(key)
        value = None if text is None else convert(text)
        if value is not None:
            values[field] = value
        elif text is not None:
            problems.append(_problem(key, text, allowed))
    policy = Policy(**values)
    if policy.min_replicas and policy.max_replicas and policy.min_replicas > policy.max_replicas:
        allowed = f"a number not above {names.MAX_REPLICAS} ({policy.max_replicas})"
        problems.append(_problem(names.MIN_REPLICAS, annotations[names.MIN_REPLICAS], allowed))
        policy = replace(policy, min_replicas=None, max_replicas=None)
    if policy.autoscale and not (policy.min_replicas and policy.max_replicas):
        allowed = f"it beside {names.MIN_REPLICAS} and {names.MAX_REPLICAS}, the bounds of the size"
        problems.append(_problem(names.AUTOSCALE, annotations[names.AUTOSCALE], allowed))
        policy = replace(policy, autoscale=None)
    return policy, problems


def startup_workers(policy: Policy, *, np_workers: int) -> int | None:
    """Return how many workers a launcher waits for at its start: min-replicas, but enough for -np; None for all."""
    return None if policy.min_replicas is None else max(policy.min_replicas, np_workers)


def names_discovery(texts: Iterable[str]) -> bool:
    """Return True if a text names discover_hosts.sh or horovodrun's --host-discovery-script."""
    return any(mark in text for text in texts for mark in _DISCOVERY_MARKS)


def _problem(key: str, value: str, allowed: str) -> Problem:
    return Problem(field=f"metadata.annotations[{key}]", value=value[:64], allowed=allowed)


def _boolean(text: str) -> bool | None:
    return {"true": True, "false": False}.get(text)


def _gang(text: str) -> str | None:
    return text if text in GANGS else None


def _count(text: str) -> int | None:
    plain = text.isascii() and text.isdigit() and len(text) <= len(str(MOST_WORKERS))
    return int(text) if plain and 1 <= int(text) <= MOST_WORKERS else None


def _drain_timeout(text: str) -> float | None:
    seconds = durations.parse(text)
    return seconds if seconds is not None and seconds <= LONGEST_DRAIN_TIMEOUT else None


def _scale_timeout(text: str) -> float | None:
    seconds = durations.parse(text)
    return seconds if seconds and SHORTEST_SCALE_TIMEOUT <= seconds <= LONGEST_SCALE_TIMEOUT else None


_BOOLEAN = (_boolean, '"true" or "false"')
_COUNT = (_count, f"a whole number from 1 to {MOST_WORKERS}")
# The fields of a policy: the annotation, its parser, which returns None for an unusable value, and the allowed values.
_ANNOTATIONS: Mapping[str, tuple[str, Callable[[str], object], str]] = {
    "enabled": (names.ENABLED, *_BOOLEAN),
    "min_replicas": (names.MIN_REPLICAS, *_COUNT),
    "max_replicas": (names.MAX_REPLICAS, *_COUNT),
    "drain_timeout": (names.DRAIN_TIMEOUT, _drain_timeout, 'a duration from 0s to 24h, such as "90s" or "2m30s"'),
    "replace_failed_workers": (names.REPLACE_FAILED_WORKERS, *_BOOLEAN),
    "scale_timeout": (names.SCALE_TIMEOUT, _scale_timeout, 'a duration from 1s to 24h, such as "10m"'),
    "run_policy": (names.RUN_POLICY, *_BOOLEAN),
    "suspend": (names.SUSPEND, *_BOOLEAN),
    "gang": (names.GANG, _gang, " or ".join(f'"{gang}"' for gang in GANGS)),
    "autoscale": (names.AUTOSCALE, autoscale.parse, autoscale.ALLOWED),
}
# The annotations of ours that users write.
KEYS = frozenset(key for key, _, _ in _ANNOTATIONS.values())
