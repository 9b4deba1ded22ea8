"""Ranks that need long to start: Horovod's driver loses a change of the list meanwhile, and the controller repeats it.

A rank sleeps before it imports Horovod, as if its imports took so long. A change comes while a rank
starts, and rank 0 does not hear of the change ([horovod] common/elastic.py, on_reset).
"""

import time

import pytest

from lab.cluster import Cluster
from lab.training import log as training
from lab.training.job import NAME, TrainingJob, slow, workers
from mpijob_elastic import names
from tests.real.pods import until

START = 6  # seconds that a rank sleeps
ENVIRONMENT = {"TARGET_STEPS": "1000000", "MAX_STEPS": "1000000", "STEP_SECONDS": "0.25"}
GATE = "gate"
# Holds the pods of all workers but the first until the file is there.
WAIT = 'case "$(hostname)" in *-0) ;; *) until [ -e /go ]; do sleep 0.1; done ;; esac'

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("scale_served", "training_image", "operator", "elastic"),
]


@pytest.fixture
def slow_job(cluster: Cluster, namespace: str) -> TrainingJob:
    return TrainingJob(cluster=cluster, namespace=namespace)


def await_launch(job: TrainingJob, host: str) -> None:
    """Wait until Horovod's driver starts a rank in a host: for the next seconds nobody hears of a change."""
    until(f"a rank starts in {host}", lambda: host in job.log().launched or None)


def await_training(job: TrainingJob, size: int, *, since: float) -> None:
    """Wait until exactly the first workers train, and no other worker is there."""
    step = until(
        f"{size} ranks train", lambda: training.first_with(job.log().steps, size=size, since=since)
    )
    assert set(step.hosts) == set(workers(size))
    until(
        f"only {size} workers are there",
        lambda: set(job.pods()) == {*workers(size), names.launcher(job.name)} or None,
    )


def await_repetition(job: TrainingJob) -> None:
    """Wait until an Event says that the list was repeated, for otherwise no change was lost."""
    reasons = ("get", "events", "-o", "jsonpath={.items[*].reason}")
    until(
        "the list was repeated",
        lambda: (
            "HostListRepeated" in job.cluster.kubectl("-n", job.namespace, *reasons).split() or None
        ),
    )


@pytest.mark.parametrize(
    ("begin", "first", "then"),
    [
        pytest.param(1, 2, 3, id="a worker is added while another starts"),
        pytest.param(3, 4, 2, id="workers are removed while another starts"),
    ],
)
def test_a_change_while_ranks_start_is_followed_without_harm(
    slow_job: TrainingJob, begin: int, first: int, then: int, capsys: pytest.CaptureFixture[str]
) -> None:
    slow_job.create(ENVIRONMENT, manifest=slow(begin, seconds=START))
    await_training(slow_job, begin, since=0)
    slow_job.edit(first)
    await_launch(slow_job, workers(first)[-1])
    edited = time.time()
    slow_job.edit(then)
    await_training(slow_job, then, since=edited)
    with capsys.disabled():
        print(f"\n{begin}→{first}→{then} took {time.time() - edited:.1f} s", end="")  # noqa: T201
    assert training.harm(slow_job.log()) == []
    await_repetition(slow_job)


def test_workers_that_come_while_ranks_start_train_without_help(
    slow_job: TrainingJob, capsys: pytest.CaptureFixture[str]
) -> None:
    """The job starts at its minimum: before rank 0 listens comes a worker, and while that starts, another."""
    manifest = slow(3, seconds=START)
    spec = manifest["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    (worker,) = spec["containers"]
    gate = {"name": GATE, "image": worker["image"], "command": ["sh", "-c", WAIT]}
    spec["initContainers"] = [gate]

    def let(pod: str) -> None:
        opened = ("exec", pod, "--container", GATE, "--", "touch", "/go")
        slow_job.cluster.kubectl("-n", slow_job.namespace, *opened)

    slow_job.create(ENVIRONMENT, manifest=manifest)
    elder, *late = workers(3, job=NAME)
    for pod in late:
        await_launch(slow_job, elder)
        since = time.time()
        let(pod)
        elder = pod
    await_training(slow_job, 3, since=0)
    with capsys.disabled():
        print(f"\nat the minimum, the last worker took {time.time() - since:.1f} s", end="")  # noqa: T201
    assert training.harm(slow_job.log()) == []
    await_repetition(slow_job)
