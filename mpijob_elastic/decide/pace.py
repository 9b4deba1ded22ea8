"""Pace: no deletion of a pod repeats without a back-off, whatever step or capability asks for it.

[operator] The operator makes each pod again at once that it deems missing. So a deletion that does
not bring about what it is for would repeat for ever: another operator manages the job, webhook and
controller see different versions of the MPIJob, or the webhook was away when the pod was made. Such
a loop costs the operator's few requests a second, which all jobs share.

The count belongs to the name of the pod, and begins anew once the MPIJob asks for something else
(act.deletions): a user who changes the size again and again waits for nothing. Failed workers,
moves and launchers have slower back-offs of their own (state.REPLACED and others), which survive a
restart.
"""

from collections.abc import Iterator

from mpijob_elastic.decide.actions import Action, Look, Note, warning
from mpijob_elastic.decide.state import DELETED, DELETED_OFTEN, FORGIVEN_AFTER, JobState
from mpijob_elastic.decide.step import Step, first
from mpijob_elastic.model import phrases
from mpijob_elastic.model.job import Deleted
from mpijob_elastic.model.phrases import listed


def paced(state: JobState, step: Step[Action | Look]) -> Step[Action | Look]:
    """Return what is due now of a step, and when to look again; a look passes unchanged."""
    write = step.write
    if not isinstance(write, Action):
        return step
    wait_of = {pod: _wait(state.view.deleted.get(pod)) for pod in write.deletes()}
    waiting = {pod: wait for pod, wait in wait_of.items() if wait > 0.0}
    if not waiting:
        return step
    due_at = state.now + min(waiting.values())
    return Step(write.without(waiting), first([step.again_at, due_at]))


def notes(state: JobState) -> list[Note]:
    """Return a notice on pods that come back after each deletion, if there are any."""
    view = state.view
    there = {pod.ref.name for pod in view.placeholders} | {*_unwanted(state)}
    again = [pod for pod, last in view.deleted.items() if last.count >= DELETED_OFTEN]
    back = sorted(pod for pod in again if pod in there)
    if not back:
        return []
    longest = phrases.duration(DELETED.delays[-1])
    return [
        warning(
            "DeletedInVain",
            f"{listed(back)} came back after each deletion, so further deletions wait for up to "
            f"{longest}: check that one operator alone manages {view.name}, and that the webhook "
            "is reachable. The Events on the MPIJob say why each pod is deleted",
            next_step=f"kubectl -n {view.namespace} describe mpijob {view.name}",
        )
    ]


def _unwanted(state: JobState) -> Iterator[str]:
    """Yield the pods that are to go, or may have to.

    A worker that failed and a launcher that a queue stopped were deleted to come back.
    """
    for worker in state.workers:
        if worker.moves_now or worker.stopped or not worker.wanted:
            yield worker.name
    launcher = state.view.launcher
    if launcher is not None and (state.wishes.suspend or not state.view.driver_running):
        yield launcher.ref.name


def _wait(last: Deleted | None) -> float:
    """Return the seconds until a pod of this name may be deleted; 0 or less if it may be now."""
    if last is None or last.ago >= FORGIVEN_AFTER:
        return 0.0
    return DELETED.delays[min(last.count, len(DELETED.delays) - 1)] - last.ago
