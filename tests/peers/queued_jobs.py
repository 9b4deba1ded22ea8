"""Jobs in a queue of Kueue."""

from typing import Any

import msgspec

from mpijob_elastic import names
from mpijob_elastic.capabilities.kueue.facts import LABEL_PRIORITY_CLASS, LABEL_QUEUE, WORKLOADS
from mpijob_elastic.kube import resources
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.kube.writer import MERGE_PATCH
from tests.lab.job import Job
from tests.lab.waiting import seen

Object = dict[str, Any]
QUICK = {"mpijob-elastic/drain-timeout": "5s", "mpijob-elastic/min-replicas": "2"}
ONE_GPU = {
    "containers": [
        {
            "name": "worker",
            "image": "horovod:test",
            "resources": {"limits": {"nvidia.com/gpu": "1"}},
        }
    ]
}


async def workloads(job: Job, kind: Resource = WORKLOADS) -> dict[str, Object]:
    """Return the job's Workloads by name."""
    raw = await job.client.get(kind.path(job.namespace))
    mine = [
        item
        for item in msgspec.json.decode(raw)["items"]
        if item["metadata"]["ownerReferences"][0]["name"] == job.name
    ]
    return {item["metadata"]["name"]: item for item in mine}


def asked(workload: Object) -> dict[str, int]:
    """Return how many pods a Workload asks for, by set."""
    return {pods["name"]: pods["count"] for pods in workload["spec"]["podSets"]}


async def waits_for_gpus(job: Job) -> None:
    """See that a job waits for quota, and that each of its pods waits at its gate."""
    await job.told("Queued", "insufficient unused quota for nvidia.com/gpu")
    state = await job.state()
    assert all(waits(pod) for pod in (state.launcher, *state.workers.values()))


async def ends_quietly(job: Job) -> None:
    """Wait until no notice is left on the job, and see that none comes back: the last goes after what it was about."""
    await job.until(lambda state: state.notices == "", "no notice")
    assert (await job.at_rest()).notices == ""


async def restarted(job: Job) -> None:
    """Suspend a job until it has no quota any more, and resume it."""
    await job.annotate(suspend="true")
    await seen(lambda: workloads(job), lambda found: not found, "no Workloads")
    await job.annotate(suspend=None)


async def stopped(job: Job, queue: str) -> Job:
    """Start a job of three, and have one of a higher priority take the quota of its least workers; return that one."""
    labels = {LABEL_QUEUE: queue}
    await job.create(replicas=3, worker_spec=ONE_GPU, annotations=QUICK, job_labels=labels)
    await job.settled(3)
    rival = Job(client=job.client, namespace=job.namespace, name="rival")
    await rival.create(
        replicas=4, worker_spec=ONE_GPU, job_labels={**labels, LABEL_PRIORITY_CLASS: "high"}
    )
    await rival.settled(4)
    await job.told("Suspended", "by Kueue (Preempted to accommodate a workload")
    return rival


def waits(pod: Object | None) -> bool:
    """Tell whether a pod waits for quota."""
    return {"name": names.GATE_QUEUED} in (pod or {}).get("spec", {}).get("schedulingGates", [])


async def hold(job: Job, pod: str, *, by: str | None = "lab.mpijob-elastic/keep") -> None:
    """Keep a pod that is deleted, as a long grace period does, or let it go."""
    body = {"metadata": {"finalizers": [by] if by else None}}
    await job.client.patch_object(
        resources.PODS.path(job.namespace, pod), body=body, content_type=MERGE_PATCH
    )
