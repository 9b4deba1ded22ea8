"""Writes for KubeQueue: what a QueueUnit asks for, and what is read live before a job is released."""

from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from mpijob_elastic import names
from mpijob_elastic.capabilities.kube_queue import facts as queue_units
from mpijob_elastic.capabilities.kube_queue.facts import (
    KUBEQUEUE_SUSPEND,
    QUEUE_UNITS,
    UNIT_WORKERS,
    QueueUnit,
)
from mpijob_elastic.capabilities.kube_queue.live import QueueUnits, created
from mpijob_elastic.capabilities.kube_queue.wishes import CreateUnit, MarkRunning, ReleaseJob
from mpijob_elastic.decide.actions import PodSet
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import MPI_JOBS, PODS
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.telemetry.metrics import Metrics
from tests.builders import NOW, job, ref
from tests.doubles.api import TinyApi
from tests.product.act.writes import NOTE, Taken, Told, is_there, leader_writer_of

UNITS, JOBS = QUEUE_UNITS.path("default"), MPI_JOBS.path("default")
UNIT, JOB = f"{UNITS}/j-mpi-qu", f"{JOBS}/j"
ASKED = CreateUnit(
    name="j-mpi-qu",
    workers=2,
    pods=(
        PodSet(name="launcher", count=1, like=ref("j-launcher")),
        PodSet(name="workers", count=2, like=ref("j-worker-0")),
    ),
)


@pytest.fixture
def units(client: ApiWriter, taken: Taken, told: Told) -> QueueUnits:
    return QueueUnits(
        client=client,
        leader_writer=leader_writer_of(client, Metrics(CollectorRegistry())),
        seen=taken,
        events=told,
        now=lambda: NOW,
    )


def phases(taken: Taken) -> list[str]:
    """Return the phases of the units that were taken in, beside jobs."""
    return [
        answer["status"].get("phase")
        for resource, answer in taken.answers
        if resource is QUEUE_UNITS
    ]


async def stored(api: TinyApi, phase: str = "Enqueued") -> QueueUnit:
    found = await api.create(UNITS, "j-mpi-qu", spec={}, status={"phase": phase})
    is_there(api, JOB)
    return queue_units.read(msgspec.json.encode(found))


def pod(cpu: str, **spec: Any) -> dict[str, Any]:
    return {
        "spec": {
            "containers": [{"name": "main", "image": "i", "resources": {"requests": {"cpu": cpu}}}],
            **spec,
        }
    }


async def test_no_quota_is_asked_for_by_what_could_not_be_read_later(
    api: TinyApi, units: QueueUnits
) -> None:
    is_there(api, JOB)
    many = {f"example.com/r{index}": "1" for index in range(3_000)}
    for name in ("j-launcher", "j-worker-0"):
        await api.create(
            PODS.path("default"), name, spec={"containers": [{"resources": {"requests": many}}]}
        )
    with pytest.raises(errors.Invalid, match="its pods ask for too much"):
        await units.perform(job(), ASKED)


def test_a_unit_asks_for_what_all_pods_need() -> None:
    labels = {"quota.scheduling.koordinator.sh/name": "team-quota", "app": "x"}
    annotations = {"kube-queue/queue-name": "team", KUBEQUEUE_SUSPEND: "true"}
    pods = [pod("500m"), pod("4", priority=7, priorityClassName="high")]
    made = created(
        job(2),
        ASKED,
        job={"metadata": {"labels": labels, "annotations": annotations}},
        pods=pods,
        now=NOW,
    )
    spec, metadata = made["spec"], made["metadata"]
    assert (made["apiVersion"], made["kind"]) == ("scheduling.x-k8s.io/v1alpha1", "QueueUnit")
    consumer = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MPIJob",
        "namespace": "default",
        "name": "j",
    }
    assert (metadata["name"], spec["consumerRef"]) == ("j-mpi-qu", consumer)
    assert spec["resource"] == spec["request"] == {"cpu": "8500m"}
    assert (spec["queue"], spec["priority"], spec["priorityClassName"]) == ("team", 7, "high")
    of_ours = {names.LABEL_MANAGED_BY: names.PROGRAM}
    assert metadata["labels"] == {"quota.scheduling.koordinator.sh/name": "team-quota", **of_ours}
    assert metadata["annotations"] == {"kube-queue/queue-name": "team", UNIT_WORKERS: "2"}
    owners = [
        (owner["name"], owner.get("controller", False)) for owner in metadata["ownerReferences"]
    ]
    assert owners == [("j", True), ("j-launcher", False), ("j-worker-0", False)]
    plain = created(job(2), ASKED, job={"metadata": {}}, pods=[pod("1"), pod("1")], now=NOW)
    assert plain["spec"].keys() == {"consumerRef", "resource", "request"}


async def test_a_unit_is_made_of_live_pods(api: TinyApi, units: QueueUnits, taken: Taken) -> None:
    await api.create(JOBS, "j")
    for name in ("j-launcher", "j-worker-0"):
        await api.create(PODS.path("default"), name, **pod("1"))
    await units.perform(job(2), ASKED)
    assert api.objects[UNIT]["spec"]["resource"] == {"cpu": "3"}
    assert [answer["metadata"]["name"] for _, answer in taken.answers] == ["j-mpi-qu"]
    with pytest.raises(errors.AlreadyExists):
        await units.perform(job(2), ASKED)


async def test_a_job_is_released_only_while_its_turn_has_come(
    api: TinyApi, units: QueueUnits, taken: Taken, told: Told
) -> None:
    unit = await stored(api, "Running")  # since it was seen Dequeued
    await api.update(JOBS, "j", metadata={"annotations": {KUBEQUEUE_SUSPEND: "true"}})
    await units.perform(job(2), ReleaseJob(unit=unit, note=NOTE))
    assert api.objects[JOB]["metadata"]["annotations"] == {KUBEQUEUE_SUSPEND: "true"}
    assert (phases(taken), told.notes) == (["Running"], [])
    await api.update(UNITS, "j-mpi-qu", status={"phase": "Dequeued"})
    await units.perform(job(2), ReleaseJob(unit=unit, note=NOTE))
    assert api.objects[JOB]["metadata"]["annotations"] == {}
    assert told.notes == ["Because"]


@pytest.mark.parametrize("has_subresource", [True, False])
async def test_running_is_said_where_the_definition_keeps_the_status(
    api: TinyApi, units: QueueUnits, taken: Taken, has_subresource: bool
) -> None:
    unit = await stored(api, "Dequeued")
    if has_subresource:
        api.objects[f"{UNIT}/status"] = api.objects[UNIT]
    await units.perform(job(2), MarkRunning(unit=unit))
    assert phases(taken) == ["Running"]
    assert api.objects[UNIT]["status"]["phase"] == ("Dequeued" if has_subresource else "Running")


async def test_a_unit_that_is_gone_is_forgotten(
    api: TinyApi, units: QueueUnits, taken: Taken
) -> None:
    unit = await stored(api)
    del api.objects[UNIT]
    await units.perform(job(2), MarkRunning(unit=unit))
    assert (taken.gone, taken.answers) == (["j-mpi-qu"], [])
