"""A job that trains with real Elastic Horovod, through changes of its size; asserted from its own log."""

import time
from collections.abc import Callable

from lab.training import log as training
from lab.training.job import TrainingJob, workers
from tests.real.pods import until

# Seconds between two steps. A resize takes 2 to 5 on an idle machine; Horovod itself gives up a
# lost rank after 30.
LONGEST_PAUSE = 60.0
SECONDS, COMMIT = "0.25", "4"  # of a step; steps between two commits


def train_through(
    job: TrainingJob, *changes: tuple[Callable[[int], None], int], steps: int
) -> None:
    """Train with 2 workers, then with as many as each change makes, to the end; it takes 50 `steps` a change."""
    job.create({"TARGET_STEPS": str(steps), "STEP_SECONDS": SECONDS, "COMMIT_STEPS": COMMIT})
    _await_training(job, 2, since=0)
    for change, size in changes:
        edited = time.time()
        change(size)
        _await_training(job, size, since=edited)
    assert until("the end of the job", lambda: _ended(job)) == "Succeeded"

    log = job.log()
    assert training.problems(log) == []
    assert training.longest_pause(log.steps) < LONGEST_PAUSE
    assert log.steps[0].step == 1
    assert log.steps[-1].step == steps
    sizes = [phase.size for phase in training.phases(log.steps)]
    assert (sizes[0], sizes[-1]) == (2, changes[-1][1])


def _await_training(job: TrainingJob, size: int, *, since: float) -> None:
    """Wait until the wanted workers train, the launcher prints them, and no other worker is left."""
    step = until(
        f"{size} ranks train", lambda: training.first_with(job.log().steps, size=size, since=since)
    )
    assert set(step.hosts) == set(workers(size))  # ranks are dealt again each time
    until(
        f"only {size} workers are there",
        lambda: set(job.pods()) == {*workers(size), "train-launcher"} or None,
    )
    assert job.hosts() == [f"{name}:1" for name in workers(size)]


def _ended(job: TrainingJob) -> str | None:
    phase = job.outcome()
    return phase if phase in ("Succeeded", "Failed") else None
