"""Writes for Kueue: what is in them, what is read live before them, and what is told."""

from contextlib import nullcontext
from typing import Any

import msgspec
import pytest

from mpijob_elastic.act.writer import Outdated, Writer
from mpijob_elastic.capabilities.kueue import actions as of_kueue
from mpijob_elastic.capabilities.kueue import facts as workloads
from mpijob_elastic.capabilities.kueue.actions import (
    ClearWorkload,
    CreateWorkload,
    DeleteWorkload,
    FinishWorkload,
    MarkReady,
)
from mpijob_elastic.capabilities.kueue.facts import WORKLOAD_PRIORITIES, WORKLOADS, Workload
from mpijob_elastic.capabilities.kueue.live import Workloads
from mpijob_elastic.decide import decide
from mpijob_elastic.decide.actions import PodSet, Ungate
from mpijob_elastic.kube import errors, resources
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model.json_parts import Owned
from tests.builders import JOB, NOW, job, ref
from tests.doubles.api import Object, TinyApi
from tests.faults.faults import writes
from tests.faults.proxy import FaultProxy
from tests.product.act.writes import (
    Answered,
    Everything,
    Nothing,
    Taken,
    Told,
    writer_of,
)
from tests.queues import granted, waiting

PODS, OF_KUEUE = resources.PODS.path("default"), WORKLOADS.path("default")
CLASSES = WORKLOAD_PRIORITIES.path()


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
    await api.delete(OF_KUEUE, "j-launcher")
    await api.delete(CLASSES, "high")
    with pytest.raises(errors.NotFound):
        await written.perform(job(), asked)
    assert len(told.notes) == 2


@pytest.mark.parametrize(
    ("name", "asked", "classes", "found"),
    [
        pytest.param("j-launcher", "", ("default",), ("default", 50), id="the default of a base"),
        pytest.param("j-launcher", "", (), (None, 0), id="no default"),
        pytest.param("j-launcher", "high", ("default", "high"), ("high", 50), id="its own"),
        pytest.param("j-worker-2", "", ("default",), (None, -1), id="an extra"),
    ],
)
async def test_a_job_without_a_class_gets_the_default_where_there_is_one(
    api: TinyApi,
    written: Workloads,
    name: str,
    asked: str,
    classes: tuple[str, ...],
    found: tuple[str | None, int],
) -> None:
    for each in classes:
        await api.create(CLASSES, each, value=50)
    await api.create(PODS, name, spec={})
    pods = (PodSet(name="workers", count=1, like=ref(name)),)
    priority = -1 if name == "j-worker-2" else 0
    action = CreateWorkload(
        name=name, queue="team", pods=pods, priority_class=asked, priority=priority
    )
    await written.perform(job(), action)
    spec = api.objects[f"{OF_KUEUE}/{name}"]["spec"]
    assert (spec.get("priorityClassRef", {}).get("name"), spec["priority"]) == found


async def test_no_quota_is_asked_for_by_what_could_not_be_read_later(
    api: TinyApi, proxy: FaultProxy, written: Workloads
) -> None:
    """Two pods that can be read make a Workload that cannot: it would keep quota that Kueue wants back."""
    asks = {"requests": {"cpu": "0"}}
    many = [{"name": f"c{index}", "image": "i", "resources": asks} for index in range(900)]
    for pod in ("j-launcher", "j-worker-0"):
        await api.create(PODS, pod, spec={"containers": many})
    pods = tuple(PodSet(name=pod, count=1, like=ref(pod)) for pod in ("j-launcher", "j-worker-0"))
    with pytest.raises(errors.Invalid, match="its pods ask for too much"):
        await written.perform(job(), CreateWorkload(name="j-launcher", queue="team", pods=pods))
    assert proxy.count(writes) == 0


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
    api: TinyApi,
    proxy: FaultProxy,
    written: Workloads,
    taken: Taken,
    live: dict[str, bool],
    cleared: bool,
) -> None:
    found = await api.create(OF_KUEUE, "j-worker-2", status=conditions(**live))
    metadata = Owned(name="j-worker-2", namespace="default", uid=found["metadata"]["uid"])
    known = Workload(metadata=metadata, reserved=True, evicted=True)
    with proxy.inject(Answered(body={"metadata": found["metadata"]}), on=writes):
        await written.perform(job(), ClearWorkload(workload=known))
    assert proxy.count(writes) == cleared
    [(resource, after)] = taken.answers
    assert resource is WORKLOADS
    assert not workloads.read(msgspec.json.encode(after)).preempted


