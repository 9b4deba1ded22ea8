"""Gangs beside Volcano's actions gangpreempt and gangreclaim, which take from a gang what it has above its least size.

They take all of that at once, however little is needed; never the launcher.
"""

from dataclasses import replace

import pytest

from tests.lab.job import Job, Object, State
from tests.peers.gpus import on_gpu, priority

pytestmark = [
    pytest.mark.lab,
    pytest.mark.peers,
    pytest.mark.usefixtures("volcano_for_gangs", "elastic", "operator"),
]
ASKED = {"mpijob-elastic/gang": "volcano"}
LEAST = {
    **ASKED,
    "mpijob-elastic/min-replicas": "2",
    "mpijob-elastic/drain-timeout": "60s",
}
QUEUE = "scheduling.volcano.sh/queue-name"


def uid(pod: Object | None) -> str:
    return str(pod["metadata"]["uid"]) if pod else ""


async def loses_what_is_above_its_least(
    job: Job, before: State, rival: Job, pool: str, annotations: Object, **spec: str
) -> None:
    """Start a rival that needs one GPU, and see that launcher and least workers are those of before."""
    await rival.create(
        replicas=1,
        annotations=annotations,
        worker_spec=on_gpu(pool, **spec),
        launcher_spec={**spec},
    )
    await rival.settled(1)
    after = await job.until(lambda state: len(state.hosts) == 3, "it has what is left")
    assert uid(after.launcher) == uid(before.launcher) != ""
    same = {
        name
        for name in job.workers(0, 1, 2, 3)
        if uid(after.workers.get(name)) == uid(before.workers[name])
    }
    assert same == set(job.workers(0, 1))


async def test_gangpreempt_spares_the_launcher_and_the_least_workers(job: Job, pool: str) -> None:
    await job.create(replicas=4, annotations=LEAST, worker_spec=on_gpu(pool))
    before = await job.settled(4)
    async with priority(job.client, pool, takes=True) as high:
        urgent = replace(job, name="urgent")
        await loses_what_is_above_its_least(job, before, urgent, pool, ASKED, **high)


async def test_gangreclaim_spares_the_launcher_and_the_least_workers(job: Job, pool: str) -> None:
    await job.create(replicas=4, annotations=LEAST, worker_spec=on_gpu(pool))
    before = await job.settled(4)
    owner = replace(job, name="owner")
    await loses_what_is_above_its_least(job, before, owner, pool, {**ASKED, QUEUE: "team"})
