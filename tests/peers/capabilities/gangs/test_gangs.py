"""Gangs beside the real schedulers of Volcano, scheduler-plugins and Koordinator: all of a job's pods start, or none.

Kubernetes' own scheduler is in test_kubernetes_gangs.py: it needs a newer cluster.
"""

import asyncio
import re
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import msgspec
import pytest

from lab.cluster import Cluster
from lab.operator.process import Operator
from lab.registration import evictions_wait
from lab.replicas import Webhook
from mpijob_elastic.capabilities.gangs.facts import (
    COSCHEDULING_POD_GROUPS,
    KOORDINATOR_POD_GROUPS,
    VOLCANO_POD_GROUPS,
)
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import Resource
from tests.lab.job import Job, Object, State
from tests.lab.ranks import in_pod, start_rank
from tests.lab.refusing import DAY, Refused, withstands
from tests.lab.suspended import held, pods
from tests.lab.waiting import seen, until
from tests.peers import coscheduling, koordinator
from tests.peers.gpus import (
    SCHEDULED,
    bound,
    compete,
    group,
    half,
    holds_half,
    on_gpu,
    preempted,
    shrink_and_grow,
    start_without,
)

pytestmark = [pytest.mark.lab, pytest.mark.peers, pytest.mark.usefixtures("scheduler", "elastic")]

EXAMPLES = re.findall(
    r"```yaml\n(.*?)```", (Path(__file__).parents[4] / "docs" / "gangs.md").read_text(), re.DOTALL
)
LEAST = {"mpijob-elastic/min-replicas": "2", "mpijob-elastic/drain-timeout": "60s"}
QUEUE = "scheduling.volcano.sh/queue-name"


@dataclass(frozen=True, kw_only=True)
class Scheduler:
    """A scheduler that knows gangs.

    fixture: starts it. named: templates name it, so that it also has the pods of jobs without a
    gang. by_chance: what was refused is not tried again at once, however urgent it is. example: the
    number of its job in docs/gangs.md.
    """

    gang: str
    fixture: str
    groups: Resource
    example: int
    spec: Object
    named: str | None = None
    by_chance: bool = False

    @property
    def asked(self) -> dict[str, str]:
        """The annotation of a job."""
        return {"mpijob-elastic/gang": self.gang}

    async def create(
        self, job: Job, pool: str, *, replicas: int, annotations: dict[str, str], **more: str
    ) -> None:
        """Create a job of workers with a GPU each."""
        ours = {**({"schedulerName": self.named} if self.named else {}), **more}
        worker = on_gpu(pool, **ours)
        await job.create(
            replicas=replicas, annotations=annotations, worker_spec=worker, launcher_spec={**ours}
        )


VOLCANO = Scheduler(
    gang="volcano",
    fixture="volcano",
    groups=VOLCANO_POD_GROUPS,
    example=0,
    spec={"minMember": 3, "queue": "team"},
)
COSCHEDULING = Scheduler(
    gang="coscheduling",
    fixture="coscheduler",
    groups=COSCHEDULING_POD_GROUPS,
    example=1,
    spec={"minMember": 3},
    named=coscheduling.NAME,
    by_chance=True,
)
KOORDINATOR = Scheduler(
    gang="koordinator",
    fixture="koord_scheduler",
    groups=KOORDINATOR_POD_GROUPS,
    example=2,
    spec={"minMember": 3},
    named=koordinator.NAME,
)


@pytest.fixture(
    scope="module",
    params=[VOLCANO, COSCHEDULING, KOORDINATOR],
    ids=lambda one: str(getattr(one, "gang", one)),
)
def scheduler(request: pytest.FixtureRequest) -> Scheduler:
    """The scheduler, which runs."""
    found: Scheduler = request.param
    request.getfixturevalue(found.fixture)
    return found


def only(scheduler: Scheduler) -> pytest.MarkDecorator:
    """Run a test beside one scheduler."""
    return pytest.mark.parametrize("scheduler", [scheduler], ids=[scheduler.gang], indirect=True)


@pytest.mark.usefixtures("operator")
async def test_of_two_jobs_for_which_there_is_room_once_one_starts(
    job: Job, pool: str, scheduler: Scheduler
) -> None:
    jobs = {name: replace(job, name=name) for name in ("one", "two")}
    rivals = partial(scheduler.create, pool=pool, replicas=4, annotations=scheduler.asked)
    found = await compete(jobs["one"], jobs["two"], pool, lambda rival, more: rivals(rival, **more))
    assert 0 in found.values()
    if not scheduler.by_chance:
        assert sum(found.values()) == 4
    waits, runs = (jobs[name] for name in sorted(found, key=lambda name: found[name]))
    assert (await group(waits, scheduler.groups))["minMember"] == 5
    await start_without(waits, runs)


