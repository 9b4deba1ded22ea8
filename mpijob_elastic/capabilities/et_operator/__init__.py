"""ScaleIns and ScaleOuts of et-operator, for MPIJobs.

They are carried out only where the component et-operator is installed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mpijob_elastic import names
from mpijob_elastic.capabilities.et_operator import wishes
from mpijob_elastic.capabilities.et_operator.facts import Scaled, ScaleRequest
from mpijob_elastic.decide.actions import Action
from mpijob_elastic.decide.capability import Capability
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.decide.step import Step, When
from mpijob_elastic.decide.wishes import Wish
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.job_facts import CapabilityFacts
from mpijob_elastic.model.mpijob import MPIJob
from mpijob_elastic.model.policy import Policy, Problem


@dataclass(frozen=True, kw_only=True)
class EtOperator(Capability):
    """The requests for another size of a job."""

    #: The requests that have not ended, the oldest first.
    requests: tuple[ScaleRequest, ...]

    name = "et-operator"

    @classmethod
    def asked(cls, job: MPIJob, known: Policy) -> tuple[CapabilityFacts | None, Sequence[Problem]]:  # noqa: ARG003
        """Return the request that set the size last."""
        mark = job.metadata.annotations.get(names.SCALED_BY, "")
        return Scaled(by=mark) if mark else None, ()

    @classmethod
    def of(cls, view: JobView, found: Iterable[ScaleRequest]) -> "EtOperator | None":
        """Return the requests of a job that are still open, None if there are none."""
        of_job = [
            one for one in found if one.is_open and one.metadata.job_uid in ("", view.ref.uid)
        ]
        of_job.sort(key=lambda one: (one.created_at, one.metadata.name))
        return cls(requests=tuple(of_job)) if of_job else None

    def wishes(self, view: JobView, *, now: float) -> Iterable[Wish]:  # noqa: ARG002
        """Yield only a wish to look again when a request times out."""
        until = wishes.deadline(self.requests[0])
        if until is not None and until > now:
            yield Wish(by=self.name, until=until)

    def writes(self, state: JobState, when: When) -> Iterable[Step[Action]]:
        """Yield the writes of the requests, and of the size that they ask for."""
        if when is When.ANY_TIME and not state.view.facts.deleting:
            yield from map(Step, wishes.due(state, self.requests))
