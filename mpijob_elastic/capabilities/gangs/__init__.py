"""Gangs: the pods of a job start together or not at all, as a gang scheduler does it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mpijob_elastic.capabilities.gangs import facts, wishes
from mpijob_elastic.capabilities.gangs.facts import Gang, PodGroup
from mpijob_elastic.decide.actions import Action, Note
from mpijob_elastic.decide.capability import Capability
from mpijob_elastic.decide.shown import QueueWords, Shown
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.decide.step import Step, When
from mpijob_elastic.decide.wishes import Wish
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.model import policy
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.job_facts import CapabilityFacts
from mpijob_elastic.model.mpijob import MPIJob
from mpijob_elastic.model.pod import Launcher, Worker
from mpijob_elastic.model.policy import Policy, Problem


@dataclass(frozen=True, kw_only=True)
class Gangs(Capability, Shown):
    """The gang of a job."""

    #: The job's PodGroup, None without.
    group: PodGroup | None = None
    #: The API serves PodGroups; None while that is not known.
    serves: bool | None = None
    #: The PodGroups that the API serves for the job; None for those of the newest version.
    resource: Resource | None = None

    name = wishes.AUTHOR

    @classmethod
    def asked(cls, job: MPIJob, known: Policy) -> tuple[CapabilityFacts | None, Sequence[Problem]]:  # noqa: ARG003
        """Return the gang that a job asks for."""
        values, problems = policy.read(job.metadata.annotations, {"gang": facts.ANNOTATION})
        return facts.asked(job, values["gang"]) if values else None, problems

    @classmethod
    def told(cls, view: JobView) -> Capability | None:
        """Return the capability for a job that asks for a gang."""
        return cls() if view.facts.of(Gang) else None

    def wishes(self, view: JobView, *, now: float) -> Iterable[Wish]:
        """Yield wishes for pods that the scheduler has forgotten, so that they are made again."""
        return wishes.of(view, self.group, now=now) if self.group else ()

    def writes(self, state: JobState, when: When) -> Iterable[Step[Action]]:
        """Yield the write of the PodGroup."""
        if when is When.BEFORE_START:
            yield Step(self._write(state))

    def notes(self, state: JobState) -> Iterable[Note]:
        """Yield a notice for each reason why the pods do not start as a gang."""
        view = state.view
        if view.facts.of(Gang) is None:
            return ()
        resource = self._resource(view)
        return wishes.notes(view, self.group, serves=self.serves, resource=resource)

    def pod_words(self, view: JobView, pod: Launcher | Worker) -> QueueWords:
        """Return why the scheduler has not tried a pod of the gang yet."""
        return QueueWords(waits=wishes.untried(view, pod))

    def _write(self, state: JobState) -> Action | None:
        resource = self._resource(state.view)
        return wishes.write(state, self.group, serves=self.serves, resource=resource)

    def _resource(self, view: JobView) -> Resource:
        return self.resource or facts.pod_groups(view.facts.of(Gang))[0]