@pytest.mark.parametrize("admitted", [True, False])
async def test_pods_start_only_with_quota_that_is_granted_live_too(
    api: TinyApi,
    proxy: FaultProxy,
    client: ApiWriter,
    written: Workloads,
    taken: Taken,
    admitted: bool,
) -> None:
    """The caches of a new leader may lag: the leader before gave the quota back, and somebody else has it now."""
    await api.create(
        OF_KUEUE, "j-launcher", status=conditions(QuotaReserved=admitted, Admitted=admitted)
    )
    view = waiting(2, granted(workers=2))
    [freed] = [action for action in decide(view, now=NOW).actions if isinstance(action, Ungate)]
    with nullcontext() if admitted else pytest.raises(Outdated):
        await writer_of(client, taken, Everything(), capability_writers=(written,)).perform(
            view, freed
        )
    assert len(taken.answers) == (not admitted)
    assert proxy.count(writes) == (len(freed.pods) if admitted else 0)


async def test_pods_start_only_while_their_job_lets_them_live_too(
    proxy: FaultProxy, client: ApiWriter, taken: Taken
) -> None:
    [freed] = [
        one
        for one in decide(waiting(2, granted(workers=2)), now=NOW).actions
        if isinstance(one, Ungate)
    ]
    with pytest.raises(Outdated, match="holds its pods back again"):
        await writer_of(client, taken, Nothing()).perform(job(), freed)
    assert proxy.count(writes) == 0


SEEN = Workload(metadata=Owned(name="w", namespace="default", uid="u", job=JOB, job_uid="uid-of-j"))


@pytest.mark.parametrize(
    "action", [ClearWorkload(workload=SEEN), DeleteWorkload(ref=SEEN.metadata)]
)
async def test_quota_goes_only_while_nothing_runs_with_it_live(
    proxy: FaultProxy, writer: Writer, action: ClearWorkload | DeleteWorkload
) -> None:
    """The caches of a new leader may not show yet what the leader before has started."""
    with pytest.raises(Outdated, match="not due any more"):
        await writer.perform(job(), action)
    assert proxy.count(writes) == 0


AT, AT_TEXT = 1767323045.0, "2026-01-02T03:04:05Z"
RESOURCES = {"requests": {"nvidia.com/gpu": "1"}}
POD: Object = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {
        "initContainers": [
            {"name": "first", "image": "k", "env": [], "resources": {"requests": {"cpu": 1}}}
        ],
        "containers": [
            {
                "name": "main",
                "image": "m",
                "command": ["x"],
                "resources": RESOURCES,
                "volumeMounts": [],
            }
        ],
        "overhead": {"cpu": "250m"},
        "nodeSelector": {"pool": "gpu"},
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "schedulingGates": [{"name": "mpijob-elastic/queued"}],
        "volumes": [],
        "serviceAccountName": "default",
    },
}


def condition(kind: str, status: str, reason: str = "Then", message: str = "then") -> Object:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": "then",
    }


def workload(*conditions: Object) -> Object:
    return {
        "metadata": {"resourceVersion": "9", "generation": 2},
        "status": {"conditions": list(conditions)},
    }


