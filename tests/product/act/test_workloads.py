"""Writes for Kueue: what is read live before them, and what is told."""

import math
from dataclasses import dataclass, field
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from mpijob_elastic.act.gate import Gate
from mpijob_elastic.act.workloads import Workloads
from mpijob_elastic.decide import workloads as quotas
from mpijob_elastic.decide.actions import ClearWorkload
from mpijob_elastic.kube import errors, resources
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model.job import Ref
from mpijob_elastic.model.queue import Workload
from mpijob_elastic.model.wire import Owned
from mpijob_elastic.observe import workloads
from mpijob_elastic.telemetry.metrics import Metrics
from tests.builders import NOW, job
from tests.faults.faults import writes
from tests.faults.proxy import FaultProxy
from tests.faults.tiny_api import TinyApi
from tests.product.act.test_deleting import Answered
from tests.product.act.told import Told
from tests.queues import queue, waiting

PODS, WORKLOADS = resources.PODS.path("default"), resources.WORKLOADS.path("default")
CLASSES = resources.WORKLOAD_PRIORITIES.path()


@dataclass
class Taken:
    """Takes in Workloads as the caches do."""

    found: list[Workload] = field(default_factory=list)

    def see(self, resource: Resource, raw: bytes) -> None:
        assert resource is resources.WORKLOADS
        self.found.append(workloads.read(raw))

    def see_gone(self, resource: Resource, namespace: str, ref: Ref) -> None:
        pass


@pytest.fixture
def seen() -> Taken:
    return Taken()


@pytest.fixture
def written(client: ApiWriter, seen: Taken, told: Told) -> Workloads:
    metrics = Metrics(CollectorRegistry())
    gate = Gate(client, time_left=lambda: math.inf, metrics=metrics)
    return Workloads(client, gate, seen, events=told, metrics=metrics, now=lambda: NOW)


def conditions(**status: bool) -> dict[str, Any]:
    return {"conditions": [{"type": kind, "status": str(holds)} for kind, holds in status.items()]}


async def test_a_class_that_is_missing_is_told_once_and_again_when_it_goes_missing_again(
    api: TinyApi, written: Workloads, told: Told
) -> None:
    for pod in ("j-launcher", "j-worker-0"):
        await api.create(PODS, pod, spec={})
    [asked] = quotas.due(waiting(2, queue=queue(priority_class="high")))
    for _ in range(3):
        with pytest.raises(errors.NotFound):
            await written.perform(job(), asked)
    assert told.notes == ["PriorityClassMissing"]
    await api.create(CLASSES, "high", value=5)
    await written.perform(job(), asked)
    await api.delete(WORKLOADS, "j-launcher")
    await api.delete(CLASSES, "high")
    with pytest.raises(errors.NotFound):
        await written.perform(job(), asked)
    assert len(told.notes) == 2


@pytest.mark.parametrize(
    ("live", "cleared"),
    [
        ({"QuotaReserved": True, "Admitted": True, "Evicted": True}, True),
        # A former leader has given it back already, and Kueue has granted it again: pods may run.
        ({"QuotaReserved": True, "Admitted": True, "Evicted": False}, False),
        ({"QuotaReserved": False, "Evicted": True}, False),
    ],
)
async def test_quota_is_given_back_only_while_kueue_wants_it(
    api: TinyApi, proxy: FaultProxy, written: Workloads, seen: Taken, live: dict[str, bool], cleared: bool
) -> None:
    found = await api.create(WORKLOADS, "j-worker-2", status=conditions(**live))
    metadata = Owned(name="j-worker-2", namespace="default", uid=found["metadata"]["uid"])
    known = Workload(metadata=metadata, reserved=True, evicted=True)
    with proxy.inject(Answered(body={"metadata": found["metadata"]}), on=writes):
        await written.perform(job(), ClearWorkload(workload=known))
    assert proxy.count(writes) == cleared
    [after] = seen.found
    assert not after.preempted
