"""Jobs that wait in KubeQueue, of which a double stands for all but our part (see kube_queue)."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.cluster import Cluster
from mpijob_elastic.capabilities.kube_queue.facts import (
    KUBEQUEUE_SUSPEND,
    QUEUE_UNITS,
    UNIT_WORKERS,
)
from mpijob_elastic.kube.resources import MPI_JOBS, PODS
from mpijob_elastic.kube.writer import ApiWriter
from tests.faults.faults import Request
from tests.faults.proxy import FaultProxy
from tests.lab.capabilities.kube_queue.kube_queue import TREES, Scheduler, served
from tests.lab.command_line import CommandLine
from tests.lab.controllers import controlling
from tests.lab.deaths import died, drawn
from tests.lab.job import Job, State
from tests.lab.on_demand import OnDemand
from tests.lab.suspended import held, pods
from tests.lab.waiting import seen
from tests.peers.queued_jobs import hold as keep

pytestmark = [pytest.mark.lab, pytest.mark.thorough]

PAGE = (Path(__file__).parents[4] / "docs" / "kubequeue.md").read_text()
TREE, JOB = map(yaml.safe_load, re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))
HOLD = {KUBEQUEUE_SUSPEND: "true"}
UNIT = "train-mpi-qu"
AT_ONCE = {"mpijob-elastic/drain-timeout": "0s"}


@pytest.fixture(scope="module")
def kube_queue(cluster: Cluster, programs: OnDemand) -> Iterator[None]:
    """Its definitions are there before our controller looks, which it does once a minute."""
    programs.keep(())
    with served(cluster):
        yield
        programs.keep(())


@pytest.fixture
async def scheduler(
    kube_queue: None, client: ApiWriter, namespace: str
) -> AsyncIterator[Scheduler]:
    """The scheduler, which does nothing yet; the page's tree has a leaf for the namespace."""
    leaf = {**TREE["spec"]["root"]["children"][0], "namespaces": [namespace]}
    spec = {"root": {**TREE["spec"]["root"], "children": [leaf]}}
    await client.create_object(TREES.path("kube-system"), body={**TREE, "spec": spec})
    yield Scheduler(client, namespace)
    await client.delete_object(TREES.path("kube-system", TREE["metadata"]["name"]))


async def submit(
    job: Job, *, labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None
) -> None:
    """Create the page's job."""
    metadata = {"name": job.name, "annotations": HOLD | (annotations or {}), "labels": labels or {}}
    await job.client.create_object(MPI_JOBS.path(job.namespace), body={**JOB, "metadata": metadata})


async def hold(job: Job) -> None:
    await job.patch({"metadata": {"annotations": HOLD}})


async def phase_of(scheduler: Scheduler, phase: str, name: str = UNIT) -> None:
    await seen(
        lambda: scheduler.phase(name), lambda found: found == phase, f"{name} with phase {phase!r}"
    )


async def only(scheduler: Scheduler, *names: str) -> list[dict[str, Any]]:
    """Wait until these QueueUnits are there and no others."""
    return await seen(
        scheduler.units,
        lambda units: sorted(unit["metadata"]["name"] for unit in units) == sorted(names),
        f"QueueUnits {names}",
    )


def shown(cluster: Cluster, job: Job) -> str:
    """The state that `get` shows."""
    return said(cluster, job).splitlines()[1].split()[1]


def said(cluster: Cluster, job: Job, *arguments: str) -> str:
    """The output of `get` in the job's namespace."""
    return CommandLine(cluster).run("get", "-n", job.namespace, *arguments)[1]


def waits(state: State) -> bool:
    return held(state, 2) and "Enqueued: train waits in KubeQueue" in state.notices


