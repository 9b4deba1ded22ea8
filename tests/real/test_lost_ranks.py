"""Ranks killed, pods evicted, nodes lost, with real Elastic Horovod: training goes on, and comes back to full size.

Of workers that others delete rank 0 leaves in time each time, and the pod goes with it.
"""

import os
import time
from collections.abc import Mapping, Sequence
from statistics import median

import pytest

from lab.cluster import Cluster
from lab.registration import evictions_wait
from lab.replicas import Controller, Webhook
from lab.training import log as training
from lab.training.job import TrainingJob, example, workers
from lab.training.log import Recovery, recovery
from mpijob_elastic import names
from mpijob_elastic.decide import lost_ranks
from mpijob_elastic.decide.moves import SEASONED
from tests.real.losses import Going, Loss, Way, go
from tests.real.nodes import SECOND, schedule_on
from tests.real.pods import until

pytestmark = pytest.mark.usefixtures("training_image", "operator", "elastic")

ROUNDS = int(os.environ.get("LOST_RANKS_ROUNDS", "4"))
DELETION_ROUNDS = int(os.environ.get("DELETIONS_ROUNDS", "1"))
WAYS = [
    way
    for way in Way
    if way.name.lower() in os.environ.get("DELETIONS_WAYS", way.name).lower().split(",")
]
LOSSES = [
    loss
    for loss in Loss
    if loss.name.lower() in os.environ.get("LOST_RANKS_LOSSES", loss.name).lower().split(",")
]
SIZE = 3
COMMIT_STEPS = 4
# It never ends by itself.
ENDLESS = {
    "TARGET_STEPS": "1000000",
    "MAX_STEPS": "1000000",
    "STEP_SECONDS": "0.5",
    "COMMIT_STEPS": str(COMMIT_STEPS),
}
GLOO_TIMEOUT = {"HOROVOD_GLOO_TIMEOUT_SECONDS": os.environ.get("LOST_RANKS_GLOO_TIMEOUT", "30")}
# Seconds. A worker whose rank nobody had seen before it was lost is only tried again after so long;
# and a driver that tells rank 0 of hosts, while that is on a lost node, tries three times for two
# minutes.
PATIENCE = lost_ranks.NEVER_TRAINED_AFTER + 600
# By then two looks have seen its rank, so a look into the launcher can show its end.
SEEN_AFTER = lost_ranks.LOOK_SOON + lost_ranks.LOOK_SELDOM + lost_ranks.TOGETHER


def incarnations(job: TrainingJob) -> dict[str, int] | None:
    """The numbers of the host names of all workers, by pod; None while not all are in the list."""
    hosts = [line.rpartition(":")[0] for line in job.hosts()]
    return (
        {names.pod_of(host): names.incarnation_of(host) for host in hosts}
        if len(hosts) == SIZE
        else None
    )


def all_train(job: TrainingJob) -> bool | None:
    """Tell whether all ranks took part in the last step, and all pods run."""
    steps, pods = job.log().steps, job.pods()
    return (
        bool(steps)
        and steps[-1].size == SIZE
        and len(pods) == SIZE + 1
        and set(pods.values()) == {"Running"}
    ) or None


def trained_for(job: TrainingJob, host: str, *, seconds: float) -> bool | None:
    """Tell whether its last rank began so long ago."""
    return (
        max(one.time for one in job.log().starts if one.host == host) + seconds < time.time()
        or None
    )


def lose(job: TrainingJob, loss: Loss, pod: str) -> Recovery:
    """Lose the rank of a worker, and wait until all train again, it under its next name.

    The rank of an evicted worker has time to leave; if a probe sees that it did, the worker keeps
    its name.
    """
    until("all train", lambda: all_train(job), patience=PATIENCE)
    before = until("all are listed", lambda: incarnations(job), patience=PATIENCE)
    schedule_on(job.cluster, loss.replaced_on)
    if loss is Loss.KILLED:
        until(
            f"{pod} was looked into",
            lambda: trained_for(job, pod, seconds=SEEN_AFTER),
            patience=PATIENCE,
        )
    since = time.time()
    loss.inflict(job.cluster, job.namespace, pod)

    def over() -> Recovery | None:
        return recovery(job.log(), pod, size=SIZE, since=since)

    recovered = until(f"all train again after {pod}: {loss.value}", over, patience=PATIENCE)
    next_names, same = {**before, pod: before[pod] + 1}, [before] if loss is Loss.EVICTED else []
    assert incarnations(job) in [next_names, *same]
    job.cluster.start_node(SECOND)  # unless it is up
    return recovered


def told(what: str, figures: Mapping[str, Sequence[float]]) -> str:
    """Return the measurements, each as median and worst."""
    words = (
        f"{name} {median(each):.1f} s (worst {max(each):.1f} s)"
        for name, each in figures.items()
        if each
    )
    return f"{what}, {len(next(iter(figures.values())))} rounds: {', '.join(words)}"


