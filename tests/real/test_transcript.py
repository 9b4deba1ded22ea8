"""2→3→1→3→4→2 by `kubectl edit` and `kubectl scale`, with real Elastic Horovod; asserted from the job's own log."""

import time

import pytest

from lab.cluster import Cluster
from lab.operator.process import Operator
from lab.replicas import Controller
from lab.training import log as training
from lab.training.job import TrainingJob, workers
from tests.real.waiting import until

# Seconds between two steps. A resize takes 2 to 5 on an idle machine; Horovod itself gives up a lost rank after 30.
LONGEST_PAUSE = 60.0
# So many that all changes fit in: they take about 250 steps.
STEPS = 400
ENVIRONMENT = {"TARGET_STEPS": str(STEPS), "STEP_SECONDS": "0.25", "COMMIT_STEPS": "4"}


def await_training(job: TrainingJob, size: int, *, since: float) -> None:
    """Wait until the wanted workers train, the launcher prints them, and no other worker is left."""
    step = until(f"{size} ranks train", lambda: training.first_with(job.log().steps, size=size, since=since))
    assert set(step.hosts) == set(workers(size))  # ranks are dealt again each time
    until(f"only {size} workers are there", lambda: set(job.pods()) == {*workers(size), "train-launcher"} or None)
    assert job.hosts() == [f"{name}:1" for name in workers(size)]


def ended(job: TrainingJob) -> str | None:
    phase = job.outcome()
    return phase if phase in ("Succeeded", "Failed") else None


@pytest.mark.timeout(1200)
@pytest.mark.usefixtures("scale_served")
def test_training_goes_on_through_every_change_of_size(
    cluster: Cluster, namespace: str, training_image: None, operator: Operator, elastic: Controller
) -> None:
    job = TrainingJob(cluster=cluster, namespace=namespace)
    job.create(ENVIRONMENT)
    await_training(job, 2, since=0)
    for change, size in ((job.edit, 3), (job.scale, 1), (job.edit, 3), (job.scale, 4), (job.edit, 2)):
        edited = time.time()
        change(size)
        await_training(job, size, since=edited)
    assert until("the end of the job", lambda: ended(job)) == "Succeeded"

    log = job.log()
    assert training.problems(log) == []
    assert training.longest_pause(log.steps) < LONGEST_PAUSE
    assert log.steps[0].step == 1
    assert log.steps[-1].step == STEPS
    sizes = [phase.size for phase in training.phases(log.steps)]
    assert (sizes[0], sizes[-1]) == (2, 2)