@pytest.mark.usefixtures("operator", "elastic")
async def test_a_job_waits_for_its_turn_says_that_it_runs_and_gives_its_quota_back(
    cluster: Cluster, scheduler: Scheduler, job: Job
) -> None:
    await submit(job)
    [unit] = await only(scheduler, UNIT)
    assert [
        owner["name"] for owner in unit["metadata"]["ownerReferences"] if owner.get("controller")
    ] == ["train"]
    assert unit["spec"]["consumerRef"] == {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MPIJob",
        "namespace": job.namespace,
        "name": "train",
    }
    assert unit["spec"]["resource"]["cpu"].startswith("8")
    assert unit["spec"]["request"] == unit["spec"]["resource"]
    await job.until(waits, "an answer to why it waits")
    await scheduler.say(UNIT, "Enqueued", "Insufficient quota(cpu)")
    assert await asyncio.to_thread(shown, cluster, job) == "Enqueued"
    page = await asyncio.to_thread(said, cluster, job, job.name)
    assert f"Queue:          KubeQueue; {UNIT} waits: Insufficient quota(cpu)" in page
    assert held(await job.at_rest(), 2)
    async with scheduler.running():
        state = await job.settled(2)
        await job.told("Dequeued")
        await phase_of(scheduler, "Running")
        assert await asyncio.to_thread(shown, cluster, job) == "Running"
        assert "Enqueued" not in (await job.at_rest()).notices
        assert state.launcher
        await job.set_status("train-launcher", {"phase": "Succeeded"})
        await only(scheduler)
        await job.until(lambda state: "Succeeded" in state.conditions, "an end")
        await asyncio.sleep(2)
        await only(scheduler)


@pytest.mark.usefixtures("operator", "elastic")
async def test_a_deleted_job_keeps_its_quota_until_its_pods_are_gone_also_others(
    scheduler: Scheduler, job: Job
) -> None:
    """While the job is there its unit stays, whichever pods own it; after that until those of now are gone."""
    async with scheduler.running():
        await submit(job)
        await phase_of(scheduler, "Running")
        [unit] = await only(scheduler, UNIT)
        owners = {owner["uid"] for owner in unit["metadata"]["ownerReferences"]}
        for pod in ("train-launcher", "train-worker-0"):
            await job.client.delete_object(PODS.path(job.namespace, pod))
        await job.until(
            lambda state: not owners & {pod["metadata"]["uid"] for pod in pods(state)}, "other pods"
        )
        await job.settled(2)
        await job.at_rest()
        [again] = await only(scheduler, UNIT)
        assert again["metadata"]["uid"] == unit["metadata"]["uid"]
        await keep(job, "train-worker-0")
        await job.delete()
        await job.until(
            lambda state: [*state.workers] == ["train-worker-0"] and not state.launcher,
            "one pod left",
        )
        await asyncio.sleep(3)
        await only(scheduler, UNIT)
        await keep(job, "train-worker-0", by=None)
        await only(scheduler)


@pytest.mark.usefixtures("operator", "elastic")
async def test_two_jobs_with_room_for_one_take_turns(scheduler: Scheduler, job: Job) -> None:
    """The first is suspended again, so the second gets its turn, and after that the first."""
    other = Job(client=job.client, namespace=job.namespace, name="rival")
    async with scheduler.running():
        await submit(job)
        await phase_of(scheduler, "Running")
        await submit(other)
        await phase_of(scheduler, "Enqueued", "rival-mpi-qu")
        await other.until(lambda state: held(state, 2), "gated pods")
        assert held(await other.at_rest(), 2)
        await hold(job)
        await other.settled(2)
        await phase_of(scheduler, "Running", "rival-mpi-qu")
        await job.until(waits, "gated pods again")
        await phase_of(scheduler, "Enqueued")
        await other.delete()
        await job.settled(2)
        await phase_of(scheduler, "Running")
        await only(scheduler, UNIT)


@pytest.mark.usefixtures("operator", "elastic")
async def test_a_job_asks_again_for_another_size_and_stops_when_its_quota_is_wanted_back(
    scheduler: Scheduler, job: Job
) -> None:
    await submit(job)
    [unit] = await only(scheduler, UNIT)
    await job.scale(1)
    await seen(
        scheduler.units,
        lambda units: [one["metadata"]["annotations"][UNIT_WORKERS] for one in units] == ["1"],
        "a QueueUnit for one worker",
    )
    assert unit["metadata"]["uid"] not in [
        one["metadata"]["uid"] for one in await scheduler.units()
    ]
    async with scheduler.running():
        await job.settled(1)
        await phase_of(scheduler, "Running")
    await scheduler.say(UNIT, "TimeoutBackoff", "no room")
    await job.told("QuotaWanted", "no room")
    await job.until(lambda state: held(state, 1), "gated pods")
    await phase_of(scheduler, "")
    async with scheduler.running():
        await job.settled(1)


