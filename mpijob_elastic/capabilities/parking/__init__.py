"""Parking: exactly the named workers leave, and their places below other workers stay empty.

The operator creates every worker below `replicas` again. The webhook turns the pod of a parked
worker into a placeholder: it asks for no resources, and waits at a gate that never comes off. The
core does without parked workers (JobFacts.skips), and sees no placeholders. A worker that is parked
while it runs counts as a worker that the size does not ask for.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from mpijob_elastic import names
from mpijob_elastic.decide.actions import Action, Delete, Note, Noted, normal
from mpijob_elastic.decide.capability import Capability
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.decide.step import Step, When
from mpijob_elastic.kube.resources import PODS, Resource
from mpijob_elastic.model import policy
from mpijob_elastic.model.bounds import MOST_WORKERS
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.job_facts import CapabilityFacts
from mpijob_elastic.model.mpijob import MPIJob
from mpijob_elastic.model.phrases import listed
from mpijob_elastic.model.pod import Worker
from mpijob_elastic.model.policy import Annotation, Policy, Problem

PARKED = names.PARKED
MOST_PARKED = 100
ALLOWED = f'"1,3" (numbers of workers; at most {MOST_PARKED}, each from 0 to {MOST_WORKERS - 1})'

_LIST = re.compile(r"[0-9]{1,4}(?:, ?[0-9]{1,4})*")


@dataclass(frozen=True, kw_only=True)
class Parked(CapabilityFacts):
    """The indices of the workers that are parked."""

    sized = True
    elastic_only = PARKED
    skips: Collection[int]


def parse(text: str) -> frozenset[int] | None:
    """Return the indices in the annotation; None if it cannot be read."""
    found = (
        frozenset(int(index) for index in text.split(",")) if _LIST.fullmatch(text) else frozenset()
    )
    return found if 0 < len(found) <= MOST_PARKED else None


ANNOTATION = Annotation(PARKED, parse, ALLOWED)


@dataclass(frozen=True, kw_only=True)
class DeletePlaceholder(Noted, Delete):
    """Delete a placeholder that is no longer needed.

    The operator creates the worker again, if the job asks for it.
    """

    at_version = False

    resource: Resource = PODS


class Parking(Capability):
    """A job that does without some of its workers."""

    name = "parking"

    @classmethod
    def asked(cls, job: MPIJob, known: Policy) -> tuple[CapabilityFacts | None, Sequence[Problem]]:  # noqa: ARG003
        """Return the workers that are parked."""
        values, problems = policy.read(job.metadata.annotations, {"skips": ANNOTATION})
        return Parked(**values) if values else None, problems

    @classmethod
    def told(cls, view: JobView) -> Capability | None:
        """Return the capability for a job with parked workers, or with placeholders left."""
        return cls() if view.placeholders or view.facts.of(Parked) else None

    def writes(self, state: JobState, when: When) -> Iterable[Step[Action]]:
        """Yield the deletion of each placeholder that is no longer needed."""
        if when is not When.ANY_TIME or state.view.facts.deleting:
            return
        for pod in state.view.placeholders:
            why = _over(state, pod)
            if why and not pod.facts.deleting:
                note = normal("Unparked", f"{pod.name} is being deleted: {why}")
                yield Step(DeletePlaceholder(ref=pod.ref, note=note))

    def notes(self, state: JobState) -> Iterable[Note]:
        """Yield a notice that names the parked workers."""
        parked = [pod.name for pod in state.view.placeholders if not _over(state, pod)]
        if parked:
            view, it, has = state.view, *(("it", "holds") if len(parked) == 1 else ("them", "hold"))
            yield normal(
                "Parked",
                f"{listed(parked)} {has} no resources: parked by the annotation {PARKED}",
                next_step=(
                    f"kubectl -n {view.namespace} annotate mpijob {view.name} "
                    f"{PARKED}-  # to have {it} back"
                ),
            )


def _over(state: JobState, pod: Worker) -> str:
    """Return why a placeholder is no longer needed, "" while it is."""
    view = state.view
    reasons = {
        "the job has finished": view.facts.finished,
        f"another operator manages {view.name}": bool(state.foreign),
        f"the worker is not in the annotation {PARKED} any more": pod.index not in view.facts.skips,
        "the size asks for fewer workers": view.facts.size_known
        and pod.index >= view.facts.replicas,
    }
    return next((why for why, holds in reasons.items() if holds), "")
