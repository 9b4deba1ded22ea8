"""Gangs beside the real koord-scheduler: all of a job's pods start, or none; quotas take those above the least size."""

import asyncio
import re
from dataclasses import replace
from functools import partial

import pytest

from lab.cluster import Cluster
from lab.registration import evictions_wait
from lab.replicas import Webhook
from mpijob_elastic.kube.resources import KOORDINATOR_POD_GROUPS
from tests.lab.job import Job, Object, State
from tests.lab.ranks import in_pod, start_rank
from tests.lab.suspended import held, pods
from tests.lab.waiting import until
from tests.peers import koordinator
from tests.peers.gpus import SCHEDULED, bound, compete, group, half, on_gpu, priority, shrink_and_grow, start_without

pytestmark = [pytest.mark.lab, pytest.mark.peers, pytest.mark.usefixtures("koord_scheduler", "elastic", "operator")]

GANG = {"mpijob-elastic/gang": "koordinator"}
LEAST = {"mpijob-elastic/min-replicas": "2", "mpijob-elastic/drain-timeout": "60s"}


@pytest.mark.parametrize(
    ("annotations", "has"), [(GANG, {"one": 0, "two": 4}), ({}, {"one": 2, "two": 2})], ids=["gang", "no gang"]
)
async def test_of_two_jobs_for_which_there_is_room_once_one_starts(
    job: Job, pool: str, annotations: dict[str, str], has: dict[str, int]
) -> None:
    """Without a gang each holds half, and both wait."""

    async def create(rival: Job, more: Object) -> None:
        ours = {"schedulerName": koordinator.NAME, **more}
        await rival.create(replicas=4, annotations=annotations, worker_spec=on_gpu(pool, **ours), launcher_spec=ours)

    one, two = (replace(job, name=name) for name in ("one", "two"))
    assert await compete(one, two, pool, create) == has
    if annotations:
        assert (await group(one, KOORDINATOR_POD_GROUPS)) == {"minMember": 5}
        await start_without(one, two)


async def test_it_starts_at_the_least_size_grows_shrinks_and_replaces_a_worker(job: Job, pool: str) -> None:
    await job.create(replicas=5, annotations=GANG | LEAST, worker_spec=on_gpu(pool))
    await shrink_and_grow(job)
    assert (await group(job, KOORDINATOR_POD_GROUPS)) == {"minMember": 3}


async def test_it_grows_when_nodes_have_room_again(job: Job, pool: str) -> None:
    """Several of its workers waited at once."""
    async with half(job.client, pool):
        await job.create(replicas=4, annotations=GANG | LEAST, worker_spec=on_gpu(pool))
        await job.until(lambda state: len(state.hosts) == 2, "its least size")
        state = await job.until(lambda state: len(list(filter(refused, pods(state)))) == 2, "two that wait")
        assert len(bound(state)) == 3
    await job.settled(4)


async def test_all_of_it_starts_when_all_of_it_has_waited(job: Job, pool: str) -> None:
    """The scheduler starts three of its pods, any of them, and tries the others only once they are made again."""
    async with half(job.client, pool, 0), half(job.client, pool, 1):
        await job.create(replicas=4, annotations=GANG | LEAST, worker_spec=on_gpu(pool))
        await job.until(lambda state: any(map(refused, pods(state))), "a gang that does not fit")
        await job.until(lambda state: len(pods(state)) == 5, "its pods")
    await job.settled(4)


async def test_a_job_that_is_resumed_is_a_gang_again(job: Job, pool: str) -> None:
    await job.create(replicas=4, annotations=GANG | {"mpijob-elastic/drain-timeout": "10s"}, worker_spec=on_gpu(pool))
    await job.settled(4)
    await job.annotate(suspend="true")
    await job.until(lambda state: held(state, 4), "gated pods only")
    async with half(job.client, pool):
        await job.annotate(suspend=None)
        await job.until(lambda state: any(map(refused, pods(state))), "a gang that does not fit")
        await asyncio.sleep(SCHEDULED)
        state = await job.state()
        assert not any(pod["spec"].get("schedulingGates") for pod in pods(state))
        assert bound(state) == []
    await job.settled(4)


