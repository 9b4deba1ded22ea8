"""The run policy of a job: fields of `spec.runPolicy` on which mpi-operator v0.2.3 does not act.

[operator] pkg/apis/kubeflow/v1/types.go knows the field, its controller never reads it, and its definition keeps any
value. We act on it for jobs with the annotation `mpijob-elastic/run-policy`, as their users may have set the field long
ago.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mpijob_elastic import names
from mpijob_elastic.model.bounds import MOST_INT32
from mpijob_elastic.model.job_facts import Known
from mpijob_elastic.model.policy import Problem

# On an MPIJob, written by users: asks us to act on the field.
RUN_POLICY = f"{names.PREFIX}run-policy"
# Their keys in a MPIJob, and the least value, None for a boolean. No number may be more than a pod's
# activeDeadlineSeconds, an int32.
_FIELDS = {
    "active_deadline": ("activeDeadlineSeconds", 1),
    "ttl": ("ttlSecondsAfterFinished", 0),
    "backoff_limit": ("backoffLimit", 0),
    "suspend": ("suspend", None),
}


@dataclass(frozen=True, kw_only=True)
class RunPolicy(Known):
    """The fields, None where absent; in seconds.

    active_deadline: what a launcher may run. ttl: what a finished job stays. backoff_limit: how often a launcher is
    started again. suspend: the job is to wait.
    """

    active_deadline: int | None = None
    ttl: int | None = None
    backoff_limit: int | None = None
    suspend: bool = False

    @property
    def gate(self) -> str:  # type: ignore[override]
        """The gate of a job that waits."""
        return names.GATE_SUSPENDED if self.suspend else ""


def parse(raw: object) -> tuple[RunPolicy, list[Problem]]:
    """Return the run policy without its unusable values, and a problem for each of these."""
    given = {} if raw is None else raw
    if not isinstance(given, Mapping):
        return RunPolicy(), [Problem(field="spec.runPolicy", value=str(raw)[:64], allowed="an object")]
    values: dict[str, Any] = {}
    problems = []
    for field, (key, least) in _FIELDS.items():
        value = given.get(key)
        if isinstance(value, bool) if least is None else type(value) is int and least <= value <= MOST_INT32:
            values[field] = value
        elif value is not None:
            allowed = "true or false" if least is None else f"a whole number from {least} to {MOST_INT32}"
            problems.append(Problem(field=f"spec.runPolicy.{key}", value=str(value)[:64], allowed=allowed))
    return RunPolicy(**values), problems


def ignored(raw: object) -> list[str]:
    """Return the keys in a run policy on which we would act if the job asked for it."""
    if not isinstance(raw, Mapping):
        return []
    return [key for key, _ in _FIELDS.values() if key in raw and (key != "suspend" or raw[key] is True)]
