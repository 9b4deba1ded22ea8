"""Two jobs of real Elastic Horovod that want the same GPUs: the first gives way to the second, and grows again.

A gang loses workers to a job of higher priority, or a job gives quota of Kueue back. The ranks
leave in time.
"""

import asyncio
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pytest

from lab.cluster import Cluster
from lab.errors import LabError
from lab.training import log as training
from lab.training.job import TrainingJob, example, workers
from mpijob_elastic import names
from mpijob_elastic.capabilities.kueue.facts import LABEL_QUEUE
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.history import most_requested, recorded
from tests.lab.job import Job
from tests.peers import coscheduling
from tests.peers.gpus import priority
from tests.real.nodes import FIRST
from tests.real.pods import until

pytestmark = pytest.mark.usefixtures("own_node", "elastic", "operator", "training_image")

Object = dict[str, Any]
NOTHING: Mapping[str, str] = {}
GPU = "nvidia.com/gpu"
PATIENCE = 300.0  # seconds
STEP = {"STEP_SECONDS": "0.25", "COMMIT_STEPS": "4"}
ENDLESS = {"TARGET_STEPS": "1000000", "MAX_STEPS": "1000000", **STEP}
SHORT = {"TARGET_STEPS": "100", **STEP}


@contextmanager
def gpus(cluster: Cluster, count: int) -> Iterator[None]:
    """Have the node say that it has so many GPUs, as an administrator may, as long as the block lasts."""

    def say(count: str | None) -> None:
        patch = json.dumps({"status": {"capacity": {GPU: count}}})
        cluster.kubectl(
            "patch", "node", FIRST, "--subresource=status", "--type=merge", "--patch", patch
        )

    say(str(count))
    allocatable = rf"--for=jsonpath={{.status.allocatable.nvidia\.com/gpu}}={count}"
    cluster.kubectl("wait", "node", FIRST, allocatable, "--timeout=120s")
    try:
        yield
    finally:
        say(None)


def on_gpus(
    size: int,
    *,
    annotations: Mapping[str, str] = NOTHING,
    labels: Mapping[str, str] = NOTHING,
    specs: Mapping[str, str] = NOTHING,
) -> Object:
    """Return the example that trains, with a GPU for each of its workers, and at least two of them.

    specs: what the pods of launcher and workers have in theirs.
    """
    manifest = example()
    manifest["metadata"]["labels"] = {**labels}
    manifest["metadata"]["annotations"] |= {names.MIN_REPLICAS: "2", **annotations}
    replicas = manifest["spec"]["mpiReplicaSpecs"]
    pods = {role: of["template"]["spec"] for role, of in replicas.items()}
    for spec in pods.values():
        spec.update(specs)
    [launcher] = pods["Launcher"]["containers"]
    launcher["command"] = [
        "2" if word == "1" else word for word in launcher["command"]
    ]  # -np and --min-np
    [worker] = pods["Worker"]["containers"]
    worker["resources"]["limits"] = {GPU: "1"}
    replicas["Worker"]["replicas"] = size
    return manifest


@dataclass(frozen=True, kw_only=True)
class Shared:
    """Seconds from the creation of the second job until both train with two; from its end until the first has four.

    pause: the longest time in which the first job did no step meanwhile. kept: the workers with
    which it went on; listed: what its launcher was told then.
    """

    squeezed: float
    started: float
    back: float
    pause: float
    kept: tuple[str, ...]
    listed: tuple[str, ...]

    def told(self, first: str, second: str) -> str:
        """Return the seconds in words."""
        return (
            f"after the creation of {second}: {first} trains with 2 after {self.squeezed:.1f} s, "
            f"{second} after {self.started:.1f} s; after its end {first} trains with 4 after {self.back:.1f} s; "
            f"{first} was never without a step for more than {self.pause:.1f} s"
        )


def share(first: TrainingJob, first_is: Object, second: TrainingJob, second_is: Object) -> Shared:
    """Have the second job take from the first one what it needs, and end.

    Each gets the manifest beside it.
    """
    first.create(ENDLESS, manifest=first_is)
    _trains(first, 4, since=0)
    created = time.time()
    second.create(SHORT, manifest=second_is)
    squeezed = _trains(first, 2, since=created)
    started = _trains(second, 2, since=created)
    listed = first.hosts()
    until(
        f"the end of {second.name}",
        lambda: second.outcome() == "Succeeded" or None,
        patience=PATIENCE,
    )
    ended = max(one.time for one in second.log().ends)
    back = _trains(first, 4, since=ended)
    assert _pods(back) == tuple(names.worker(first.name, index) for index in range(4))
    meanwhile = [step for step in first.log().steps if created <= step.time <= back.time]
    return Shared(
        squeezed=squeezed.time - created,
        started=started.time - created,
        back=back.time - ended,
        pause=training.longest_pause(meanwhile),
        kept=_pods(squeezed),
        listed=tuple(listed),
    )


