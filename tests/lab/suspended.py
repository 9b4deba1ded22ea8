"""The pods of a suspended job."""

from mpijob_elastic import names
from tests.lab.job import Object, State

GATES = [{"name": names.GATE_SUSPENDED}]


def pods(state: State) -> list[Object]:
    """Return the job's pods that are not on their way out."""
    workers = [state.workers[name] for name in state.running]
    going = state.launcher and state.launcher["metadata"].get("deletionTimestamp")
    return [*workers, *([state.launcher] if state.launcher and not going else [])]


def held(state: State, replicas: int) -> bool:
    """Tell whether a launcher and that many workers wait at the gate, and nothing else is there."""
    found = pods(state)
    return (
        len(state.running) == replicas and len(found) == replicas + 1 and all(map(_is_gated, found))
    )


def _is_gated(pod: Object) -> bool:
    return pod["spec"].get("schedulingGates") == GATES and "nodeName" not in pod["spec"]