def told_of_losses(loss: Loss, recoveries: Sequence[tuple[Loss, Recovery]]) -> str:
    them = [one for kind, one in recoveries if kind is loss]
    return told(
        loss.value,
        {"went on": [one.went_on for one in them], "full size": [one.full for one in them]},
    )


def told_of_deletions(way: Way, rounds: Sequence[tuple[Going, Recovery]]) -> str:
    figures = {
        "rank left": [going.rank_left - going.since for going, _ in rounds],
        "pod gone after its rank": [going.pod_gone - going.rank_left for going, _ in rounds],
        "went on": [recovered.went_on for _, recovered in rounds],
        "full size": [recovered.full for _, recovered in rounds],
    }
    return told(way.value, figures)


@pytest.mark.timeout(600 + 300 * ROUNDS)
def test_training_outlives_lost_ranks_and_comes_back_to_full_size(
    cluster: Cluster, namespace: str, two_nodes: None, capsys: pytest.CaptureFixture[str]
) -> None:
    job = TrainingJob(cluster=cluster, namespace=namespace)
    job.create({**ENDLESS, **GLOO_TIMEOUT})
    job.edit(SIZE)
    pods = workers(SIZE)
    recoveries: list[tuple[Loss, Recovery]] = []
    for number in range(ROUNDS):
        # Each worker in turn meets each loss.
        loss, pod = LOSSES[number % len(LOSSES)], pods[number % SIZE]
        recoveries.append((loss, lose(job, loss, pod)))
        with capsys.disabled():  # many rounds last long
            print(f"\n{number + 1}, {pod}: {recoveries[-1]}", end="")  # noqa: T201
    with capsys.disabled():
        print("", *(told_of_losses(loss, recoveries) for loss in LOSSES), sep="\n")  # noqa: T201

    log = job.log()
    assert log.steps[0].step == 1
    assert training.lost_steps(log.steps) <= COMMIT_STEPS
    assert log.steps[-1].loss < log.steps[0].loss
    assert job.outcome() == "Running"


def oldest(job: TrainingJob) -> str | None:
    """The host of rank 0, once all train and are listed under their own names."""
    steps = job.log().steps
    if not steps or steps[-1].size != SIZE or set(job.pods().values()) != {"Running"}:
        return None
    return steps[-1].hosts[0] if len(job.hosts()) == SIZE else None


@pytest.mark.timeout(600 + 4 * 100 * DELETION_ROUNDS)
def test_rank_0_of_a_worker_that_somebody_deletes_leaves_in_time(
    cluster: Cluster,
    namespace: str,
    own_node: None,
    elastic: Controller,
    webhook: Webhook,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert elastic.ready()
    until("evictions wait for the drain", lambda: evictions_wait(cluster) or None)
    job = TrainingJob(cluster=cluster, namespace=namespace)
    job.create(ENDLESS)
    job.edit(SIZE)
    found: dict[Way, list[tuple[Going, Recovery]]] = {way: [] for way in WAYS}
    for number in range(DELETION_ROUNDS):
        for way, rounds in found.items():
            until("all train", lambda: oldest(job))
            if (
                way is Way.DRAIN
            ):  # before, an eviction waits: only this worker surely has the state of the training
                time.sleep(SEASONED)
            pod = until("all train", lambda: oldest(job))
            going = go(job, way, pod)
            back = until(
                f"{pod} trains again after {way.value}",
                lambda pod=pod, since=going.since: recovery(job.log(), pod, size=SIZE, since=since),  # type: ignore[misc]
            )
            rounds.append((going, back))
            with capsys.disabled():  # many rounds last long
                print(f"\n{number + 1}, {told_of_deletions(way, rounds[-1:])}", end="")  # noqa: T201
    with capsys.disabled():
        print("", *(told_of_deletions(way, rounds) for way, rounds in found.items()), sep="\n")  # noqa: T201

    if Way.DRAIN in WAYS:
        assert 'kind="Eviction",operation="CREATE",outcome="postponed"' in webhook.metrics()
    assert training.harm(job.log()) == []
    assert {line.rpartition(":")[0] for line in job.hosts()} == {
        f"train-worker-{index}" for index in range(SIZE)
    }


def test_a_job_that_is_deleted_while_it_trains_does_not_keep_its_nodes_for_the_drain_timeout(
    cluster: Cluster, namespace: str, own_node: None, elastic: Controller
) -> None:
    assert elastic.ready()
    job, manifest = TrainingJob(cluster=cluster, namespace=namespace), example()
    manifest["metadata"]["annotations"][names.DRAIN_TIMEOUT] = "10m"
    job.create(ENDLESS, manifest=manifest)
    job.edit(SIZE)
    until("all train", lambda: oldest(job))
    job.delete()  # waits two minutes for its pods
