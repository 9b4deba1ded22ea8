"""An AdmissionCheck answers late, as that of a ProvisioningRequest does: quota is reserved, and no pod starts before.

The test is the check's controller: Kueue asks it by each Workload's status, and it answers there.
"""

import json
import time
from collections.abc import Iterator

import pytest

from lab.cluster import Cluster
from mpijob_elastic.capabilities.kueue.facts import LABEL_QUEUE, WORKLOADS
from mpijob_elastic.kube.writer import MERGE_PATCH, ApiWriter
from tests.lab.history import most_requested, recorded
from tests.lab.job import Job, Object
from tests.lab.waiting import seen
from tests.peers.kueue import API
from tests.peers.queued_jobs import ONE_GPU, QUICK, asked, ends_quietly, waits, workloads

pytestmark = [
    pytest.mark.lab,
    pytest.mark.peers,
    pytest.mark.usefixtures("kueue_serves", "elastic", "operator"),
]


@pytest.fixture
def checked(cluster: Cluster, namespace: str, queue: str) -> Iterator[str]:
    """The queue of the example, each of whose Workloads awaits a check; returns the label."""
    item = {"apiVersion": API, "kind": "AdmissionCheck", "metadata": {"name": namespace}}
    item["spec"] = {"controllerName": "lab.mpijob-elastic/provisioning"}
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(item))
    active = {
        "type": "Active",
        "status": "True",
        "reason": "Active",
        "message": "",
        "lastTransitionTime": _now(),
    }
    status = json.dumps({"status": {"conditions": [active]}})
    cluster.kubectl(
        "patch", "admissioncheck", namespace, "--subresource=status", "--type=merge", "-p", status
    )
    checks = {"spec": {"admissionChecksStrategy": {"admissionChecks": [{"name": namespace}]}}}
    cluster.kubectl("patch", "clusterqueue", namespace, "--type=merge", "-p", json.dumps(checks))
    yield queue
    none = {"spec": {"admissionChecksStrategy": None}}
    cluster.kubectl("patch", "clusterqueue", namespace, "--type=merge", "-p", json.dumps(none))


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _asks(workload: Object) -> bool:
    """Tell whether quota is reserved, and the check is asked; where quota is wanted back, that is of the last time."""
    states = [one["state"] for one in workload.get("status", {}).get("admissionChecks", [])]
    return (
        "QuotaReserved" in true(workload)
        and "Evicted" not in true(workload)
        and states == ["Pending"]
    )


def true(workload: Object) -> set[str]:
    """Return the conditions that hold."""
    return {
        one["type"]
        for one in workload.get("status", {}).get("conditions", [])
        if one["status"] == "True"
    }


async def asks(job: Job, *names: str) -> None:
    """Wait until the check is asked about these Workloads, and there are no others that wait for it."""

    async def look() -> list[str]:
        return sorted(name for name, one in (await workloads(job)).items() if _asks(one))

    await seen(look, lambda found: found == sorted(names), f"the check is asked about {names}")


async def answer(job: Job, workload: str, state: str, *updates: Object) -> None:
    """Answer, as the check's controller does: again where Kueue, whose cache lags, has written over the answer."""
    check: Object = {
        "name": job.namespace,
        "state": state,
        "message": "by the test",
        "lastTransitionTime": _now(),
    }
    check["podSetUpdates"] = updates
    path = WORKLOADS.path(job.namespace, workload, "status")
    body = {"status": {"admissionChecks": [check]}}
    await job.client.patch_object(path, body=body, content_type=MERGE_PATCH)

    async def look() -> Object:
        found = (await workloads(job)).get(workload, {})
        if _asks(found):
            await job.client.patch_object(path, body=body, content_type=MERGE_PATCH)
        return found

    async def taken() -> bool:
        found = (await workloads(job)).get(workload, {})
        states = [one["state"] for one in found.get("status", {}).get("admissionChecks", [])]
        if "Evicted" in true(found):
            return True
        if states == ["Ready"]:
            await job.client.patch_object(path, body=body, content_type=MERGE_PATCH)
            return False
        return states != [state]

    if state == "Ready":
        await seen(look, lambda found: "Admitted" in true(found), f"{workload} is admitted")
    else:
        await seen(taken, bool, f"Kueue has taken {state} of {workload}")


