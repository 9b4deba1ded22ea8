"""The watches whose silence counts, and the changes that wake a job."""

from random import Random
from typing import Any

import msgspec
import pytest

from mpijob_elastic import names
from mpijob_elastic.capabilities import live
from mpijob_elastic.capabilities.autoscaling import Autoscaling
from mpijob_elastic.capabilities.kueue import Kueue
from mpijob_elastic.capabilities.kueue.facts import LABEL_QUEUE, WORKLOADS
from mpijob_elastic.kube.meta import Identity, TooLarge
from mpijob_elastic.kube.resources import CONFIG_MAPS, MPI_JOBS, NODES, PODS
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model.memory import Left, Memory, pod_fingerprint, render_memory
from mpijob_elastic.model.pod import Probe
from mpijob_elastic.observe import nodes
from mpijob_elastic.observe.caches import Caches
from mpijob_elastic.observe.watching import JobKey
from tests.counted import entered
from tests.doubles.api import TinyApi
from tests.faults.faults import Answer, Request
from tests.faults.proxy import FaultProxy
from tests.faults.waiting import eventually
from tests.product.observe.cached import job_of, running, view_of

REMEMBERS = render_memory(Memory(left={"train-worker-0": Left(pod=pod_fingerprint("pod"), at=1.0)}))
LATER = "2026-11-23T05:00:00Z"
NEEDED = {"mpijobs", "pods", "configmaps", "roles"}


def unwatched(client: ApiWriter, woken: list[JobKey] | None = None) -> Caches:
    """Caches that hear only what a test tells them."""
    enqueue = (lambda _: None) if woken is None else woken.append
    return Caches(
        client,
        namespaces=(),
        enqueue=enqueue,
        random=Random(1),
        read=live.READ,
        capabilities=live.seeing,
        now=lambda: 7.0,
    )


@pytest.mark.parametrize("node_watch", [True, False])
async def test_each_watch_has_an_age(client: ApiWriter, node_watch: bool) -> None:
    async with running(client, node_watch=node_watch) as caches:
        assert caches.ages().keys() == NEEDED | ({"nodes"} if node_watch else set())
        assert all(0.0 <= age < 60.0 for age in caches.ages().values())


async def test_nodes_that_may_not_be_read_make_nobody_unhealthy(
    client: ApiWriter, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of_nodes(request: Request) -> bool:
        return request.path == NODES.path()

    monkeypatch.setattr(nodes, "PATIENCE", 0.01)
    with proxy.inject(Answer(status=403, reason="Forbidden"), on=of_nodes):
        async with running(client) as caches:
            assert caches.ages().keys() == NEEDED


def metadata(
    name: str, *, uid: str, job: str = "train", version: int = 1, **others: Any
) -> dict[str, Any]:
    owner = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MPIJob",
        "name": job,
        "uid": "job",
        "controller": True,
    }
    identity = {"name": name, "namespace": "n", "uid": uid, "resourceVersion": str(version)}
    return {**identity, "ownerReferences": [owner], **others}


def pod_of(
    job: str = "train", *, version: int, index: int = 0, deleted: str | None = None, **status: Any
) -> bytes:
    labels = {names.LABEL_JOB_ROLE: names.ROLE_WORKER}
    name = f"{job}-worker-{index}"
    found = metadata(
        name, uid="pod", job=job, version=version, labels=labels, deletionTimestamp=deleted
    )
    return msgspec.json.encode({"metadata": found, "status": status})


async def test_only_what_is_read_of_a_pod_wakes_its_job(client: ApiWriter) -> None:
    woken: list[JobKey] = []
    caches = unwatched(client, woken)
    caches.see(PODS, pod_of(version=1, phase="Pending"))
    caches.see(PODS, pod_of(version=2, phase="Pending", podIP="10.0.0.1"))
    assert woken == [("n", "train")]
    caches.see(PODS, pod_of(version=3, phase="Running", podIP="10.0.0.1"))
    caches.see(PODS, pod_of(version=4, phase="Running", podIP="10.0.0.2"))
    assert woken == [("n", "train")] * 2
    [pod] = caches.pods.store.values()
    assert pod.metadata.resource_version == "4"


