"""Run policy: fields of `spec.runPolicy` that the operator ignores, for jobs that ask for them.

[operator] A launcher pod that fails ends its job for good: Failed, with a completionTime. So the
pod must not fail before the last attempt. The webhook lets the pod's kubelet restart the container
in place, with the kubelet's own pauses, and this capability counts the restarts. A running
container is never ended: while nobody counted, it may have become the attempt that succeeds.

[operator] pkg/apis/kubeflow/v1/types.go knows the field, the operator's controller never reads it,
and the definition keeps any value. We act on the field for jobs with the annotation
`mpijob-elastic/run-policy`, because their users may have set the field long ago.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mpijob_elastic import names
from mpijob_elastic.decide.actions import Action, Delete, EndLauncher, Note, Noted, normal, warning
from mpijob_elastic.decide.capability import Capability
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.decide.step import NO_STEP, Step, When
from mpijob_elastic.decide.wishes import End, Suspend, Wish
from mpijob_elastic.kube.resources import MPI_JOBS, Resource
from mpijob_elastic.model import phrases, policy
from mpijob_elastic.model.bounds import MOST_INT32
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.job_facts import CapabilityFacts
from mpijob_elastic.model.mpijob import MPIJob
from mpijob_elastic.model.pod import Launcher, LauncherPhase
from mpijob_elastic.model.policy import Annotation, Policy, Problem

# On an MPIJob, written by users: asks us to act on the field.
RUN_POLICY = f"{names.PREFIX}run-policy"
ANNOTATION = Annotation(RUN_POLICY, policy.boolean, '"true" or "false"')
# The key of each field in an MPIJob, and the field's least value, None for a boolean. No number may
# be more than a pod's activeDeadlineSeconds, an int32.
_FIELDS = {
    "active_deadline": ("activeDeadlineSeconds", 1),
    "ttl": ("ttlSecondsAfterFinished", 0),
    "backoff_limit": ("backoffLimit", 0),
    "suspend": ("suspend", None),
}


@dataclass(frozen=True, kw_only=True)
class RunPolicy(CapabilityFacts):
    """The fields of a run policy; None where absent."""

    #: Seconds that a launcher may run.
    active_deadline: int | None = None
    #: Seconds that a finished job stays.
    ttl: int | None = None
    #: How often a launcher is started again.
    backoff_limit: int | None = None
    #: The job must wait.
    suspend: bool = False

    @property
    def gate(self) -> str:
        """The gate of a job that waits."""
        return names.GATE_SUSPENDED if self.suspend else ""


def parse(raw: object) -> tuple[RunPolicy, list[Problem]]:
    """Return the run policy without its unusable values, and a problem for each of these."""
    given = {} if raw is None else raw
    if not isinstance(given, Mapping):
        return RunPolicy(), [
            Problem(field="spec.runPolicy", value=str(raw)[:64], allowed="an object")
        ]
    values: dict[str, Any] = {}
    problems = []
    for field, (key, least) in _FIELDS.items():
        value = given.get(key)
        if (
            isinstance(value, bool)
            if least is None
            else type(value) is int and least <= value <= MOST_INT32
        ):
            values[field] = value
        elif value is not None:
            allowed = (
                "true or false" if least is None else f"a whole number from {least} to {MOST_INT32}"
            )
            problems.append(
                Problem(field=f"spec.runPolicy.{key}", value=str(value)[:64], allowed=allowed)
            )
    return RunPolicy(**values), problems


def ignored(raw: object) -> list[str]:
    """Return the keys in a run policy on which we would act if the job asked for it."""
    if not isinstance(raw, Mapping):
        return []
    return [
        key for key, _ in _FIELDS.values() if key in raw and (key != "suspend" or raw[key] is True)
    ]


@dataclass(frozen=True, kw_only=True)
class DeleteJob(Noted, Delete):
    """Delete a finished job, only at the very version that was decided on.

    So an edit of the field that comes in time is obeyed.
    """

    resource: Resource = MPI_JOBS


class Runs(Capability):
    """A job with a run policy."""

    name = "run policy"

    @classmethod
    def asked(cls, job: MPIJob, known: Policy) -> tuple[CapabilityFacts | None, Sequence[Problem]]:  # noqa: ARG003
        """Return the run policy of a job that asks us to act on it."""
        values, problems = policy.read(job.metadata.annotations, {"run_policy": ANNOTATION})
        if not values.get("run_policy"):
            return None, problems
        found, faults = parse(job.spec.run_policy if job.spec else None)
        return found, [*problems, *faults]

    @classmethod
    def told(cls, view: JobView) -> Capability | None:
        """Return the capability for a job that asks for a run policy."""
        return cls() if view.facts.of(RunPolicy) else None

    def wishes(self, view: JobView, *, now: float) -> Iterable[Wish]:  # noqa: ARG002
        """Yield a Suspend for a job that waits, and an End for a launcher that failed too often."""
        asked = view.facts.of(RunPolicy) or RunPolicy()
        if asked.suspend:
            patch = '{"spec": {"runPolicy": {"suspend": false}}}'
            on_job = f"kubectl -n {view.namespace} patch mpijob {view.name}"
            yield Suspend(
                by=self.name,
                why="spec.runPolicy.suspend",
                ends_by=f"{on_job} --type=merge -p '{patch}'",
            )
        if asked.backoff_limit and (launcher := _failed_launcher(view, asked.backoff_limit)):
            yield End(by=self.name, note=_ended(launcher, asked.backoff_limit))

    def writes(self, state: JobState, when: When) -> Iterable[Step[Action]]:
        """Yield the deletion of the finished job, or the time at which it is due."""
        if when is not When.AT_END:
            return
        asked = state.view.facts.of(RunPolicy)
        if asked and asked.ttl is not None:
            yield _deletion(state, asked.ttl)


def _deletion(state: JobState, ttl: int) -> Step[Action]:
    """Return the deletion of a job that finished `ttl` seconds ago, or the time of the deletion."""
    view, ended_at = state.view, state.view.facts.ended_at
    # Whatever the status says, a launcher that runs has not finished.
    if ended_at is None or view.driver_may_run or view.lingers:
        return NO_STEP
    if state.now < ended_at + ttl:
        return Step(again_at=ended_at + ttl)
    after = f"{phrases.duration(ttl)} after its end (ttlSecondsAfterFinished)"
    message = f"{view.name} is deleted with all that it owns, {after}"
    return Step(DeleteJob(ref=view.ref, note=normal("FinishedJobDeleted", message)))


def _failed_launcher(view: JobView, limit: int) -> Launcher | None:
    """Return the launcher if it runs and has failed more than `limit` times, else None."""
    launcher = view.launcher
    if launcher is None or launcher.phase is not LauncherPhase.STARTED or launcher.facts.deleting:
        return None
    is_ended = launcher.facts.deadline == EndLauncher.DEADLINE
    return None if is_ended or launcher.facts.failures <= limit else launcher


def _ended(launcher: Launcher, limit: int) -> Note:
    message = (
        f"{launcher.ref.name} has failed {launcher.facts.failures} times "
        f"(backoffLimit {limit}), so it is ended"
    )
    return warning("BackoffLimitExceeded", message)