def test_a_workload_asks_for_what_a_pod_needs_with_init_containers_and_overhead() -> None:
    sets = (PodSet(name="workers", count=3, like=ref("j-worker-0")),)
    action = CreateWorkload(name="j-launcher", queue="team", pods=sets, priority_class="high")
    made = of_kueue.created(job(), action, pods=[POD], priority=1000)
    assert made["apiVersion"] == "kueue.x-k8s.io/v1beta2"
    assert made["spec"]["queueName"] == "team"
    assert made["spec"]["priority"] == 1000
    assert made["spec"]["priorityClassRef"]["name"] == "high"
    [owner, pod] = made["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("MPIJob", "uid-of-j", True)
    assert (pod["kind"], pod["uid"], "controller" in pod) == ("Pod", "uid-of-j-worker-0", False)
    [asked] = made["spec"]["podSets"]
    assert (asked["name"], asked["count"]) == ("workers", 3)
    assert asked["template"]["spec"] == {
        "restartPolicy": "Never",
        "initContainers": [{"name": "first", "image": "k", "resources": {"requests": {"cpu": 1}}}],
        "containers": [{"name": "main", "image": "m", "resources": RESOURCES}],
        **{key: POD["spec"][key] for key in ("overhead", "nodeSelector", "tolerations")},
    }


def test_a_reservation_is_cleared_with_the_complete_list_of_conditions() -> None:
    before = workload(
        condition("QuotaReserved", "True"),
        condition("Admitted", "True"),
        condition("Evicted", "True", "Preempted", "for b"),
        condition("Theirs", "True"),
    )
    patch = of_kueue.marked(job(), ClearWorkload(workload=SEEN), before, now=AT)
    assert patch["metadata"] == {"resourceVersion": "9"}
    assert patch["status"]["admission"] is None
    after = {one["type"]: (one["status"], one["reason"]) for one in patch["status"]["conditions"]}
    assert after == {
        "QuotaReserved": ("False", "Pending"),
        "Admitted": ("False", "NoReservation"),
        "Evicted": ("True", "Preempted"),
        "Theirs": ("True", "Then"),
        "PodsReady": ("False", "WaitForStart"),
        "Requeued": ("True", "Preempted"),
    }


@pytest.mark.parametrize(
    ("reason", "again"),
    [
        ("Preempted", "True"),
        # A node that Kueue assigned has failed, and it found no other.
        ("NodeFailures", "True"),
        # Kueue says itself when these queue again.
        ("PodsReadyTimeout", "False"),
        ("AdmissionCheck", "False"),
        ("ClusterQueueStopped", "False"),
    ],
)
def test_a_workload_queues_again_as_kueues_own_jobs_do(reason: str, again: str) -> None:
    evicted = workload(condition("Evicted", "True", reason))
    patch = of_kueue.marked(job(), ClearWorkload(workload=SEEN), evicted, now=AT)
    found = {one["type"]: one["status"] for one in patch["status"]["conditions"]}
    assert found["Requeued"] == again


def test_conditions_are_added_beside_those_of_kueue() -> None:
    ready = of_kueue.marked(
        job(), MarkReady(workload=SEEN), workload(condition("Admitted", "True")), now=AT
    )
    assert [one["type"] for one in ready["status"]["conditions"]] == ["Admitted", "PodsReady"]
    assert ready["status"]["conditions"][1]["lastTransitionTime"] == AT_TEXT
    assert "admission" not in ready["status"]
    for succeeded_at, reason in ((AT, "Succeeded"), (None, "Failed")):
        over = job(finished=True, succeeded_at=succeeded_at)
        [finished] = of_kueue.marked(over, FinishWorkload(workload=SEEN), workload(), now=AT)[
            "status"
        ]["conditions"]
        assert (finished["type"], finished["reason"]) == ("Finished", reason)


def test_a_pod_takes_what_its_flavors_and_checks_add_and_keeps_its_own() -> None:
    new = {"key": "spot", "operator": "Exists"}
    flavor = of_kueue.of_flavor(
        {
            "spec": {
                "nodeLabels": {"pool": "other", "zone": "a"},
                "tolerations": [*POD["spec"]["tolerations"], new],
            }
        }
    )
    check = {
        "name": "workers",
        "nodeSelector": {"zone": "b", "rack": "1"},
        "annotations": {"request": "r"},
    }
    asked = {
        "status": {
            "admissionChecks": [{"podSetUpdates": [check, {"name": "launcher"}]}, {"name": "other"}]
        }
    }
    assert of_kueue.placed(POD, [flavor, *of_kueue.updates(asked, "workers")]) == [
        {"op": "add", "path": "/metadata/annotations", "value": {"request": "r"}},
        {
            "op": "add",
            "path": "/spec/nodeSelector",
            "value": {"pool": "gpu", "zone": "b", "rack": "1"},
        },
        {
            "op": "add",
            "path": "/spec/tolerations",
            "value": [{"key": "gpu", "operator": "Exists"}, new],
        },
    ]
    assert (
        of_kueue.placed(POD, [of_kueue.of_flavor({"spec": {"nodeLabels": {"pool": "gpu"}}})]) == []
    )
    assert of_kueue.placed(POD, [{}]) == []