CONFIG = metadata("train-config", uid="config", annotations={names.MEMORY: REMEMBERS})


def see_the_end(caches: Caches, words: str) -> None:
    """A worker says something at its end, and is gone."""
    ended = {"name": "worker", "state": {"terminated": {"exitCode": 0, "message": f"{words}\n"}}}
    caches.see(PODS, pod_of(version=2, deleted=LATER, phase="Succeeded", containerStatuses=[ended]))
    caches.see_gone(PODS, "n", Identity(name="train-worker-0", uid="pod", resource_version="2"))


@pytest.mark.parametrize(
    ("words", "left"),
    [(names.RANKS_LEFT, True), (names.NO_RANK_SEEN, False), ("Killed", None), ("", None)],
)
async def test_what_a_worker_said_at_its_end_outlives_its_pod(
    client: ApiWriter, words: str, left: bool | None
) -> None:
    caches = unwatched(client)
    caches.see(MPI_JOBS, train_of())
    caches.see(CONFIG_MAPS, msgspec.json.encode({"metadata": CONFIG, "data": {}}))
    see_the_end(caches, words)
    view = view_of(caches)
    assert view.workers == ()
    seen = (
        Probe()
        if left is None
        else Probe(busy_seen=left, left=left, idle_at=7.0, asked_at=7.0, idle_since=7.0)
    )
    assert view.former == {"train-worker-0": seen}


async def test_nothing_is_kept_of_workers_that_end_after_their_job(client: ApiWriter) -> None:
    """The garbage collector deletes them, and each says its last words: a little memory for every job that ever was."""
    caches, asked = unwatched(client), Probe(failed=1)
    see_the_end(caches, names.RANKS_LEFT)
    caches.see(CONFIG_MAPS, msgspec.json.encode({"metadata": CONFIG, "data": {}}))
    caches.see(MPI_JOBS, train_of())
    assert view_of(caches, probes=lambda _pod, _occasion: asked).former == {"train-worker-0": asked}


@pytest.mark.parametrize(("served", "known"), [("v1beta2", "team"), ("v1beta1", ""), ("", "")])
async def test_a_job_has_a_queue_where_kueue_serves_the_version_that_is_used(
    api: TinyApi, client: ApiWriter, served: str, known: str
) -> None:
    if served:
        api.objects[f"/apis/kueue.x-k8s.io/{served}"] = {"resources": [{"name": "workloads"}]}
    api.objects[MPI_JOBS.path(name="train")] = msgspec.json.decode(
        job_of("train", labels={LABEL_QUEUE: "team"})
    )
    async with running(client) as caches:
        await eventually(lambda: (view_of(caches).of(Kueue) or Kueue(None)).queue is not None)
        found = view_of(caches).of(Kueue).queue
        assert (found.name, found.ignored) == (known, "" if known else "team")
        assert (WORKLOADS.plural in caches.ages()) is bool(known), (
            "its age counts while it is served"
        )


@pytest.mark.parametrize(
    "hostile", [{"status": {"clusterName": "x" * 65_536}}, {"spec": {"queueName": "x" * 65_536}}]
)
async def test_an_object_of_a_capability_with_more_text_than_may_be_kept_is_not_read(
    client: ApiWriter, hostile: dict[str, Any]
) -> None:
    with pytest.raises(TooLarge, match="65,536 bytes"):
        unwatched(client).see(
            WORKLOADS, msgspec.json.encode({"metadata": {"name": "train-launcher"}, **hostile})
        )


FILLS = {"autoscale": "fill", "min-replicas": "1", "max-replicas": "4"}
UNSCHEDULABLE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "no GPU",
}


