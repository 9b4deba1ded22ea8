"""What is said of workers that are given up: nothing more is tried for a while, so somebody should look at them."""

from __future__ import annotations

from collections.abc import Iterator

from mpijob_elastic.decide import failed_workers, lost_ranks
from mpijob_elastic.decide.actions import Note
from mpijob_elastic.model import durations
from mpijob_elastic.model.job import JobView, Worker

REASON = "WorkerGivenUp"
# Of each kind.
MOST = 8


def notes(view: JobView, *, now: float) -> Iterator[Note]:
    """A note for each, as far as an annotation has room."""
    for worker in failed_workers.given_up(view)[:MOST]:
        yield _note(f"{_failed(worker)} and the job goes on without it. {_at_once(view, worker)}")
    for worker in lost_ranks.given_up(view, now=now)[:MOST]:
        yield _note(f"{_lost(worker)} and the job goes on without it. {_at_once(view, worker)}")


def _failed(worker: Worker) -> str:
    times, wait = len(failed_workers.BACKOFFS) + 1, durations.render(failed_workers.GIVEN_UP_FOR)
    advice = "; raise resources.limits.memory of the workers" if worker.out_of_memory else ""
    state = worker.last_state or "Failed"
    return f"{worker.name} failed {times} times, the last time as {state}{advice}; it is left as it is for {wait},"


def _lost(worker: Worker) -> str:
    times, wait = len(lost_ranks.BACKOFFS) + 1, durations.render(lost_ranks.GIVEN_UP_FOR)
    return (
        f"{worker.name} lost its rank {times} times while its pod ran on (the launcher's log says how it ended); it "
        f"gets no further host name for {wait},"
    )


def _at_once(view: JobView, worker: Worker) -> str:
    return f"To have it tried again at once: `kubectl -n {view.namespace} delete pod {worker.name}`"


def _note(message: str) -> Note:
    return Note(reason=REASON, message=" ".join(message.split()), warning=True)