async def test_no_pod_starts_before_the_check_has_answered_and_each_worker_waits_for_its_own(
    job: Job, client: ApiWriter, checked: str
) -> None:
    async with recorded(client, job.namespace, job=job.name) as history:
        await job.create(
            replicas=4, worker_spec=ONE_GPU, annotations=QUICK, job_labels={LABEL_QUEUE: checked}
        )
        await asks(job, "train-launcher")
        await job.told("Queued", f"AdmissionCheck {job.namespace} is Pending")
        still = await job.at_rest()
        assert all(waits(pod) for pod in (still.launcher, *still.workers.values()))
        assert most_requested("nvidia.com/gpu", history) == 0

        await answer(job, "train-launcher", "Ready")
        await job.until(lambda state: len(state.hosts) == 2, "the least workers train")
        await asks(job, "train-worker-2", "train-worker-3")
        await job.told("WorkersQueued", f"AdmissionCheck {job.namespace} is Pending")
        waiting = await job.at_rest()
        assert [waits(waiting.workers[pod]) for pod in job.workers(0, 1, 2, 3)] == [
            False,
            False,
            True,
            True,
        ]
        assert most_requested("nvidia.com/gpu", history) == 2

        await answer(
            job, "train-worker-3", "Ready"
        )  # not in the order in which they were asked for
        await job.until(lambda state: len(state.hosts) == 3, "worker-3 trains, and worker-2 waits")
        await answer(job, "train-worker-2", "Ready")
        await job.settled(4)
    await ends_quietly(job)
    assert {name: asked(one)["workers"] for name, one in (await workloads(job)).items()} == {
        "train-launcher": 2,
        "train-worker-2": 1,
        "train-worker-3": 1,
    }


async def test_a_check_that_takes_its_answer_back_lets_the_ranks_leave_first_and_may_answer_again(
    job: Job, client: ApiWriter, checked: str
) -> None:
    async with recorded(client, job.namespace, job=job.name) as history:
        await job.create(
            replicas=3, worker_spec=ONE_GPU, annotations=QUICK, job_labels={LABEL_QUEUE: checked}
        )
        for workload in ("train-launcher", "train-worker-2"):
            await asks(job, workload)
            await answer(job, workload, "Ready")
        await job.settled(3)
        await answer(job, "train-worker-2", "Retry")
        await job.until(lambda state: len(state.hosts) == 2, "worker-2 has left")
        await asks(job, "train-worker-2")
        await job.until(
            lambda state: waits(state.workers.get("train-worker-2")), "its next pod waits"
        )
        await answer(job, "train-worker-2", "Ready")
        await job.settled(3)
        await answer(job, "train-launcher", "Retry")  # the whole job stops, and starts again
        await job.told("Suspended", "by Kueue")
        await asks(job, "train-launcher")
        await answer(job, "train-launcher", "Ready")
        await job.until(lambda state: len(state.hosts) == 2, "the least workers train")
        await asks(job, "train-worker-2")
        await answer(job, "train-worker-2", "Ready")
        await job.settled(3)
        await answer(job, "train-worker-2", "Rejected")
        await job.until(lambda state: len(state.hosts) == 2, "worker-2 has left for good")
        await job.until(
            lambda state: waits(state.workers.get("train-worker-2")), "its next pod waits"
        )
        await job.told("WorkersQueued", "train-worker-2", times=2)
    assert most_requested("nvidia.com/gpu", history) == 3
    assert history.deleted_while_published() == []
    assert history.mixed_changes() == []


async def test_pods_start_with_what_the_check_adds(job: Job, checked: str) -> None:
    """As for a ProvisioningRequest: without its annotation, the autoscaler would make nodes a second time."""
    await job.create(
        replicas=3, worker_spec=ONE_GPU, annotations=QUICK, job_labels={LABEL_QUEUE: checked}
    )
    request = "autoscaling.x-k8s.io/consume-provisioning-request"
    toleration = {"key": "spot", "operator": "Exists", "effect": "NoSchedule"}
    for workload in ("train-launcher", "train-worker-2"):
        await asks(job, workload)
        workers = {
            "annotations": {request: workload},
            "labels": {"reserved": "yes"},
            "tolerations": [toleration],
        }
        await answer(job, workload, "Ready", {"name": "workers", **workers})
    state = await job.settled(3)
    for pod, workload in zip(
        job.workers(0, 1, 2), ("train-launcher", "train-launcher", "train-worker-2"), strict=True
    ):
        found = state.workers[pod]
        assert found["metadata"]["annotations"][request] == workload
        assert found["metadata"]["labels"]["reserved"] == "yes"
        assert toleration in found["spec"]["tolerations"]
    assert state.launcher
    assert request not in state.launcher["metadata"].get("annotations", {})
