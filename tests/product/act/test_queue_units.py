"""Writes for KubeQueue: what a QueueUnit asks for, and what is read live before a job is released."""

import math
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from mpijob_elastic import names
from mpijob_elastic.act.gate import Gate
from mpijob_elastic.act.queue_units import QueueUnits, created
from mpijob_elastic.decide.actions import (
    CreateUnit,
    DeleteUnit,
    HoldJob,
    MarkRunning,
    PodSet,
    ReleaseJob,
    UnitAction,
    normal,
)
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import MPI_JOBS, PODS, QUEUE_UNITS, Resource
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model.job import Ref
from mpijob_elastic.model.kube_queue import QueueUnit
from mpijob_elastic.observe import queue_units
from mpijob_elastic.telemetry.metrics import Metrics
from tests.builders import NOW, job, ref
from tests.faults.tiny_api import TinyApi
from tests.product.act.told import Told

UNITS, JOBS = QUEUE_UNITS.path("default"), MPI_JOBS.path("default")
UNIT, JOB = f"{UNITS}/j-mpi-qu", f"{JOBS}/j"
NOTE = normal("Because", "so")
ASKED = CreateUnit(
    name="j-mpi-qu",
    workers=2,
    pods=(
        PodSet(name="launcher", count=1, like=ref("j-launcher")),
        PodSet(name="workers", count=2, like=ref("j-worker-0")),
    ),
)


@dataclass
class Taken:
    """Takes in answers as the caches do."""

    units: list[QueueUnit] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)

    def see(self, resource: Resource, raw: bytes) -> None:
        if resource is QUEUE_UNITS:
            self.units.append(queue_units.read(raw))

    def see_gone(self, resource: Resource, namespace: str, ref: Ref) -> None:
        assert (resource, namespace) == (QUEUE_UNITS, "default")
        self.gone.append(ref.name)


@pytest.fixture
def seen() -> Taken:
    return Taken()


@pytest.fixture
def units(client: ApiWriter, seen: Taken, told: Told) -> QueueUnits:
    gate = Gate(client, time_left=lambda: math.inf, metrics=Metrics(CollectorRegistry()))
    return QueueUnits(client, gate, seen, events=told, now=lambda: NOW)


async def stored(api: TinyApi, phase: str = "Enqueued") -> QueueUnit:
    found = await api.create(UNITS, "j-mpi-qu", spec={}, status={"phase": phase})
    await api.create(JOBS, "j")
    return queue_units.read(msgspec.json.encode(found))


def pod(cpu: str, **spec: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "main", "image": "i", "resources": {"requests": {"cpu": cpu}}}], **spec}}


def test_a_unit_asks_for_what_all_pods_need() -> None:
    labels = {"quota.scheduling.koordinator.sh/name": "team-quota", "app": "x"}
    annotations = {"kube-queue/queue-name": "team", names.KUBEQUEUE_SUSPEND: "true"}
    pods = [pod("500m"), pod("4", priority=7, priorityClassName="high")]
    made = created(job(2), ASKED, job={"metadata": {"labels": labels, "annotations": annotations}}, pods=pods, now=NOW)
    spec, metadata = made["spec"], made["metadata"]
    assert (made["apiVersion"], made["kind"]) == ("scheduling.x-k8s.io/v1alpha1", "QueueUnit")
    consumer = {"apiVersion": "kubeflow.org/v1", "kind": "MPIJob", "namespace": "default", "name": "j"}
    assert (metadata["name"], spec["consumerRef"]) == ("j-mpi-qu", consumer)
    assert spec["resource"] == spec["request"] == {"cpu": "8500m"}
    assert (spec["queue"], spec["priority"], spec["priorityClassName"]) == ("team", 7, "high")
    of_ours = {names.LABEL_MANAGED_BY: names.PROGRAM}
    assert metadata["labels"] == {"quota.scheduling.koordinator.sh/name": "team-quota", **of_ours}
    assert metadata["annotations"] == {"kube-queue/queue-name": "team", names.WORKERS: "2"}
    owners = [(owner["name"], owner.get("controller", False)) for owner in metadata["ownerReferences"]]
    assert owners == [("j", True), ("j-launcher", False), ("j-worker-0", False)]


def test_what_nobody_asked_for_is_left_out() -> None:
    made = created(job(2), ASKED, job={"metadata": {}}, pods=[pod("1"), pod("1")], now=NOW)
    assert made["spec"].keys() == {"consumerRef", "resource", "request"}


async def test_a_unit_is_made_of_live_pods(api: TinyApi, units: QueueUnits, seen: Taken) -> None:
    await api.create(JOBS, "j")
    for name in ("j-launcher", "j-worker-0"):
        await api.create(PODS.path("default"), name, **pod("1"))
    await units.perform(job(2), ASKED)
    assert api.objects[UNIT]["spec"]["resource"] == {"cpu": "3"}
    assert [unit.metadata.name for unit in seen.units] == ["j-mpi-qu"]
    with pytest.raises(errors.AlreadyExists):
        await units.perform(job(2), ASKED)


async def test_a_job_is_released_only_while_its_turn_has_come(
    api: TinyApi, units: QueueUnits, seen: Taken, told: Told
) -> None:
    unit = await stored(api, "Running")  # since it was seen Dequeued
    await api.update(JOBS, "j", metadata={"annotations": {names.KUBEQUEUE_SUSPEND: "true"}})
    await units.perform(job(2), ReleaseJob(unit=unit, note=NOTE))
    assert api.objects[JOB]["metadata"]["annotations"] == {names.KUBEQUEUE_SUSPEND: "true"}
    assert ([found.phase for found in seen.units], told.notes) == (["Running"], [])
    await api.update(UNITS, "j-mpi-qu", status={"phase": "Dequeued"})
    await units.perform(job(2), ReleaseJob(unit=unit, note=NOTE))
    assert api.objects[JOB]["metadata"]["annotations"] == {}
    assert told.notes == ["Because"]
    await units.perform(job(2), HoldJob(unit=unit, note=NOTE))
    assert api.objects[JOB]["metadata"]["annotations"] == {names.KUBEQUEUE_SUSPEND: "true"}


@pytest.mark.parametrize("has_subresource", [True, False])
async def test_running_is_said_where_the_definition_keeps_the_status(
    api: TinyApi, units: QueueUnits, seen: Taken, has_subresource: bool
) -> None:
    unit = await stored(api, "Dequeued")
    if has_subresource:
        api.objects[f"{UNIT}/status"] = api.objects[UNIT]
    await units.perform(job(2), MarkRunning(unit=unit))
    [found] = seen.units
    assert found.phase == "Running"
    assert api.objects[UNIT]["status"]["phase"] == ("Dequeued" if has_subresource else "Running")


@pytest.mark.parametrize("action", [MarkRunning, DeleteUnit])
async def test_a_unit_that_is_gone_is_forgotten(
    api: TinyApi, units: QueueUnits, seen: Taken, action: type[MarkRunning | DeleteUnit]
) -> None:
    unit = await stored(api)
    asked: UnitAction = action(unit=unit)
    await api.delete(UNITS, "j-mpi-qu")
    await units.perform(job(2), asked)
    assert (seen.gone, seen.units) == (["j-mpi-qu"], [])


async def test_a_unit_is_deleted_by_its_uid(api: TinyApi, units: QueueUnits, seen: Taken) -> None:
    unit = await stored(api)
    await units.perform(job(2), DeleteUnit(unit=unit))
    assert api.deletions[0]["preconditions"] == {"uid": unit.metadata.uid}
    assert (UNIT in api.objects, seen.gone) == (False, ["j-mpi-qu"])