@pytest.mark.usefixtures("operator")
async def test_without_a_gang_it_holds_half_and_waits(
    job: Job, pool: str, scheduler: Scheduler
) -> None:
    await holds_half(job, pool, partial(scheduler.create, pool=pool, replicas=4, annotations={}))


@pytest.mark.usefixtures("operator")
async def test_it_starts_at_the_least_size_grows_shrinks_and_replaces_a_worker(
    job: Job, pool: str, scheduler: Scheduler
) -> None:
    await scheduler.create(job, pool, replicas=5, annotations=scheduler.asked | LEAST)
    await shrink_and_grow(job)
    assert (await group(job, scheduler.groups))["minMember"] == 3


@pytest.mark.usefixtures("operator")
async def test_the_job_of_the_page_runs(job: Job, cluster: Cluster, scheduler: Scheduler) -> None:
    text = EXAMPLES[scheduler.example]
    await asyncio.to_thread(cluster.kubectl, "apply", "-n", job.namespace, "-f", "-", stdin=text)
    await job.settled(4)
    assert await group(job, scheduler.groups) == scheduler.spec


def kept(before: State, after: State) -> set[str]:
    """Return the workers that are the same pods as before."""
    uids = {name: pod["metadata"]["uid"] for name, pod in before.workers.items()}
    return {
        name for name in after.running if after.workers[name]["metadata"]["uid"] == uids.get(name)
    }


@only(VOLCANO)
@pytest.mark.usefixtures("operator")
async def test_a_job_of_higher_priority_takes_only_workers_above_the_least_size(
    job: Job, pool: str, scheduler: Scheduler
) -> None:
    before, after = await preempted(job, pool, LEAST | scheduler.asked)
    assert kept(before, after) == set(job.workers(0, 1))
    assert after.hosts == [f"{name}:1" for name in job.workers(0, 1)]


@only(COSCHEDULING)
@pytest.mark.usefixtures("operator")
async def test_a_preemption_takes_the_workers_that_kube_scheduler_chooses(
    job: Job, pool: str, scheduler: Scheduler
) -> None:
    """On a node that started last; no mark of a pod protects it, nor does its index.

    It may change its mind about where the urgent pods shall run, and then takes more than they
    need.
    """
    before, after = await preempted(
        job, pool, LEAST | scheduler.asked, schedulerName=coscheduling.NAME
    )
    assert before.launcher
    assert after.launcher
    assert after.launcher["metadata"]["uid"] == before.launcher["metadata"]["uid"]
    assert after.launcher_runs


@only(KOORDINATOR)
@pytest.mark.usefixtures("operator")
@pytest.mark.parametrize("elsewhere", [False, True], ids=["of its quota", "of no quota"])
async def test_a_job_of_higher_priority_takes_only_workers_above_the_least_size_of_a_quota(
    job: Job, pool: str, scheduler: Scheduler, *, elsewhere: bool
) -> None:
    async with (
        koordinator.quota(job.client, pool, least=4, most=4),
        koordinator.quota(job.client, f"{pool}-team", least=4, most=4, parent=pool) as team,
    ):
        theirs = {} if elsewhere else team
        before, after = await preempted(
            job, pool, LEAST | scheduler.asked, labels=team, theirs=theirs
        )
        assert kept(before, after) == set(job.workers(0, 1))
        assert after.hosts == [f"{name}:1" for name in job.workers(0, 1)]


@only(VOLCANO)
@pytest.mark.usefixtures("operator")
async def test_workers_above_the_least_size_are_marked_to_be_taken(
    job: Job, pool: str, scheduler: Scheduler
) -> None:
    await job.create(replicas=4, annotations=LEAST | scheduler.asked, worker_spec=on_gpu(pool))
    state = await job.settled(4)
    marks = {
        name: pod["metadata"]["annotations"]["volcano.sh/preemptable"]
        for name, pod in state.workers.items()
    }
    assert marks == dict(
        zip(job.workers(0, 1, 2, 3), ("false", "false", "true", "true"), strict=True)
    )


