"""A job in a queue of Kueue of which something else wants something, too: it stops, is evicted, is edited too early."""

import asyncio
from contextlib import suppress

import pytest

from lab.cluster import Cluster
from lab.registration import evictions_wait
from mpijob_elastic import names
from mpijob_elastic.capabilities.kueue.facts import LABEL_QUEUE
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import Timeouts
from mpijob_elastic.kube.resources import PODS
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.history import most_requested, recorded
from tests.lab.job import HOLD, Job, State
from tests.lab.launchers import UNMUTATED, label
from tests.lab.suspended import pods
from tests.lab.waiting import seen, until
from tests.peers.queued_jobs import ONE_GPU, QUICK, ends_quietly, hold, waits, workloads

pytestmark = [
    pytest.mark.lab,
    pytest.mark.peers,
    pytest.mark.usefixtures("kueue_serves", "elastic", "operator"),
]


def all_wait(state: State, replicas: int) -> bool:
    """Tell whether a launcher and so many workers are there, and all of them at a gate."""
    found = pods(state)
    gated = all(
        pod["spec"].get("schedulingGates") and "nodeName" not in pod["spec"] for pod in found
    )
    return len(state.running) == replicas and len(found) == replicas + 1 and gated


def rival_of(job: Job) -> Job:
    return Job(client=job.client, namespace=job.namespace, name="rival")


async def test_a_job_that_is_suspended_twice_while_an_old_worker_ends_never_starts_without_quota(
    job: Job, client: ApiWriter, queue: str
) -> None:
    """The gate of the queue came off too early, and the quota was another's when the last resume let the pods start."""
    labels = {LABEL_QUEUE: queue}
    await job.create(replicas=3, worker_spec=ONE_GPU, annotations=QUICK, job_labels=labels)
    await job.settled(3)
    await hold(job, "train-worker-0")  # it ends slowly
    rival = rival_of(job)
    async with (
        recorded(client, job.namespace, job=job.name) as mine,
        recorded(client, job.namespace, job=rival.name) as theirs,
    ):
        await job.annotate(suspend="true")
        await job.until(
            lambda state: (
                bool((state.launcher or {}).get("spec", {}).get("schedulingGates"))
                and "deletionTimestamp" in state.workers["train-worker-0"]["metadata"]
            ),
            "the next launcher, while an old worker ends",
        )
        await job.annotate(suspend=None)
        await asyncio.sleep(2)
        assert not (await job.state()).launcher_runs
        await job.annotate(suspend="true")
        await asyncio.sleep(1)
        await hold(job, "train-worker-0", by=None)
        await job.until(lambda state: all_wait(state, 3), "gates")
        await seen(lambda: workloads(job), lambda found: not found, "no Workloads")
        await rival.create(replicas=4, worker_spec=ONE_GPU, job_labels=labels)
        await rival.settled(4)
        await job.annotate(suspend=None)
        await job.told("Queued", "insufficient unused quota")
        assert all_wait(await job.at_rest(), 3)
        await rival.set_status("rival-launcher", {"phase": "Succeeded"})
        await job.settled(3)
    assert most_requested("nvidia.com/gpu", mine, theirs) == 4
    await ends_quietly(job)


async def evict(job: Job, pod: str) -> None:
    """Try once, and be told to try again."""
    metadata = {"name": pod, "namespace": job.namespace}
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
    with suppress(errors.Throttled, errors.NotFound):
        await job.client.create_object(
            PODS.path(job.namespace, pod, "eviction"),
            body=body,
            query=None,
            limits=Timeouts(throttled=0.0),
        )


async def test_a_worker_that_is_evicted_while_its_quota_is_wanted_gives_it_back(
    cluster: Cluster, job: Job, client: ApiWriter, queue: str
) -> None:
    """Who evicts may never come again: the worker is deleted as one whose quota is wanted, not released to that."""
    until(lambda: evictions_wait(cluster))
    labels = {LABEL_QUEUE: queue}
    await job.create(replicas=4, worker_spec=ONE_GPU, annotations=QUICK, job_labels=labels)
    await job.settled(4)
    rival = rival_of(job)
    async with (
        recorded(client, job.namespace, job=job.name) as mine,
        recorded(client, job.namespace, job=rival.name) as theirs,
    ):
        await evict(job, "train-worker-3")
        await rival.create(replicas=2, worker_spec=ONE_GPU, job_labels=labels)
        await rival.settled(2)
        squeezed = await job.until(
            lambda state: state.hosts == ["train-worker-0:1", "train-worker-1:1"], "two workers"
        )
        assert [waits(squeezed.workers[name]) for name in job.workers(0, 1)] == [False, False]
        await job.told("WorkersQueued", "train-worker-2, train-worker-3")
    assert most_requested("nvidia.com/gpu", mine, theirs) == 4


async def test_a_launcher_that_missed_its_queue_while_its_job_is_suspended_is_stopped_and_not_counted(
    job: Job, client: ApiWriter, queue: str
) -> None:
    nowhere = {"nodeSelector": {"pool": "nowhere"}}
    await label(client, job.namespace, UNMUTATED)
    await job.create(
        replicas=2,
        worker_spec={**ONE_GPU, **nowhere},
        launcher_spec=nowhere,
        annotations={"mpijob-elastic/suspend": "true", names.ENABLED: "true"},
        job_labels={LABEL_QUEUE: queue},
    )
    made = await job.until(
        lambda state: len(state.workers) == 2 and state.launcher is not None, "its pods"
    )
    assert not any(waits(pod) for pod in (made.launcher, *made.workers.values()))
    await label(client, job.namespace, {"mpijob-elastic/injection": None})
    await job.until(lambda state: all_wait(state, 2), "gates")
    await job.told("LauncherSuspended")
    told = {reason for reason, _ in await job.events()}
    assert not {"LauncherRecreated", "WorkerReplaced"} & told
    assert '"launchers"' not in (await job.state()).memory
    await job.annotate(suspend=None)
    await job.told("Admitted", "may be scheduled: queue")


async def test_a_base_that_is_edited_to_more_before_its_start_waits_for_nobody_without_quota(
    job: Job, queue: str
) -> None:
    """The launcher awaited the new workers, which ask for quota only once the base trains."""
    labels = {LABEL_QUEUE: queue}
    rival = rival_of(job)
    await rival.create(replicas=2, worker_spec=ONE_GPU, job_labels=labels)
    await rival.settled(2)
    held = {HOLD: "yes"}
    await job.create(
        replicas=2,
        worker_spec=ONE_GPU,
        launcher_annotations=held,
        worker_annotations=held,
        job_labels=labels,
    )
    await job.told("Admitted", "train-launcher, train-worker-0, train-worker-1 may be scheduled")
    await job.scale(4)
    started = [f"{pod} slots=1" for pod in job.workers(0, 1)]
    await job.until(
        lambda state: len(state.workers) == 4 and state.hostfile == started,
        "a hostfile without them",
    )
    for pod in (*job.workers(0, 1), "train-launcher"):
        await job.annotate_pod(pod, {HOLD: None})
    await job.told("WorkersQueued", "train-worker-2, train-worker-3")
    await job.until(
        lambda state: state.launcher_runs and len(state.hosts) == 2, "two workers that train"
    )
    await rival.set_status("rival-launcher", {"phase": "Succeeded"})
    for pod in job.workers(2, 3):
        await job.annotate_pod(pod, {HOLD: None})
    await job.settled(4)
    assert "LauncherRecreated" not in [reason for reason, _ in await job.events()]
