"""Evictions of workers on the real API server: they wait for the drain, and nobody else's does."""

import asyncio
from typing import Any

import pytest

from lab.cluster import Cluster
from lab.install import Installed
from lab.registration import evictions_wait
from lab.replicas import Controller, Webhook
from mpijob_elastic import names
from mpijob_elastic.capabilities.disruption.eviction import EVICTION_MARK
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import Timeouts
from mpijob_elastic.kube.resources import PODS, Resource
from tests.lab.job import Job
from tests.lab.launchers import reviews
from tests.lab.ranks import in_pod, start_rank
from tests.lab.waiting import until

BUDGETS = Resource(group="policy", plural="poddisruptionbudgets", kind="PodDisruptionBudget")
ONCE = Timeouts(throttled=0.0)
EVICTIONS = 'kind="Eviction"'


async def evict(job: Job, pod: str, *, query: dict[str, str] | None = None, **options: Any) -> None:
    """Try once. Raises errors.Throttled where it has to wait."""
    body: dict[str, Any] = {"apiVersion": "policy/v1", "kind": "Eviction"}
    body |= {"metadata": {"name": pod, "namespace": job.namespace}, "deleteOptions": options}
    path = PODS.path(job.namespace, pod, "eviction")
    await job.client.create_object(path, body=body, query=query, limits=ONCE)


async def mark(job: Job, pod: str) -> str:
    annotations = (await job.state()).workers[pod]["metadata"].get("annotations", {})
    return str(annotations.get(EVICTION_MARK, ""))


@pytest.fixture
def waiting(cluster: Cluster, elastic: Controller) -> None:
    """The API server asks the webhook about evictions."""
    assert elastic.ready()
    until(lambda: evictions_wait(cluster))


def uid(pod: dict[str, Any]) -> str:
    return str(pod["metadata"]["uid"])


@pytest.mark.usefixtures("operator", "waiting")
@pytest.mark.thorough
async def test_kubectl_drain_waits_until_the_rank_has_left_and_a_successor_keeps_the_host_name(
    cluster: Cluster, job: Job, webhook: Webhook
) -> None:
    await job.create(replicas=3)
    state = await job.settled(3)
    pod = job.workers(2)[0]
    node, before = state.workers[pod]["spec"]["nodeName"], uid(state.workers[pod])
    rank = start_rank(cluster, job, pod)
    cluster.kubectl("label", "pod", pod, "-n", job.namespace, "leaves=now")
    draining = asyncio.create_task(
        asyncio.to_thread(
            cluster.kubectl, "drain", node, "--pod-selector=leaves=now", "--timeout=200s"
        )
    )
    try:
        state = await job.until(
            lambda now: now.hosts == [f"{one}:1" for one in job.workers(0, 1)], "two hosts"
        )
        assert "deletionTimestamp" not in state.workers[pod]["metadata"]
        assert (await mark(job, pod)).startswith("requested ")
        await asyncio.sleep(7)  # longer than a worker without a rank takes to drain
        state = await job.state()
        assert uid(state.workers[pod]) == before
        assert "deletionTimestamp" not in state.workers[pod]["metadata"]
        assert not draining.done()
        in_pod(cluster, job, pod, f"kill {rank}")
        await draining
    finally:
        cluster.kubectl("uncordon", node)
    await job.until(
        lambda now: pod in now.workers and uid(now.workers[pod]) != before, "a successor"
    )
    state = await job.settled(3)
    assert state.hosts == [f"{one}:1" for one in job.workers(0, 1, 2)]
    assert 'kind="Eviction",operation="CREATE",outcome="postponed"' in webhook.metrics()
    assert not [reason for reason, _ in await job.events() if reason == "HostRenamed"]


@pytest.mark.usefixtures("operator", "waiting")
async def test_budgets_decide_first_and_a_dry_run_marks_nothing(job: Job, webhook: Webhook) -> None:
    await job.create(replicas=2)
    await job.settled(2)
    pod, before = job.workers(1)[0], reviews(webhook, EVICTIONS)
    await evict(job, pod, query={"dryRun": "All"})
    await evict(job, pod, dryRun=["All"])
    assert reviews(webhook, EVICTIONS) == before
    selector = {
        "matchLabels": {names.LABEL_JOB_NAME: job.name, names.LABEL_JOB_ROLE: names.ROLE_WORKER}
    }
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "all"}}
    spec = {"minAvailable": 2, "selector": selector}
    await job.client.create_object(BUDGETS.path(job.namespace), body={**budget, "spec": spec})
    with pytest.raises(errors.Throttled, match="disruption budget"):
        await evict(job, pod)
    assert reviews(webhook, EVICTIONS) == before + 1
    assert not await mark(job, pod)


@pytest.mark.usefixtures("operator")
async def test_without_the_webhook_an_eviction_passes(
    cluster: Cluster, installed: Installed, job: Job
) -> None:
    with Webhook.start(cluster, installed) as webhook, Controller.start(cluster, installed):
        until(lambda: evictions_wait(cluster))
        await job.create(replicas=2)
        await job.settled(2)
        pod = job.workers(1)[0]
        start_rank(cluster, job, pod)
        with pytest.raises(errors.Throttled):
            await evict(job, pod)
        webhook.kill()
        await evict(job, pod)