@pytest.mark.usefixtures("operator", "elastic")
async def test_whom_somebody_else_queues_is_left_to_them(scheduler: Scheduler, job: Job) -> None:
    """The unit is there before the job, as programs that submit jobs do it, or has the name that ours would have."""
    consumer = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MPIJob",
        "name": job.name,
        "namespace": job.namespace,
    }
    for name, spec in ((UNIT, {}), ("own", {"consumerRef": consumer})):
        body = {
            "apiVersion": QUEUE_UNITS.api_version,
            "kind": QUEUE_UNITS.kind,
            "metadata": {"name": name},
        }
        await job.client.create_object(QUEUE_UNITS.path(job.namespace), body={**body, "spec": spec})
        await submit(job)
        told = f"QueueUnit {name} queues it already"
        await job.until(
            lambda state, told=told: held(state, 2) and told in state.notices,  # type: ignore[misc]
            "a word on that",
        )
        await scheduler.say(name, "Dequeued")
        assert held(await job.at_rest(), 2)
        await job.patch({"metadata": {"annotations": {KUBEQUEUE_SUSPEND: None}}})
        await job.settled(2)
        await only(scheduler, name)
        await job.delete()
        await job.until(
            lambda state: not (state.workers or state.launcher or state.replicas), "nothing left"
        )
        await only(scheduler, name)
        await job.client.delete_object(QUEUE_UNITS.path(job.namespace, name))


def _makes(request: Request) -> bool:
    return request.method == "POST" and request.path.endswith("/queueunits")


def _releases(request: Request) -> bool:
    return request.method == "PATCH" and request.path.endswith("/mpijobs/train")


def _marks(request: Request) -> bool:
    return request.method == "PATCH" and f"/queueunits/{UNIT}" in request.path


def _deletes(request: Request) -> bool:
    return request.method == "DELETE" and request.path.endswith(f"/queueunits/{UNIT}")


DEATHS = [
    pytest.param(_makes, 1, False, id="the unit's creation is not heard"),
    pytest.param(_makes, 1, True, id="the unit's creation is not answered"),
    # The first change of the job tells that it does not wait any more.
    pytest.param(_releases, 2, False, id="the job's release is not heard"),
    pytest.param(_releases, 2, True, id="the job's release is not answered"),
    pytest.param(_marks, 1, False, id="the unit's mark is not heard"),
    pytest.param(_marks, 1, True, id="the unit's mark is not answered"),
    pytest.param(_deletes, 1, False, id="the unit's deletion is not heard"),
    pytest.param(_deletes, 1, True, id="the unit's deletion is not answered"),
]


@pytest.mark.usefixtures("operator", "webhook")
@pytest.mark.parametrize(("strikes", "nth", "after"), drawn(DEATHS))
async def test_a_death_at_any_write_comes_to_the_same_end(
    cluster: Cluster,
    scheduler: Scheduler,
    job: Job,
    strikes: Callable[[Request], bool],
    nth: int,
    after: bool,
) -> None:
    is_made = strikes is not _makes

    async def play() -> None:
        if not is_made:
            await submit(job, annotations=AT_ONCE)
        async with scheduler.running():
            await phase_of(scheduler, "Running")
            [old] = await only(scheduler, UNIT)
            await hold(job)
            await job.until(lambda state: held(state, 2), "gated pods")
            uid = old["metadata"]["uid"]  # the old one says Running until it goes
            await seen(
                scheduler.units,
                lambda units: uid not in [one["metadata"]["uid"] for one in units],
                "another",
            )
            await phase_of(scheduler, "Running")

    async with (
        FaultProxy(cluster.kubeconfig) as proxy,
        controlling(proxy.kubeconfig, job.namespace) as controller,
    ):
        if is_made:
            await submit(job, annotations=AT_ONCE)
            await job.until(waits, "gated pods")
            await job.at_rest()
        assert await died(proxy, controller, play(), at=strikes, nth=nth, after=after)
    async with controlling(cluster.kubeconfig, job.namespace), scheduler.running():
        await phase_of(scheduler, "Running")
        await job.settled(2)
        await only(scheduler, UNIT)
