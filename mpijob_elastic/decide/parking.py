"""Parking: exactly the named workers leave, and their places below other workers stay empty.

The operator creates every worker below `replicas` again. The webhook turns the pod of a parked
worker into a placeholder: it asks for no resources, and waits at a gate that never comes off. The
host list does without parked workers (JobFacts.skips), and the workers of a view are none of the
placeholders. A worker that is parked while it runs counts as a worker that the size does not ask
for.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from mpijob_elastic import names
from mpijob_elastic.decide.actions import Delete, Note, Noted, normal
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.kube.resources import PODS, Resource
from mpijob_elastic.model.phrases import listed
from mpijob_elastic.model.pod import Worker


@dataclass(frozen=True, kw_only=True)
class DeletePlaceholder(Noted, Delete):
    """Delete a placeholder that is no longer needed.

    The operator creates the worker again, if the job asks for it.
    """

    at_version = False

    resource: Resource = PODS


def writes(state: JobState) -> list[DeletePlaceholder]:
    """Return the deletion of each placeholder that is no longer needed."""
    if state.view.facts.deleting:
        return []
    found = []
    for pod in state.view.placeholders:
        why = _over(state, pod)
        if why and not pod.facts.deleting:
            note = normal("Unparked", f"the placeholder of {pod.name} goes: {why}")
            found.append(DeletePlaceholder(ref=pod.ref, note=note))
    return found


def notes(state: JobState) -> Iterable[Note]:
    """Yield a notice that names the parked workers."""
    view = state.view
    parked = [pod.name for pod in view.placeholders if not _over(state, pod)]
    if not parked:
        return
    it, holds = ("it", "holds") if len(parked) == 1 else ("them", "hold")
    unpark = f"kubectl -n {view.namespace} annotate mpijob {view.name} {names.PARKED}-"
    yield normal(
        "Parked",
        f"{listed(parked)} {holds} no resources: parked by the annotation {names.PARKED}",
        next_step=f"{unpark}  # to have {it} back",
    )


def _over(state: JobState, pod: Worker) -> str:
    """Return why a placeholder is no longer needed, "" while it is."""
    view = state.view
    if view.facts.finished:
        return "the job has finished"
    if state.foreign:
        return f"another operator manages {view.name}"
    if pod.index not in view.facts.skips:
        return f"the worker is not in the annotation {names.PARKED} any more"
    if view.facts.size_known and pod.index >= view.facts.replicas:
        return "the size asks for fewer workers"
    return ""
