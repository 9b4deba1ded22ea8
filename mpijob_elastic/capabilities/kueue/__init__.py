"""Kueue: quota for a job, and for each worker beyond its least size, from a shared queue."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from mpijob_elastic import names
from mpijob_elastic.capabilities.kueue import facts, wishes, words
from mpijob_elastic.capabilities.kueue.facts import (
    MULTIKUEUE_ORIGIN,
    WORKLOADS,
    Asked,
    Queue,
    Workload,
)
from mpijob_elastic.decide import demand
from mpijob_elastic.decide.actions import Action, Note
from mpijob_elastic.decide.capability import Capability, Holding
from mpijob_elastic.decide.shown import Attach, QueueWords, Reading, Shown, Turn
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.decide.step import Step, When
from mpijob_elastic.decide.wishes import Wish
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.job_facts import CapabilityFacts, JobFacts
from mpijob_elastic.model.mpijob import MPIJob
from mpijob_elastic.model.pod import Launcher, Worker
from mpijob_elastic.model.policy import Policy, Problem

# The state of a queued job of which nothing runs, and the phase of a pod that waits for quota.
QUEUED = "Queued"


# MultiKueue deletes the Workloads that it has sent, and would send them again if somebody else
# deleted them.
HOLDING = Holding(
    resource=WORKLOADS,
    selector=f"{names.LABEL_MANAGED_BY}={names.PROGRAM},!{MULTIKUEUE_ORIGIN}",
    read=facts.holder,
)


@dataclass(frozen=True)
class Kueue(Capability, Shown):
    """What Kueue says of a job."""

    #: None while it is not known whether there is a Kueue.
    queue: Queue | None

    name = wishes.AUTHOR

    @classmethod
    def asked(cls, job: MPIJob, known: Policy) -> tuple[CapabilityFacts | None, Sequence[Problem]]:  # noqa: ARG003
        """Return the queue that a job asks for."""
        return facts.asked(job), ()

    @classmethod
    def told(cls, view: JobView) -> Capability | None:
        """Return the capability for a job that may wait for quota, or runs in another cluster."""
        asked = view.facts.of(Asked)
        waits = any(names.GATE_QUEUED in pod.facts.gates for pod in view.pods)
        return cls(None) if waits or (asked and asked.elsewhere) else None

    def wishes(self, view: JobView, *, now: float) -> Iterable[Wish]:
        """Yield the wishes for pods that wait for quota, and for pods that give it back."""
        return wishes.of(view, self.queue, now=now)

    def writes(self, state: JobState, when: When) -> Iterable[Step[Action]]:
        """Yield the writes of Workloads."""
        if when is When.ANY_TIME and self.queue:
            yield from map(Step, wishes.due(state, self.queue))

    def notes(self, state: JobState) -> Iterable[Note]:
        """Yield notices on what the job waits for, in Kueue's words."""
        return words.notes(state, self.queue) if self.queue else ()

    def waits_for(self, state: JobState) -> str:
        """Return a sentence if the job waits for quota, "" if not."""
        found = wishes.waiting(state.view, self.queue) if self.queue else None
        return words.wait(found, now=state.now) if found else ""

    @classmethod
    def reading(cls, job: JobFacts) -> Reading[Workload] | None:
        """Return how a command reads the Workloads of a job that asks for quota.

        It reads those of other jobs, too, because they tell the place in the queue.
        """
        if job.of(Asked) is None:
            return None
        return Reading(resource=WORKLOADS, read=facts.read, places=facts.places, seeing=cls._seeing)

    def state_word(self, state: JobState) -> str:
        """Return QUEUED if the job waits and nothing of it runs, "" if not."""
        base = self.queue.base(state.view.name) if self.queue else None
        waits = base is not None and (base.waits or base.checked)
        is_idle = demand.nothing_runs(state.view) and not state.wishes.suspend
        return QUEUED if waits and is_idle else ""

    def pod_words(self, view: JobView, pod: Launcher | Worker) -> QueueWords:
        """Return QUEUED for a pod that waits, and a worker's quota (see `wishes.quota`)."""
        phase = QUEUED if names.GATE_QUEUED in pod.facts.gates else ""
        if self.queue is None or isinstance(pod, Launcher):
            return QueueWords(phase=phase)
        return QueueWords(phase=phase, quota=wishes.quota(view, self.queue, pod))

    def turn(self, state: JobState) -> Turn | None:
        """Return the queue, with the next Workload that waits there."""
        if self.queue is None:
            return None
        found = wishes.waiting(state.view, self.queue)
        if found is None:
            base = self.queue.base(state.view.name)
            return Turn(base.queue if base else self.queue.name)
        place = self.queue.places.get(found.metadata.uid)
        look = words.look(state.view, found, now=state.now)
        return Turn(
            found.queue, waiting=found.metadata.name, place=place, says=found.line, look=look
        )

    @classmethod
    def _seeing(cls, found: Collection[Workload]) -> Attach[Workload]:
        """Return the function by which these Workloads become what Kueue says of a job."""
        places = facts.places(found)

        def see(view: JobView, mine: Collection[Workload]) -> Capability | None:
            asked = view.facts.of(Asked)
            if asked is None or not (asked.queue or asked.elsewhere):
                return None
            return cls(replace(facts.of(view.facts, mine, all_known=found), places=places))

        return see
