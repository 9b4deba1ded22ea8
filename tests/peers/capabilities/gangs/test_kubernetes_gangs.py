"""Gangs of Kubernetes' own scheduler, behind the gates of 1.36: all of a job's pods start, or none."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial

import msgspec
import pytest

from lab.build import is_built
from lab.cluster import Cluster
from lab.install import Installed, install_into
from lab.options import Options
from lab.versions import KubernetesVersion
from mpijob_elastic.capabilities.gangs.facts import KUBERNETES_POD_GROUPS
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.writer import MERGE_PATCH
from tests.lab.job import Job, Object, State
from tests.lab.on_demand import OnDemand
from tests.lab.waiting import PATIENCE
from tests.peers.gpus import (
    BACKED_OFF,
    compete,
    on_gpu,
    preempted,
    replaced,
    shrink_and_grow,
    start_without,
)

pytestmark = [pytest.mark.lab, pytest.mark.peers, pytest.mark.usefixtures("elastic", "operator")]

VERSION = "v1.36.3"
GANG = {"mpijob-elastic/gang": "kubernetes"}
LEAST = {"mpijob-elastic/min-replicas": "2", "mpijob-elastic/drain-timeout": "30s"}


@pytest.fixture(scope="module")
def cluster(programs: OnDemand) -> Iterator[Cluster]:
    """A lab that serves PodGroups of Kubernetes, in place of the session's."""
    if not is_built(KubernetesVersion.parse(VERSION)):
        pytest.skip(
            f"Kubernetes {VERSION} is not built here: python -m lab binaries --kubernetes-version {VERSION}"
        )
    options = Options(kubernetes_version=VERSION, gangs=True)
    with Cluster.start(name=f"pytest-gangs-{os.getpid()}", options=options) as running:
        yield running
        programs.keep(())


@pytest.fixture(scope="module")
def installed(cluster: Cluster) -> Installed:
    """Our objects there."""
    return install_into(cluster)


async def create(
    job: Job, pool: str, *, replicas: int, annotations: dict[str, str], **more: str
) -> None:
    """Create a job of workers with a GPU each."""
    await job.create(
        replicas=replicas,
        annotations=annotations,
        worker_spec=on_gpu(pool, **more),
        launcher_spec=more,
    )


async def test_of_two_jobs_for_which_there_is_room_once_one_starts(job: Job, pool: str) -> None:
    jobs = {name: replace(job, name=name) for name in ("one", "two")}
    rivals = partial(create, pool=pool, replicas=4, annotations=GANG)
    held = await compete(jobs["one"], jobs["two"], pool, lambda rival, more: rivals(rival, **more))
    # A gang that waits is tried again after a while of its own, so the urgent one may be the
    # second.
    loser, winner = (jobs[name] for name in sorted(held, key=lambda name: held[name]))
    assert (held[loser.name], held[winner.name]) == (0, 4)
    assert min_count(await pod_group(loser)) == 5
    await start_without(loser, winner)


async def test_without_a_gang_both_hold_half_and_wait(job: Job, pool: str) -> None:
    one, two = (replace(job, name=name) for name in ("one", "two"))
    rivals = partial(create, pool=pool, replicas=4, annotations={})
    held = await compete(one, two, pool, lambda rival, more: rivals(rival, **more), rest=BACKED_OFF)
    assert held == {"one": 2, "two": 2}


async def test_it_starts_at_the_least_size_grows_shrinks_and_replaces_a_worker(
    job: Job, pool: str
) -> None:
    await create(job, pool, replicas=5, annotations=GANG | LEAST)
    await shrink_and_grow(job)
    assert min_count(await pod_group(job)) == 3


async def test_below_its_start_a_worker_is_replaced_once_the_user_deletes_the_pod_group(
    job: Job, pool: str
) -> None:
    await create(job, pool, replicas=4, annotations=GANG)
    await job.settled(4)
    before = await pod_group(job)
    assert min_count(before) == 5
    await job.scale(2)
    await job.until(lambda state: len(state.workers) == len(state.hosts) == 2, "two workers")
    await job.told("GangUnchanged", "waits for 5 pods")
    path = KUBERNETES_POD_GROUPS.path(job.namespace, job.name)
    await job.client.delete_object(path)
    await job.client.patch_object(
        path, body={"metadata": {"finalizers": None}}, content_type=MERGE_PATCH
    )
    await job.told("PodGroupCreated", "3 at least")
    assert uids(await job.state()).keys() == {*job.workers(0, 1)}
    await replaced(job, job.workers(1)[0])


async def test_a_preemption_takes_the_workers_that_kube_scheduler_chooses(
    job: Job, pool: str
) -> None:
    """On a node that started last; no mark of a pod protects it, nor does its index."""
    before, after = await preempted(job, pool, GANG | LEAST)
    kept = [host.removesuffix(":1") for host in after.hosts]
    assert {uids(after)[name] for name in kept} <= {*uids(before).values()}
    assert after.launcher_runs


async def test_the_controller_makes_only_the_pod_groups_of_jobs(
    job: Job, installed: Installed
) -> None:
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


def refused() -> AbstractContextManager[object]:
    """Expect that the policy refuses a write."""
    return pytest.raises(errors.Forbidden, match="'mpijob-elastic-kubernetes-gangs' with binding")


def alone(name: str) -> Object:
    """Return a PodGroup that no job controls."""
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    of = KUBERNETES_POD_GROUPS
    return {"apiVersion": of.api_version, "kind": of.kind, "metadata": {"name": name}, "spec": spec}


async def pod_group(job: Job) -> Object:
    """Return the job's PodGroup."""
    raw = await job.client.get(KUBERNETES_POD_GROUPS.path(job.namespace, job.name))
    found: Object = msgspec.json.decode(raw)
    return found


def min_count(pod_group: Object) -> int:
    """Return for how many pods it waits."""
    count: int = pod_group["spec"]["schedulingPolicy"]["gang"]["minCount"]
    return count


def uids(state: State) -> dict[str, str]:
    """Return the uid of each worker."""
    return {name: pod["metadata"]["uid"] for name, pod in state.workers.items()}
