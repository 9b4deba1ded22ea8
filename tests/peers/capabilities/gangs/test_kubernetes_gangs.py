"""Gangs of Kubernetes' own scheduler, behind the gate of 1.37: all of a job's pods start, or none."""

import asyncio
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial

import pytest

from lab.cluster import Cluster
from lab.install import Installed, install_into
from mpijob_elastic.capabilities.gangs.facts import KUBERNETES_POD_GROUPS
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.writer import MERGE_PATCH
from tests.lab.job import Job, Object
from tests.lab.on_demand import OnDemand
from tests.lab.waiting import PATIENCE
from tests.peers.gpus import (
    compete,
    holds_half,
    on_gpu,
    preempted,
    priority,
    replaced,
    shrink_and_grow,
    start_without,
)
from tests.peers.kubernetes_gangs import GANG, LEAST, create, lab_of, min_count, pod_group, uids

pytestmark = [pytest.mark.lab, pytest.mark.peers, pytest.mark.usefixtures("elastic", "operator")]

VERSION = "v1.37.2"
WORKERS_ONLY = {"mpijob-elastic/gang": "kubernetes-workers"}
of = partial(pod_group, resource=KUBERNETES_POD_GROUPS)


@pytest.fixture(scope="module")
def cluster(programs: OnDemand) -> Iterator[Cluster]:
    """A lab that serves PodGroups of Kubernetes, in place of the session's."""
    with lab_of(VERSION, programs) as running:
        yield running


@pytest.fixture(scope="module")
def installed(cluster: Cluster) -> Installed:
    """Our objects there."""
    return install_into(cluster)


async def test_of_two_jobs_for_which_there_is_room_once_one_starts(job: Job, pool: str) -> None:
    jobs = {name: replace(job, name=name) for name in ("one", "two")}
    rivals = partial(create, pool=pool, replicas=4, annotations=GANG)
    held = await compete(jobs["one"], jobs["two"], pool, lambda rival, more: rivals(rival, **more))
    # A gang that waits is tried again after a while of its own, so the urgent one may be the
    # second.
    loser, winner = (jobs[name] for name in sorted(held, key=lambda name: held[name]))
    assert (held[loser.name], held[winner.name]) == (0, 4)
    assert min_count(await of(loser)) == 5
    await start_without(loser, winner)


async def test_without_a_gang_it_holds_half_and_waits(job: Job, pool: str) -> None:
    await holds_half(job, pool, partial(create, pool=pool, replicas=4, annotations={}))


async def test_it_starts_at_the_least_size_grows_shrinks_and_replaces_a_worker(
    job: Job, pool: str
) -> None:
    await create(job, pool, replicas=5, annotations=GANG | LEAST)
    await shrink_and_grow(job)
    assert min_count(await of(job)) == 3


async def test_below_its_start_it_waits_for_fewer_and_a_worker_is_replaced(
    job: Job, pool: str
) -> None:
    await create(job, pool, replicas=4, annotations=GANG)
    await job.settled(4)
    assert min_count(await of(job)) == 5
    await job.scale(2)
    await job.settled(2)
    await job.told("PodGroupLowered", "minCount 5 → 3")
    assert min_count(await of(job)) == 3
    await replaced(job, job.workers(1)[0])


async def test_the_launcher_is_outside_the_gang_with_a_priority_of_its_own(
    job: Job, pool: str
) -> None:
    async with priority(job.client, pool, takes=False) as high:
        with pytest.raises(errors.ApiError, match="starts no pod of a gang whose launcher has"):
            await job.create(
                replicas=2, annotations=GANG, worker_spec=on_gpu(pool), launcher_spec={**high}
            )
        await job.create(
            replicas=2, annotations=WORKERS_ONLY, worker_spec=on_gpu(pool), launcher_spec={**high}
        )
        state = await job.settled(2)
    assert min_count(await of(job)) == 2
    assert state.launcher is not None
    marked = [
        pod["spec"].get("schedulingGroup") for pod in (*state.workers.values(), state.launcher)
    ]
    assert marked == [{"podGroupName": job.name}] * 2 + [None]


async def test_a_preemption_takes_the_workers_that_kube_scheduler_chooses(
    job: Job, pool: str
) -> None:
    """On a node that started last; no mark of a pod protects it, nor does its index."""
    before, after = await preempted(job, pool, GANG | LEAST)
    kept = [host.removesuffix(":1") for host in after.hosts]
    assert {uids(after)[name] for name in kept} <= {*uids(before).values()}
    assert after.launcher_runs


async def test_the_controller_makes_only_the_pod_groups_of_jobs_and_only_lowers_them(
    job: Job, pool: str, installed: Installed
) -> None:
    await create(job, pool, replicas=4, annotations=GANG | LEAST)
    await job.settled(4)
    path = KUBERNETES_POD_GROUPS.path(job.namespace)
    async with await connect(
        user_agent="test", kubeconfig=installed.controller_kubeconfig
    ) as controller:
        async with asyncio.timeout(PATIENCE):  # a new policy takes a moment
            with refused():
                while True:
                    await controller.create_object(
                        path, body=alone("other"), query={"dryRun": "All"}
                    )
        change = partial(
            controller.patch_object,
            KUBERNETES_POD_GROUPS.path(job.namespace, job.name),
            content_type=MERGE_PATCH,
            query={"dryRun": "All"},
        )
        await change(body=counting(2))
        for body in (
            counting(4),
            {"metadata": {"annotations": {"added": "yes", "kept": None}, "finalizers": None}},
            {"metadata": {"ownerReferences": None}},
        ):
            with refused():
                await change(body=body)


def counting(count: int) -> Object:
    """Return the change of a PodGroup to wait for so many pods."""
    return {"spec": {"schedulingPolicy": {"gang": {"minCount": count}}}}


def refused() -> AbstractContextManager[object]:
    """Expect that the policy refuses a write."""
    return pytest.raises(errors.Forbidden, match="'mpijob-elastic-kubernetes-gangs' with binding")


def alone(name: str) -> Object:
    """Return a PodGroup that no job controls."""
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    kind = KUBERNETES_POD_GROUPS
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": name},
        "spec": spec,
    }