@only(VOLCANO)
async def test_the_pod_group_of_the_operator_gets_the_queue_of_the_job(
    job: Job, pool: str, cluster: Cluster, scheduler: Scheduler
) -> None:
    asked = {**scheduler.asked, **LEAST, QUEUE: "team"}
    topology = {"volcano.sh/task-topology-task-order": "worker,launcher"}
    with Operator.start(cluster, namespace=job.namespace, gang_scheduling="volcano", qps=0):
        await job.create(replicas=4, annotations=asked | topology, worker_spec=on_gpu(pool))
        await job.settled(4)

    async def made() -> Object:
        found: Object = msgspec.json.decode(
            await job.client.get(scheduler.groups.path(job.namespace, job.name))
        )
        return found

    def is_tuned(found: Object) -> bool:
        spec, annotations = found["spec"], found["metadata"].get("annotations", {})
        return (spec["minMember"], spec["queue"]) == (
            3,
            "team",
        ) and topology.items() <= annotations.items()

    await seen(made, is_tuned, "the PodGroup as the job asks for it")


@only(VOLCANO)
@pytest.mark.usefixtures("operator")
async def test_what_does_not_need_a_refused_tune_pod_group_comes_true(
    job: Job, pool: str, cluster: Cluster, scheduler: Scheduler
) -> None:
    async def create(job: Job) -> None:
        await job.create(replicas=3, annotations=LEAST | scheduler.asked, worker_spec=on_gpu(pool))
        await job.settled(3)

    async def asks_for_a_topology(job: Job) -> None:
        await job.patch(
            {
                "metadata": {
                    "annotations": {"volcano.sh/task-topology-task-order": "worker,launcher"}
                }
            }
        )

    tune_pod_group = Refused(
        group=scheduler.groups.group,
        resource=scheduler.groups.plural,
        operation="UPDATE",
        when="object.metadata.?annotations.orValue({}) != oldObject.metadata.?annotations.orValue({})",
        create=create,
        due=asks_for_a_topology,
        then=DAY,
    )
    await withstands(job, cluster, tune_pod_group)


@only(VOLCANO)
async def test_a_queue_that_is_closed_is_refused(job: Job, scheduler: Scheduler) -> None:
    with pytest.raises(errors.Invalid, match="queue shut is Closed"):
        await job.create(replicas=2, annotations={**scheduler.asked, QUEUE: "shut"})


@only(KOORDINATOR)
@pytest.mark.usefixtures("operator")
async def test_it_grows_when_nodes_have_room_again(
    job: Job, pool: str, scheduler: Scheduler
) -> None:
    """Several of its workers waited at once."""
    async with half(job.client, pool):
        await job.create(replicas=4, annotations=scheduler.asked | LEAST, worker_spec=on_gpu(pool))
        await job.until(lambda state: len(state.hosts) == 2, "its least size")
        state = await job.until(lambda state: sum(map(refused, pods(state))) == 2, "two that wait")
        assert len(bound(state)) == 3
    await job.settled(4)


@only(KOORDINATOR)
@pytest.mark.usefixtures("operator")
async def test_all_of_it_starts_when_all_of_it_has_waited(
    job: Job, pool: str, scheduler: Scheduler
) -> None:
    """The scheduler starts three of its pods, any of them, and tries the others only once they are made again."""
    async with half(job.client, pool, 0), half(job.client, pool, 1):
        await job.create(replicas=4, annotations=scheduler.asked | LEAST, worker_spec=on_gpu(pool))
        await job.until(lambda state: any(map(refused, pods(state))), "a gang that does not fit")
        await job.until(lambda state: len(pods(state)) == 5, "its pods")
    await job.settled(4)


@only(KOORDINATOR)
@pytest.mark.usefixtures("operator")
async def test_a_job_that_is_resumed_is_a_gang_again(
    job: Job, pool: str, scheduler: Scheduler
) -> None:
    quick = {**scheduler.asked, "mpijob-elastic/drain-timeout": "10s"}
    await job.create(replicas=4, annotations=quick, worker_spec=on_gpu(pool))
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


@only(KOORDINATOR)
@pytest.mark.usefixtures("operator")
async def test_a_revocation_waits_until_the_ranks_have_left(
    job: Job, pool: str, cluster: Cluster, webhook: Webhook, scheduler: Scheduler
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
        await job.create(
            replicas=4,
            annotations=scheduler.asked | LEAST,
            job_labels=borrows,
            worker_spec=on_gpu(pool),
        )
        before = await job.settled(4)
        extras = job.workers(2, 3)
        ranks = {name: await asyncio.to_thread(start_rank, cluster, job, name) for name in extras}
        await owner.create(
            replicas=2, annotations=scheduler.asked, job_labels=lends, worker_spec=on_gpu(pool)
        )
        after = await job.until(
            lambda state: len(state.hosts) == 2, "the list without those that are revoked"
        )
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
