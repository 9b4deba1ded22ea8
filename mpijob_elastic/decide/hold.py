"""Hold: when a pod that the webhook held back at its creation may start.

Any gate of ours serves any reason to hold a pod. They come off in one write, with what a capability adds, once nobody
holds the pod; so none of them can start a pod while another reason holds. A worker that leaves keeps its gates.
"""

from collections.abc import Iterator

from mpijob_elastic import names
from mpijob_elastic.decide import stop
from mpijob_elastic.decide.actions import Gated, Ungate, normal
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.model.phrases import listed


def free(state: JobState) -> Iterator[Ungate]:
    """Yield the gates to take off now, those of pods that get the same together."""
    view, wishes = state.view, state.wishes
    if view.facts.deleting or view.ended or wishes.stop or stop.has_leftovers(view):
        return
    together: dict[tuple[str, tuple[str, ...]], list[Gated]] = {}
    for pod in view.pods:
        is_free = pod.facts.held_back and pod.ref.name not in wishes.held
        if is_free and not pod.facts.deleting and state.by_name.get(pod.ref.name) not in state.leaving:
            place = wishes.places.get(pod.ref.name)
            kept = tuple(gate for gate in pod.facts.gates if gate not in names.GATES)
            key = (place.words, place.adds) if place else ("", ())
            together.setdefault(key, []).append(Gated(ref=pod.ref, kept=kept))
    for (words, adds), pods in together.items():
        freed = f"{listed(gated.ref.name for gated in pods)} may be scheduled"
        why = words or f"nothing holds {view.name} back"
        note = normal("Admitted" if words else "Resumed", f"{freed}: {why}")
        yield Ungate(pods=tuple(pods), adds=adds, note=note)