def refused(pod: Object) -> bool:
    """Tell whether the scheduler has said of a pod why it has no node."""
    return any(one.get("reason") == "Unschedulable" for one in pod["status"].get("conditions", ()))


@pytest.mark.parametrize("elsewhere", [False, True], ids=["of its quota", "of no quota"])
async def test_a_job_of_higher_priority_takes_only_workers_above_the_least_size(
    job: Job, pool: str, *, elsewhere: bool
) -> None:
    urgent = replace(job, name="urgent")
    async with (
        koordinator.quota(job.client, pool, least=4, most=4),
        koordinator.quota(job.client, f"{pool}-team", least=4, most=4, parent=pool) as team,
        priority(job.client, pool, takes=True) as high,
    ):
        await job.create(replicas=4, annotations=GANG | LEAST, job_labels=team, worker_spec=on_gpu(pool))
        before = await job.settled(4)
        theirs = {} if elsewhere else team
        await urgent.create(replicas=2, annotations=GANG, job_labels=theirs, worker_spec=on_gpu(pool, **high))
        await urgent.settled(2)
        after = await job.until(lambda state: len(state.hosts) == 2, "it goes on with its least size")
        assert kept(before, after) == set(job.workers(0, 1))
        assert after.hosts == [f"{name}:1" for name in job.workers(0, 1)]
        await job.told("Disruption", "DisruptionTarget")
        await urgent.delete()
        await job.until(lambda state: len(state.hosts) == 4, "it is whole again")


def kept(before: State, after: State) -> set[str]:
    """Return the workers that are the same pods as before."""
    uids = {name: pod["metadata"]["uid"] for name, pod in before.workers.items()}
    return {name for name in after.running if after.workers[name]["metadata"]["uid"] == uids.get(name)}


async def test_a_revocation_waits_until_the_ranks_have_left(
    job: Job, pool: str, cluster: Cluster, webhook: Webhook
) -> None:
    """A quota that has lent its GPUs to another wants them back."""
    until(lambda: evictions_wait(cluster))
    owner = replace(job, name="owner")
    half_of_it = partial(koordinator.quota, job.client, least=2, most=4, parent=pool)
    async with (
        koordinator.quota(job.client, pool, least=4, most=4),
        half_of_it(f"{pool}-borrows") as borrows,
        half_of_it(f"{pool}-lends") as lends,
    ):
        await job.create(replicas=4, annotations=GANG | LEAST, job_labels=borrows, worker_spec=on_gpu(pool))
        before = await job.settled(4)
        extras = job.workers(2, 3)
        ranks = {name: await asyncio.to_thread(start_rank, cluster, job, name) for name in extras}
        await owner.create(replicas=2, annotations=GANG, job_labels=lends, worker_spec=on_gpu(pool))
        after = await job.until(lambda state: len(state.hosts) == 2, "the list without those that are revoked")
        assert after.hosts == [f"{name}:1" for name in job.workers(0, 1)]
        assert kept(before, after) == set(job.workers(0, 1, 2, 3))
        assert bound(await owner.state()) == []
        for name, rank in ranks.items():
            await asyncio.to_thread(in_pod, cluster, job, name, f"kill {rank}")
        await owner.settled(2)
        assert kept(before, await job.at_rest()) == set(job.workers(0, 1))
        assert 'kind="Eviction",operation="CREATE",outcome="postponed"' in webhook.metrics()
        await owner.delete()
        await job.until(lambda state: len(state.hosts) == 4, "it is whole again")


async def test_the_job_of_the_page_runs(job: Job, cluster: Cluster) -> None:
    [_, _, text, *_] = re.findall(r"```yaml\n(.*?)```", koordinator.PAGE.read_text(), re.DOTALL)
    await asyncio.to_thread(cluster.kubectl, "apply", "-n", job.namespace, "-f", "-", stdin=text)
    await job.settled(4)
    assert (await group(job, KOORDINATOR_POD_GROUPS)) == {"minMember": 3}
