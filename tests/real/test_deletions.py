"""Workers that others delete, with real Elastic Horovod: rank 0 leaves in time each time, and the pod goes with it."""

import os
import time
from statistics import median

import pytest

from lab.cluster import Cluster
from lab.operator.process import Operator
from lab.registration import evictions_wait
from lab.replicas import Controller, Webhook
from lab.training import log as training
from lab.training.job import TrainingJob, example
from lab.training.log import Recovery, recovery
from mpijob_elastic import names
from mpijob_elastic.decide.disruption import SEASONED
from tests.real.losses import Going, Way, go
from tests.real.pods import until

ROUNDS = int(os.environ.get("DELETIONS_ROUNDS", "1"))
WAYS = [way for way in Way if way.name.lower() in os.environ.get("DELETIONS_WAYS", way.name).lower().split(",")]
SIZE = 3
ENVIRONMENT = {"TARGET_STEPS": "1000000", "MAX_STEPS": "1000000", "STEP_SECONDS": "0.5", "COMMIT_STEPS": "4"}


def oldest(job: TrainingJob) -> str | None:
    """The host of rank 0, once all train and are listed under their own names."""
    steps = job.log().steps
    if not steps or steps[-1].size != SIZE or set(job.pods().values()) != {"Running"}:
        return None
    return steps[-1].hosts[0] if len(job.hosts()) == SIZE else None


def told(way: Way, rounds: list[tuple[Going, Recovery]]) -> str:
    """Return the measurements of a way, each as median and worst."""
    figures = {
        "rank left": [going.rank_left - going.since for going, _ in rounds],
        "pod gone after its rank": [going.pod_gone - going.rank_left for going, _ in rounds],
        "went on": [recovered.went_on for _, recovered in rounds],
        "full size": [recovered.full for _, recovered in rounds],
    }
    words = (f"{what} {median(seconds):.1f} s (worst {max(seconds):.1f} s)" for what, seconds in figures.items())
    return f"{way.value}, {len(rounds)} rounds: {', '.join(words)}"


@pytest.mark.timeout(600 + 4 * 100 * ROUNDS)
def test_rank_0_of_a_worker_that_somebody_deletes_leaves_in_time(
    cluster: Cluster,
    namespace: str,
    own_node: None,
    training_image: None,
    operator: Operator,
    elastic: Controller,
    webhook: Webhook,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert elastic.ready()
    until("evictions wait for the drain", lambda: evictions_wait(cluster) or None)
    job = TrainingJob(cluster=cluster, namespace=namespace)
    job.create(ENVIRONMENT)
    job.edit(SIZE)
    found: dict[Way, list[tuple[Going, Recovery]]] = {way: [] for way in WAYS}
    for number in range(ROUNDS):
        for way, rounds in found.items():
            until("all train", lambda: oldest(job))
            if (
                way is Way.DRAIN
            ):  # before, an eviction waits: only this worker is sure to have the state of the training
                time.sleep(SEASONED)
            pod = until("all train", lambda: oldest(job))
            going = go(job, way, pod)
            back = until(
                f"{pod} trains again after {way.value}",
                lambda pod=pod, since=going.since: recovery(job.log(), pod, size=SIZE, since=since),  # type: ignore[misc]
            )
            rounds.append((going, back))
            with capsys.disabled():  # many rounds last long
                print(f"\n{number + 1}, {told(way, rounds[-1:])}", end="")  # noqa: T201
    with capsys.disabled():
        print("", *(told(way, rounds) for way, rounds in found.items()), sep="\n")  # noqa: T201

    if Way.DRAIN in WAYS:
        assert 'kind="Eviction",operation="CREATE",outcome="postponed"' in webhook.metrics()
    assert training.harm(job.log()) == []
    assert {line.rpartition(":")[0] for line in job.hosts()} == {f"train-worker-{index}" for index in range(SIZE)}


def test_a_job_that_is_deleted_while_it_trains_does_not_keep_its_nodes_for_the_drain_timeout(
    cluster: Cluster, namespace: str, own_node: None, training_image: None, operator: Operator, elastic: Controller
) -> None:
    assert elastic.ready()
    job, manifest = TrainingJob(cluster=cluster, namespace=namespace), example()
    manifest["metadata"]["annotations"][names.DRAIN_TIMEOUT] = "10m"
    job.create(ENVIRONMENT, manifest=manifest)
    job.edit(SIZE)
    until("all train", lambda: oldest(job))
    job.delete()  # waits two minutes for its pods