def _trains(job: TrainingJob, size: int, *, since: float) -> training.Told:
    """Wait until so many ranks train; where they do not, the error has what pods, Events and launcher say."""
    try:
        return until(
            f"{job.name} trains with {size} ranks",
            lambda: training.first_with(job.log().steps, size=size, since=since),
            patience=PATIENCE,
        )
    except AssertionError as error:
        for asked in (("get", "pods,events"), ("logs", names.launcher(job.name), "--tail=150")):
            with suppress(LabError):
                error.add_note(job.cluster.kubectl("-n", job.namespace, *asked))
        raise


def _pods(step: training.Told) -> tuple[str, ...]:
    return tuple(sorted(names.pod_of(host) for host in step.hosts))


VOLCANO = {"mpijob-elastic/gang": "volcano", "scheduling.volcano.sh/queue-name": "team"}
COSCHEDULING = {"mpijob-elastic/gang": "coscheduling"}


@dataclass(frozen=True, kw_only=True)
class Two:
    """The two jobs of a test; the second has a class of high priority."""

    client: ApiWriter
    first: TrainingJob
    second: TrainingJob
    capsys: pytest.CaptureFixture[str]

    async def preempt(
        self, annotations: Mapping[str, str], specs: Mapping[str, str] = NOTHING
    ) -> tuple[Shared, set[str]]:
        """Have the second job take two of the first one's four workers, and end; return which were deleted, too.

        specs: what all pods have in theirs.
        """
        first, second = self.first, self.second
        with gpus(first.cluster, 4):
            async with (
                priority(self.client, first.namespace, takes=True) as high,
                recorded(self.client, first.namespace, job=first.name) as history,
            ):
                large = on_gpus(4, annotations=annotations, specs=specs)
                urgent = on_gpus(2, annotations=annotations, specs={**specs, **high})
                shared = await asyncio.to_thread(share, first, large, second, urgent)
        taken = {*history.deleted()}
        with self.capsys.disabled():
            print(f"\n{shared.told(first.name, second.name)}; taken: {sorted(taken)}")  # noqa: T201

        assert training.harm(first.log()) == []
        assert training.problems(second.log()) == []
        told = await Job(client=self.client, namespace=first.namespace, name=first.name).events()
        assert any(
            reason == "Disruption" and "DisruptionTarget" in message for reason, message in told
        )
        assert "HostsLost" not in {reason for reason, _ in told}
        return shared, taken


@pytest.fixture
def two(
    cluster: Cluster, namespace: str, client: ApiWriter, capsys: pytest.CaptureFixture[str]
) -> Two:
    # Not `train`: tests on the same machine at the same time look for ranks by the host.
    first, second = (
        TrainingJob(cluster=cluster, namespace=namespace, name=name) for name in ("grower", "rival")
    )
    return Two(client=client, first=first, second=second, capsys=capsys)


@pytest.mark.timeout(1500)
@pytest.mark.usefixtures("volcano")
async def test_volcano_takes_only_workers_above_the_least_size_and_no_rank_is_killed(
    two: Two,
) -> None:
    shared, taken = await two.preempt(VOLCANO)
    least = workers(2, job=two.first.name)
    assert taken == {*workers(4, job=two.first.name)} - {*least}
    assert shared.kept == least
    assert shared.listed == tuple(f"{name}:1" for name in least)


@pytest.mark.timeout(1500)
@pytest.mark.usefixtures("coscheduler")
async def test_of_the_workers_that_coscheduling_takes_no_rank_is_killed(two: Two) -> None:
    """kube-scheduler chooses them; no mark of a pod protects it, nor does its index."""
    shared, taken = await two.preempt(COSCHEDULING, {"schedulerName": coscheduling.NAME})
    assert {*workers(4, job=two.first.name)} - {*shared.kept} <= taken


@pytest.fixture
def room(cluster: Cluster) -> Iterator[None]:
    """The node has more GPUs than the quota of four, so that Kueue alone decides."""
    with gpus(cluster, 8):
        yield


@pytest.mark.timeout(1500)
@pytest.mark.usefixtures("kueue_serves", "room")
async def test_a_job_gives_quota_back_to_a_job_that_waits_and_no_rank_is_killed(
    two: Two, namespace: str, client: ApiWriter, queue: str
) -> None:
    first, second = two.first, two.second
    queued = on_gpus(4, labels={LABEL_QUEUE: queue})
    async with (
        recorded(client, namespace, job=first.name) as mine,
        recorded(client, namespace, job=second.name) as theirs,
    ):
        shared = await asyncio.to_thread(share, first, queued, second, queued)
    with two.capsys.disabled():
        print(f"\n{shared.told(first.name, second.name)}")  # noqa: T201

    assert shared.kept == workers(2, job=first.name)
    assert shared.listed == tuple(f"{name}:1" for name in shared.kept)
    assert most_requested(GPU, mine, theirs) == 4
    assert mine.deleted_while_published() == []
    assert training.harm(first.log()) == []
    assert training.problems(second.log()) == []
    told = await Job(client=client, namespace=namespace, name=first.name).events()
    drained = {
        message.partition(" after")[0] for reason, message in told if reason == "SurplusDeleted"
    }
    assert drained == {
        f"{name} is being deleted: drained" for name in workers(4, job=first.name)[2:]
    }
    assert not {"HostsLost", "DrainTimeout"} & {reason for reason, _ in told}
