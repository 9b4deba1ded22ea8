"""A Kueue that serves v1beta1 alone gives an MPIJob its quota, and takes it back, as newer ones do."""

import time

import pytest

from mpijob_elastic import names
from mpijob_elastic.cli.jobs import fetch
from mpijob_elastic.cli.jobs.report import build
from mpijob_elastic.kube import resources
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.definitions import OLD_KUEUE
from tests.lab.history import most_requested, recorded
from tests.lab.job import Job
from tests.peers.built import peer
from tests.peers.kueue import Kueue
from tests.peers.queued_jobs import ONE_GPU, stopped, waits, workloads

WORKLOADS = resources.WORKLOADS.at("v1beta1")
pytestmark = [pytest.mark.lab, pytest.mark.peers, pytest.mark.usefixtures("kueue_serves", "elastic", "operator")]


@pytest.fixture(scope="session")
def kueue() -> Kueue:
    """The older program."""
    return Kueue(program=peer("kueue-v0.14"), release=OLD_KUEUE, api=WORKLOADS.api_version)


async def test_a_job_waits_grows_into_idle_quota_and_gives_it_back(job: Job, client: ApiWriter, queue: str) -> None:
    labels = {names.LABEL_QUEUE: queue}
    first = Job(client=client, namespace=job.namespace, name="first")
    await first.create(replicas=4, worker_spec=ONE_GPU, job_labels=labels)
    state = await first.settled(4)
    assert state.workers["first-worker-3"]["spec"]["nodeSelector"] == {"kubernetes.io/os": "linux"}
    two = {"mpijob-elastic/min-replicas": "2"}
    await job.create(replicas=4, worker_spec=ONE_GPU, annotations=two, job_labels=labels)
    await job.told("Queued", "insufficient unused quota for nvidia.com/gpu")
    waiting = await job.state()
    assert all(waits(pod) for pod in (waiting.launcher, *waiting.workers.values()))
    await first.set_status("first-launcher", {"phase": "Succeeded"})
    await job.settled(4)
    rival = Job(client=client, namespace=job.namespace, name="rival")
    async with (
        recorded(client, job.namespace, job=job.name) as mine,
        recorded(client, job.namespace, job="rival") as theirs,
    ):
        await rival.create(replicas=2, worker_spec=ONE_GPU, job_labels={**labels, names.LABEL_PRIORITY_CLASS: "high"})
        await rival.settled(2)
        await job.until(lambda state: state.hosts == ["train-worker-0:1", "train-worker-1:1"], "two workers")
        [base] = (await workloads(rival, WORKLOADS)).values()
        asked = base["spec"]
        assert (asked["priority"], asked["priorityClassName"]) == (1000, "high")
        assert asked["priorityClassSource"] == "kueue.x-k8s.io/workloadpriorityclass"
        await job.told("WorkersQueued", "train-worker-2, train-worker-3")
        await job.told("QuotaWanted", f"Preempted to accommodate a workload ({job.namespace}/rival-launcher, UID: ")
        assert not [one for one in await job.events() if one[0] in ("HostsLost", "DrainTimeout")]
        [seen] = await fetch.fetch(client, fetch.Selection(namespace=job.namespace, job=job.name))
        report = build(seen, now=time.time())
        assert report.queue
        assert (report.queue.workload, report.queue.place) == ("train-worker-2", 1)
    assert most_requested("nvidia.com/gpu", mine, theirs) == 4
    await rival.set_status("rival-launcher", {"phase": "Succeeded"})
    await job.settled(4)
    assert (await job.at_rest()).notices == ""


async def test_a_job_whose_least_workers_are_wanted_stops_and_starts_again_later(job: Job, queue: str) -> None:
    rival = await stopped(job, queue)
    await rival.set_status("rival-launcher", {"phase": "Succeeded"})
    await job.settled(3)
    assert (await job.at_rest()).notices == ""
