"""Each write for Kueue is refused for good: what does not need it comes true, and users are told."""

from dataclasses import replace
from functools import partial

import pytest

from lab.cluster import Cluster
from mpijob_elastic import names
from mpijob_elastic.capabilities.kueue.facts import LABEL_PRIORITY_CLASS, LABEL_QUEUE, WORKLOADS
from tests.lab.deaths import drawn
from tests.lab.job import Job, State
from tests.lab.refusing import Refused, Step, is_replaced, sized, trains, withstands
from tests.lab.suspended import pods
from tests.lab.waiting import seen
from tests.peers.queued_jobs import ONE_GPU, QUICK, Object, workloads
from tests.peers.queues import example

pytestmark = [
    pytest.mark.lab,
    pytest.mark.peers,
    pytest.mark.usefixtures("kueue_serves", "elastic", "operator"),
]

LABELS = {LABEL_QUEUE: example("queues")["LocalQueue"]["metadata"]["name"]}


def queued(replicas: int) -> Step:
    async def step(job: Job) -> None:
        await job.create(
            replicas=replicas, worker_spec=ONE_GPU, annotations=QUICK, job_labels=LABELS
        )
        await job.settled(replicas)
        await seen(
            lambda: workloads(job),
            lambda found: all(is_ready(one) for one in found.values()),
            "all ready",
        )

    return step


def listed(state: State) -> list[str]:
    """The pods in the host list, where one that was replaced has another name."""
    return [names.pod_of(host.partition(":")[0]) for host in state.hosts]


def is_ready(workload: Object) -> bool:
    return is_true(workload, "PodsReady")


def is_true(workload: Object, kind: str) -> bool:
    return any(
        (one["type"], one["status"]) == (kind, "True") for one in workload["status"]["conditions"]
    )


def trains_with(replicas: int) -> Step:
    """So many workers train, whatever the size, and the first can be replaced."""

    async def step(job: Job) -> None:
        hosts = job.workers(*range(replicas))
        await job.until(lambda state: listed(state) == hosts, f"{replicas} hosts")
        [first] = job.workers(0)
        before = await job.state()
        await job.set_status(first, {"phase": "Failed", "reason": "Error"})
        await job.replaced(before, first)
        await job.until(lambda state: listed(state) == hosts, f"{replicas} hosts again")

    return step


async def stops(job: Job) -> None:
    await job.annotate(suspend="true")
    await job.until(
        lambda state: (
            len(pods(state)) == 1 + state.replicas
            and all(one["spec"].get("schedulingGates") for one in pods(state))
        ),
        "gated pods only",
    )


async def resumes(job: Job) -> None:
    await job.annotate(suspend=None)


def rival_of(job: Job) -> Job:
    return replace(job, name="rival")


async def meets_a_rival(job: Job) -> None:
    await rival_of(job).create(replicas=2, worker_spec=ONE_GPU, job_labels=LABELS)


def chief_of(job: Job) -> Job:
    return replace(job, name="chief")


async def meets_a_chief(job: Job) -> None:
    """It takes all quota there is."""
    labels = LABELS | {LABEL_PRIORITY_CLASS: "high"}
    await chief_of(job).create(replicas=4, worker_spec=ONE_GPU, job_labels=labels)


async def the_chief_trains_and_goes(job: Job) -> None:
    await chief_of(job).settled(4)
    await chief_of(job).delete()


async def succeeds(job: Job) -> None:
    await job.set_status("train-launcher", {"phase": "Succeeded"})


async def ends(job: Job) -> None:
    await job.until(lambda state: not state.workers and "Succeeded" in state.conditions, "an end")


def asks_with(*asked: str) -> Step:
    async def step(job: Job) -> None:
        await seen(
            lambda: workloads(job),
            lambda found: sorted(found) == sorted(asked),
            f"Workloads {asked}",
        )

    return step


async def shrinks_for_good(job: Job) -> None:
    await trains(2)(job)
    await asks_with("train-launcher")(job)


async def is_owned(job: Job) -> None:
    """Its quota stays until the pods of now are gone, too."""
    state = await job.state()
    assert state.launcher
    pods = {state.workers[job.workers(0)[0]]["metadata"]["uid"], state.launcher["metadata"]["uid"]}
    await seen(
        lambda: workloads(job),
        lambda found: pods <= owners(found["train-launcher"]),
        "other owners",
    )


def owners(workload: Object) -> set[str]:
    return {one["uid"] for one in workload["metadata"]["ownerReferences"]}


OF_WORKLOADS = partial(Refused, group=WORKLOADS.group, resource=WORKLOADS.plural)
OF_STATUS = partial(OF_WORKLOADS, resource=f"{WORKLOADS.plural}/status", operation="UPDATE")
REFUSED = {
    "TellUser": Refused(
        group="kubeflow.org",
        resource="mpijobs",
        operation="UPDATE",
        create=queued(2),
        due=meets_a_chief,
        then=(the_chief_trains_and_goes, trains_with(2), stops, resumes, trains_with(2)),
        after=trains(3),
    ),
    "CreateWorkload": OF_WORKLOADS(
        operation="CREATE",
        when="request.name.contains('-worker-')",
        create=queued(2),
        due=sized(4),
        then=(trains_with(2), stops, resumes, trains_with(2)),
        after=trains(4),
    ),
    "MarkReady": OF_STATUS(
        create=queued(2),
        due=sized(3),
        then=(
            trains(3),
            is_replaced,
            trains(2),
            asks_with("train-launcher"),
            stops,
            resumes,
            trains(3),
        ),
    ),
    # MultiKueue's copy has no owner before, so nothing else is due for its job.
    "AdoptWorkload": OF_WORKLOADS(
        operation="UPDATE",
        create=queued(3),
        due=is_replaced,
        then=(trains(4), shrinks_for_good, stops, resumes, trains(3), is_replaced),
        after=is_owned,
    ),
    "DeleteWorkload": OF_WORKLOADS(
        operation="DELETE",
        create=queued(3),
        due=sized(2),
        then=(trains(2), is_replaced, trains(3)),
        after=shrinks_for_good,
    ),
    "ClearWorkload": OF_STATUS(
        when="object.status.conditions.exists(one, one.type == 'QuotaReserved' && one.status == 'False')",
        create=queued(4),
        due=meets_a_rival,
        then=(trains_with(2),),
        after=lambda job: rival_of(job).settled(2),
    ),
    "FinishWorkload": OF_STATUS(
        create=queued(2),
        due=succeeds,
        then=(ends,),
        after=lambda job: seen(
            lambda: workloads(job),
            lambda found: all(is_true(one, "Finished") for one in found.values()),
            "an end",
        ),
    ),
}


@pytest.mark.usefixtures("queue")
@pytest.mark.parametrize("kind", drawn(list(REFUSED)))
async def test_what_does_not_need_it_comes_true(job: Job, cluster: Cluster, kind: str) -> None:
    await withstands(job, cluster, REFUSED[kind])
