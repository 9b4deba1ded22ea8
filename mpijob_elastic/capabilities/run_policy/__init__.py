"""Run policy: fields of `spec.runPolicy` on which the operator does not act, for jobs that ask for it."""

from collections.abc import Iterable, Sequence

from mpijob_elastic.capabilities.run_policy import facts, wishes
from mpijob_elastic.capabilities.run_policy.facts import RUN_POLICY, RunPolicy
from mpijob_elastic.decide.actions import Action
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.decide.wishes import Capability, Stop, Wish
from mpijob_elastic.model import policy
from mpijob_elastic.model.capability import Known
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.mpijob import MPIJob
from mpijob_elastic.model.policy import Annotation, Policy, Problem


class Runs(Capability):
    """A job with a run policy."""

    annotations = (Annotation(RUN_POLICY, policy.boolean, '"true" or "false"'),)

    @classmethod
    def asked(cls, job: MPIJob, known: Policy) -> tuple[Known | None, Sequence[Problem]]:  # noqa: ARG003
        """Return the run policy of a job that asks us to act on it."""
        values, problems = policy.read(job.metadata.annotations, {"run_policy": cls.annotations[0]})
        if not values.get("run_policy"):
            return None, problems
        found, faults = facts.parse(job.spec.run_policy if job.spec else None)
        return found, [*problems, *faults]

    @classmethod
    def told(cls, view: JobView) -> Capability | None:
        """Return it for a job that asks for one."""
        return cls() if view.facts.of(RunPolicy) else None

    def wishes(self, view: JobView, *, now: float) -> Iterable[Wish]:  # noqa: ARG002
        """Yield that it waits, or that its launcher ends because it has failed too often."""
        asked = view.facts.of(RunPolicy) or RunPolicy()
        if asked.suspend:
            patch = '{"spec": {"runPolicy": {"suspend": false}}}'
            yield Stop(why="spec.runPolicy.suspend", ends_by=f"patch mpijob {view.name} --type=merge -p '{patch}'")
        if asked.backoff_limit and (end := wishes.end(view, asked.backoff_limit)):
            yield end

    def remove(self, state: JobState) -> tuple[Action | None, float | None]:
        """Return the deletion of the finished job, or when it is due."""
        asked = state.view.facts.of(RunPolicy)
        return (None, None) if asked is None or asked.ttl is None else wishes.delete(state, asked.ttl)