@pytest.mark.parametrize(
    ("other", "status", "waits"),
    [
        ({}, {"conditions": [UNSCHEDULABLE]}, 1),
        ({}, {}, 0),
        ({"gpus": False}, {"conditions": [UNSCHEDULABLE]}, 0),
    ],
)
async def test_a_job_that_fills_sees_which_workers_others_need(
    client: ApiWriter, other: dict[str, Any], status: dict[str, Any], waits: int
) -> None:
    caches = unwatched(client)
    caches.see(MPI_JOBS, job_of("fills", FILLS))
    caches.see(MPI_JOBS, job_of("plain", **other))
    caches.see(MPI_JOBS, job_of("rival", **other))
    for job in ("fills", "rival"):
        caches.see(PODS, pod_of(job, version=1, **status))

    assert len(view_of(caches, "fills").of(Autoscaling).others_wait or ()) == waits
    assert view_of(caches, "plain").of(Autoscaling) is None
    former = msgspec.json.decode(pod_of("rival", version=2, index=0, **status))
    former["metadata"]["ownerReferences"][0]["uid"] = "a former job of that name"
    caches.see(PODS, msgspec.json.encode(former))
    assert view_of(caches, "fills").of(Autoscaling).others_wait == ()
    caches.see(PODS, pod_of("rival", version=3, phase="Running"))
    assert view_of(caches, "fills").of(Autoscaling).others_wait == ()


async def test_a_job_that_fills_looks_at_no_pod_that_does_not_wait(client: ApiWriter) -> None:
    caches = unwatched(client)
    caches.see(MPI_JOBS, job_of("fills", FILLS))
    caches.see(MPI_JOBS, job_of("rival"))

    def calls(pods: int) -> int:
        for index in range(pods):
            caches.see(PODS, pod_of("rival", index=index, version=1, phase="Running"))
        return len(entered(lambda: view_of(caches, "fills")))

    calls(0)  # what is kept from look to look
    assert calls(0) == calls(200)


def train_of(uid: str = "job", *, deleted: str | None = None, **status: Any) -> bytes:
    found = {
        "name": "train",
        "namespace": "n",
        "uid": uid,
        "resourceVersion": "9",
        "deletionTimestamp": deleted,
    }
    return msgspec.json.encode({"metadata": found, "status": status})


FAILED: dict[str, Any] = {
    "conditions": [{"type": "Failed", "status": "True"}],
    "completionTime": "2026-11-23T04:00:00Z",
}


@pytest.mark.parametrize(
    ("job", "launcher", "is_left"),
    [
        (None, None, True),
        (train_of(), "Running", False),
        (
            train_of("another"),
            "Running",
            True,
        ),  # created anew under its name, while its workers take their time
        (train_of(deleted=LATER), "Running", True),
        (train_of(**FAILED), None, True),
        (train_of(**FAILED), "Failed", True),
        (train_of(**FAILED), "Running", False),  # whatever the status says
    ],
)
async def test_a_worker_that_is_deleted_is_left_behind_if_no_driver_will_tell_its_ranks_to_leave(
    client: ApiWriter, job: bytes | None, launcher: str | None, *, is_left: bool
) -> None:
    caches, key = unwatched(client), JobKey("n", "train")
    if job:
        caches.see(MPI_JOBS, job)
    if launcher:
        labels = {names.LABEL_JOB_ROLE: names.ROLE_LAUNCHER}
        found = metadata("train-launcher", uid="launcher", labels=labels)
        caches.see(PODS, msgspec.json.encode({"metadata": found, "status": {"phase": launcher}}))
    caches.see(PODS, pod_of(version=1, phase="Running"))
    assert caches.left_behind(key) == []
    caches.see(PODS, pod_of(version=2, deleted=LATER, phase="Running"))
    assert [pod.metadata.name for pod in caches.left_behind(key)] == ["train-worker-0"] * is_left
    caches.see(PODS, pod_of(version=3, deleted=LATER, phase="Succeeded"))
    assert caches.left_behind(key) == []
