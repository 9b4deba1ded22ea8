"""Autoscaling: what sets the size of a job besides its user.

An HPA and idle nodes do, and a size that cannot be reached is set back.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from mpijob_elastic import names
from mpijob_elastic.capabilities.autoscaling import autoscaler, facts, growth, losses, size
from mpijob_elastic.capabilities.autoscaling.autoscaler import Autoscaler
from mpijob_elastic.capabilities.autoscaling.facts import AUTOSCALE, AUTOSCALERS, Scaling, scaling
from mpijob_elastic.decide.actions import Action, Note
from mpijob_elastic.decide.capability import Capability, Record
from mpijob_elastic.decide.shown import Sizing
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.decide.step import Step, When
from mpijob_elastic.decide.wishes import Wish
from mpijob_elastic.model import policy
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.job_facts import CapabilityFacts
from mpijob_elastic.model.mpijob import MPIJob
from mpijob_elastic.model.policy import Policy, Problem

# How a command reads the HPAs, and how they name the owner of a size.
SIZING = Sizing(resource=AUTOSCALERS, read=autoscaler.read, owner=autoscaler.owner)


@dataclass(frozen=True, kw_only=True)
class Autoscaling(Capability):
    """What scales a job."""

    #: All HPAs that scale the job; None while they are not known.
    autoscalers: tuple[Autoscaler, ...] | None = None
    #: When the pods were created that other jobs need, that no node takes, and that could run in
    #: place of the job's workers; None where nobody looks, as for a command.
    others_wait: tuple[float, ...] | None = None
    #: The minor version of Kubernetes 1; 0 if it cannot be told, None while it is not known.
    minor: int | None = None

    name = "autoscaling"

    @classmethod
    def asked(cls, job: MPIJob, known: Policy) -> tuple[CapabilityFacts | None, Sequence[Problem]]:
        """Return the scaling that a job asks for besides its size."""
        values, problems = policy.read(job.metadata.annotations, facts.ANNOTATIONS)
        if values.get("autoscale") and not (known.min_replicas and known.max_replicas):
            allowed = (
                f"it beside {names.MIN_REPLICAS} and {names.MAX_REPLICAS}, the bounds of the size"
            )
            problems.append(policy.problem(AUTOSCALE, job.metadata.annotations[AUTOSCALE], allowed))
            del values["autoscale"]
        if values and job.sized:
            values["sized_by_us"] = job.sized.manager == names.PROGRAM
        return Scaling(**values) if values else None, problems

    @classmethod
    def told(cls, view: JobView) -> Capability | None:
        """Return the capability for a job that asks for it, or whose size a GitOps tool sets."""
        return cls() if view.facts.of(Scaling) or view.facts.size_manager else None

    def size_owner(self, view: JobView) -> str:
        """Return who sets the size: a GitOps tool, an HPA, or idle-node filling."""
        return autoscaler.owner(view, self.autoscalers or ())

    def wishes(self, view: JobView, *, now: float) -> Iterable[Wish]:
        """Yield a wish to see the job again when it may grow after a loss."""
        if pause := losses.pause(view, now=now):
            yield Wish(by=self.name, until=pause.until)

    def writes(self, state: JobState, when: When) -> Iterable[Step[Action]]:
        """Yield the write of the HPA, and of a size that idle nodes allow or that worked last."""
        if when is When.ANY_TIME and self.autoscalers is not None:
            yield Step(autoscaler.write(state, self.autoscalers, minor=self.minor))
        if when is When.TRAINING:
            yield size.resize(state, self.autoscalers or (), self.others_wait)

    def remember(self, state: JobState, published: Collection[str]) -> Iterable[Record]:
        """Yield the sizes that were asked for and worked."""
        asked = scaling(state.view.facts)
        is_used = asked.scale_timeout is not None or asked.fill
        if is_used and state.view.elastic:
            yield Record(name=growth.NAME, json=size.entry(state, published))

    def notes(self, state: JobState) -> Iterable[Note]:
        """Yield notices on what keeps the job from being scaled as it asks."""
        if scaling(state.view.facts).autoscale is None:
            return
        known = self.autoscalers or ()
        yield from autoscaler.notes(state.view, known, minor=self.minor)
        if not autoscaler.rivals(known):
            yield from size.notes(state)
