"""Writes for Kueue: what is read live before them, and what is told."""

from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from mpijob_elastic.act.workloads import Workloads
from mpijob_elastic.decide.actions import ClearWorkload, CreateWorkload, PodSet
from mpijob_elastic.kube import errors, resources
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model.queue import Workload
from mpijob_elastic.model.wire import Owned
from mpijob_elastic.observe import workloads
from mpijob_elastic.telemetry.metrics import Metrics
from tests.builders import NOW, job, ref
from tests.doubles.api import TinyApi
from tests.faults.faults import writes
from tests.faults.proxy import FaultProxy
from tests.product.act.writes import Answered, Taken, Told, gate_of

PODS, WORKLOADS = resources.PODS.path("default"), resources.WORKLOADS.path("default")
CLASSES = resources.WORKLOAD_PRIORITIES.path()


@pytest.fixture
def written(client: ApiWriter, taken: Taken, told: Told) -> Workloads:
    metrics = Metrics(CollectorRegistry())
    return Workloads(client, gate_of(client, metrics), taken, events=told, now=lambda: NOW)


def conditions(**status: bool) -> dict[str, Any]:
    return {"conditions": [{"type": kind, "status": str(holds)} for kind, holds in status.items()]}


async def test_a_class_that_is_missing_is_told_once_and_again_when_it_goes_missing_again(
    api: TinyApi, written: Workloads, told: Told
) -> None:
    for pod in ("j-launcher", "j-worker-0"):
        await api.create(PODS, pod, spec={})
    pods = (
        PodSet(name="launcher", count=1, like=ref("j-launcher")),
        PodSet(name="workers", count=2, like=ref("j-worker-0")),
    )
    asked = CreateWorkload(name="j-launcher", queue="team", pods=pods, priority_class="high")
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
    api: TinyApi, proxy: FaultProxy, written: Workloads, taken: Taken, live: dict[str, bool], cleared: bool
) -> None:
    found = await api.create(WORKLOADS, "j-worker-2", status=conditions(**live))
    metadata = Owned(name="j-worker-2", namespace="default", uid=found["metadata"]["uid"])
    known = Workload(metadata=metadata, reserved=True, evicted=True)
    with proxy.inject(Answered(body={"metadata": found["metadata"]}), on=writes):
        await written.perform(job(), ClearWorkload(workload=known))
    assert proxy.count(writes) == cleared
    [(resource, after)] = taken.answers
    assert resource is resources.WORKLOADS
    assert not workloads.read(msgspec.json.encode(after)).preempted
