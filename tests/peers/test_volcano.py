"""Gangs beside the real Volcano: all of a job's pods start, or none; the workers above its least size may be taken."""

import asyncio
import re
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from lab.cluster import Cluster
from lab.operator.process import Operator
from mpijob_elastic.kube import errors, resources
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.job import Job, Object
from tests.peers.gpus import compete, group, on_gpu, priority, replaced, start_without

pytestmark = [pytest.mark.lab, pytest.mark.peers, pytest.mark.usefixtures("volcano", "elastic")]

GANG = {"mpijob-elastic/gang": "volcano"}
PAGE = Path(__file__).parents[2] / "docs" / "gangs.md"
LEAST = {"mpijob-elastic/min-replicas": "2", "mpijob-elastic/drain-timeout": "30s"}
QUEUE = "scheduling.volcano.sh/queue-name"


@pytest.mark.usefixtures("operator")
async def test_of_two_jobs_for_which_there_is_room_once_one_starts(job: Job, pool: str) -> None:
    async def create(rival: Job, more: Object) -> None:
        await rival.create(replicas=4, annotations=GANG, worker_spec=on_gpu(pool, **more), launcher_spec=more)

    one, two = (replace(job, name=name) for name in ("one", "two"))
    assert await compete(one, two, pool, create) == {"one": 0, "two": 4}
    assert (await group(one, resources.POD_GROUPS))["minMember"] == 5
    await start_without(one, two)


@pytest.mark.usefixtures("operator")
async def test_without_a_gang_both_hold_half_and_wait(job: Job, pool: str) -> None:
    async def create(rival: Job, more: Object) -> None:
        await rival.create(replicas=4, worker_spec=on_gpu(pool, **more))

    one, two = (replace(job, name=name) for name in ("one", "two"))
    assert await compete(one, two, pool, create) == {"one": 2, "two": 2}


@pytest.mark.usefixtures("operator")
async def test_it_starts_at_the_least_size_grows_shrinks_and_replaces_a_worker(job: Job, pool: str) -> None:
    await job.create(replicas=2, annotations={**GANG, **LEAST, QUEUE: "team"}, worker_spec=on_gpu(pool))
    await job.settled(2)
    await job.told("PodGroupCreated", "3 at least in queue team")
    assert await group(job, resources.POD_GROUPS) == {"minMember": 3, "queue": "team"}
    await job.scale(4)
    state = await job.settled(4)
    marks = {name: pod["metadata"]["annotations"]["volcano.sh/preemptable"] for name, pod in state.workers.items()}
    assert marks == dict(zip(job.workers(0, 1, 2, 3), ("false", "false", "true", "true"), strict=True))
    await replaced(job, job.workers(1)[0])
    await job.scale(2)
    await job.until(lambda seen: len(seen.workers) == len(seen.hosts) == 2, "two workers")
    assert (await group(job, resources.POD_GROUPS))["minMember"] == 3


@pytest.mark.usefixtures("operator")
async def test_a_job_of_higher_priority_takes_only_workers_above_the_least_size(
    job: Job, pool: str, client: ApiWriter
) -> None:
    urgent = replace(job, name="urgent")
    await job.create(replicas=4, annotations=GANG | LEAST, worker_spec=on_gpu(pool))
    before = await job.settled(4)
    async with priority(client, pool, takes=True) as high:
        await urgent.create(replicas=2, annotations=GANG, worker_spec=on_gpu(pool, **high))
        await urgent.settled(2)
    after = await job.until(lambda state: len(state.hosts) == 2, "it goes on with its least size")
    kept = job.workers(0, 1)
    assert after.hosts == [f"{name}:1" for name in kept]
    assert {name: after.workers[name]["metadata"]["uid"] for name in kept} == {
        name: before.workers[name]["metadata"]["uid"] for name in kept
    }
    await job.told("Disruption", "DisruptionTarget")
    await urgent.delete()
    await job.until(lambda state: len(state.hosts) == 4, "it is whole again")


async def test_the_pod_group_of_the_operator_gets_the_queue_of_the_job(job: Job, pool: str, cluster: Cluster) -> None:
    topology = {"volcano.sh/task-topology-task-order": "worker,launcher"}
    with Operator.start(cluster, namespace=job.namespace, gang_scheduling="volcano", qps=0):
        await job.create(replicas=4, annotations={**GANG, **LEAST, **topology, QUEUE: "team"}, worker_spec=on_gpu(pool))
        await job.settled(4)
    found: Object = msgspec.json.decode(await job.client.get(resources.POD_GROUPS.path(job.namespace, job.name)))
    assert (found["spec"]["minMember"], found["spec"]["queue"]) == (3, "team")
    assert topology.items() <= found["metadata"]["annotations"].items()


@pytest.mark.usefixtures("operator")
async def test_the_job_of_the_page_runs(job: Job, cluster: Cluster) -> None:
    [text, *_] = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    await asyncio.to_thread(cluster.kubectl, "apply", "-n", job.namespace, "-f", "-", stdin=text)
    await job.settled(4)
    assert await group(job, resources.POD_GROUPS) == {"minMember": 3, "queue": "team"}


@pytest.mark.parametrize(("queue", "why"), [("shut", "queue shut is Closed"), ("typo", "there is no queue typo")])
async def test_a_queue_that_takes_no_jobs_is_refused(job: Job, queue: str, why: str) -> None:
    with pytest.raises(errors.Invalid, match=why):
        await job.create(replicas=2, annotations={**GANG, QUEUE: queue})
