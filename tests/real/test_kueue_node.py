"""Two jobs in a queue of Kueue, with real Elastic Horovod: one gives quota back to the other, and no rank is killed."""

import asyncio
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from lab.cluster import Cluster
from lab.training import log as training
from lab.training.job import TrainingJob, example, workers
from mpijob_elastic import names
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.history import most_requested, recorded
from tests.lab.job import Job
from tests.peers import queues
from tests.real.two_nodes import FIRST
from tests.real.waiting import until

pytestmark = pytest.mark.usefixtures("own_node", "kueue_serves", "elastic", "operator", "training_image")

GPU = "nvidia.com/gpu"
ROOM = 8  # of the node: more than the quota of four, so that Kueue alone decides
PATIENCE = 300.0  # seconds
STEP = {"STEP_SECONDS": "0.25", "COMMIT_STEPS": "4"}
ENDLESS = {"TARGET_STEPS": "1000000", "MAX_STEPS": "1000000", **STEP}
SHORT = {"TARGET_STEPS": "100", **STEP}


@pytest.fixture
def gpus(cluster: Cluster) -> Iterator[None]:
    """The node says that it has GPUs, as an administrator may have it say."""

    def say(count: str | None) -> None:
        patch = json.dumps({"status": {"capacity": {GPU: count}}})
        cluster.kubectl("patch", "node", FIRST, "--subresource=status", "--type=merge", "--patch", patch)

    say(str(ROOM))
    allocatable = rf"--for=jsonpath={{.status.allocatable.nvidia\.com/gpu}}={ROOM}"
    cluster.kubectl("wait", "node", FIRST, allocatable, "--timeout=120s")
    yield
    say(None)


def queued() -> dict[str, Any]:
    """Return the example that trains, in the queue and with the sizes of the example for Kueue: least 2, most 4."""
    manifest, sizes = example(), queues.example("job")["MPIJob"]
    manifest["metadata"]["labels"] = sizes["metadata"]["labels"]
    manifest["metadata"]["annotations"][names.MIN_REPLICAS] = sizes["metadata"]["annotations"][names.MIN_REPLICAS]
    replicas = manifest["spec"]["mpiReplicaSpecs"]
    [launcher] = replicas["Launcher"]["template"]["spec"]["containers"]
    launcher["command"] = ["2" if word == "1" else word for word in launcher["command"]]  # -np and --min-np
    [worker] = replicas["Worker"]["template"]["spec"]["containers"]
    worker["resources"]["limits"] = {GPU: "1"}
    replicas["Worker"]["replicas"] = sizes["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"]
    return manifest


@dataclass(frozen=True, kw_only=True)
class Shared:
    """Seconds from the creation of the second job until both train with two; from its end until the first has four."""

    squeezed: float
    started: float
    back: float


def share(first: TrainingJob, second: TrainingJob) -> Shared:
    """Have the second job take from the first one what it needs, and end."""

    def trains(job: TrainingJob, size: int, *, since: float) -> training.Told:
        step = until(
            f"{job.name} trains with {size} ranks",
            lambda: training.first_with(job.log().steps, size=size, since=since),
            patience=PATIENCE,
        )
        assert {names.pod_of(host) for host in step.hosts} == {*workers(size, job=job.name)}
        return step

    first.create(ENDLESS, manifest=queued())
    trains(first, 4, since=0)
    created = time.time()
    second.create(SHORT, manifest=queued())
    squeezed = trains(first, 2, since=created).time - created
    started = trains(second, 2, since=created).time - created
    assert first.hosts() == [f"{name}:1" for name in workers(2, job=first.name)]
    until(f"the end of {second.name}", lambda: second.outcome() == "Succeeded" or None, patience=PATIENCE)
    ended = max(one.time for one in second.log().ends)
    back = trains(first, 4, since=ended).time - ended
    return Shared(squeezed=squeezed, started=started, back=back)


@pytest.mark.timeout(1500)
@pytest.mark.usefixtures("gpus", "queue")
async def test_a_job_gives_quota_back_to_a_job_that_waits_and_no_rank_is_killed(
    cluster: Cluster, namespace: str, client: ApiWriter, capsys: pytest.CaptureFixture[str]
) -> None:
    # Not `train`: tests on the same machine at the same time look for ranks by the host.
    first, second = (TrainingJob(cluster=cluster, namespace=namespace, name=name) for name in ("grower", "rival"))
    async with (
        recorded(client, namespace, job=first.name) as mine,
        recorded(client, namespace, job=second.name) as theirs,
    ):
        shared = await asyncio.to_thread(share, first, second)
    with capsys.disabled():
        print(  # noqa: T201
            f"\nafter the creation of {second.name}: {first.name} trains with 2 after {shared.squeezed:.1f} s, "
            f"{second.name} after {shared.started:.1f} s; "
            f"after its end {first.name} trains with 4 after {shared.back:.1f} s"
        )

    assert most_requested(GPU, mine, theirs) == 4
    assert mine.deleted_while_published() == []
    log = first.log()
    assert training.KILLED not in log.exits
    assert log.blacklisted == ()
    assert training.lost_steps(log.steps) == 0
    assert training.problems(second.log()) == []
    told = await Job(client=client, namespace=namespace, name=first.name).events()
    drained = {message.partition(" after")[0] for reason, message in told if reason == "SurplusDeleted"}
    assert drained == {f"{name} is being deleted: drained" for name in workers(4, job=first.name)[2:]}
    assert not {"HostsLost", "DrainTimeout"} & {reason for reason, _ in told}
