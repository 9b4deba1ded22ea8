"""Each write for KubeQueue is refused for good: what does not need it comes true, and users are told."""

from collections.abc import Iterator
from functools import partial

import pytest

from lab.cluster import Cluster
from mpijob_elastic.capabilities.kube_queue.facts import (
    KUBEQUEUE_SUSPEND,
    QUEUE_UNITS,
    UNIT_WORKERS,
)
from tests.lab.capabilities.kube_queue.kube_queue import Scheduler, served
from tests.lab.capabilities.kube_queue.test_kube_queue import (
    AT_ONCE,
    HOLD,
    UNIT,
    only,
    phase_of,
    submit,
    waits,
)
from tests.lab.deaths import drawn
from tests.lab.job import Job
from tests.lab.on_demand import OnDemand
from tests.lab.refusing import Refused, Step, is_replaced, sized, trains, withstands
from tests.lab.suspended import held
from tests.lab.waiting import seen

pytestmark = [
    pytest.mark.lab,
    pytest.mark.thorough,
    pytest.mark.usefixtures("kube_queue", "elastic", "operator"),
]

# CEL: what an MPIJob is to become.
HELD = f"'{KUBEQUEUE_SUSPEND}' in object.metadata.?annotations.orValue({{}})"


@pytest.fixture(scope="module")
def kube_queue(cluster: Cluster, programs: OnDemand) -> Iterator[None]:
    """Its definitions are there before our controller looks, which it does once a minute."""
    programs.keep(())
    with served(cluster):
        yield
        programs.keep(())


def scheduler_of(job: Job) -> Scheduler:
    """One that writes what a test says."""
    return Scheduler(job.client, job.namespace)


async def waiting(job: Job) -> None:
    await submit(job, annotations=AT_ONCE)
    await only(scheduler_of(job), UNIT)
    await job.until(waits, "gated pods")


def says(phase: str) -> Step:
    return lambda job: scheduler_of(job).say(UNIT, phase)


async def released(job: Job) -> None:
    await says("Dequeued")(job)
    await trains(2)(job)
    await phase_of(scheduler_of(job), "Running")


async def training(job: Job) -> None:
    await waiting(job)
    await released(job)


async def is_held(job: Job) -> None:
    await job.patch({"metadata": {"annotations": HOLD}})


async def is_not_held(job: Job) -> None:
    await job.patch({"metadata": {"annotations": {KUBEQUEUE_SUSPEND: None}}})


async def loses_its_unit(job: Job) -> None:
    await job.client.delete_object(QUEUE_UNITS.path(job.namespace, UNIT))


def asks_for(workers: int) -> Step:
    async def step(job: Job) -> None:
        await job.scale(workers)
        await seen(
            scheduler_of(job).units,
            lambda units: (
                [one["metadata"]["annotations"][UNIT_WORKERS] for one in units] == [str(workers)]
            ),
            f"a QueueUnit for {workers}",
        )

    return step


async def is_gated(job: Job) -> None:
    await job.until(lambda state: held(state, state.replicas), "gated pods only")


async def starts_again(job: Job) -> None:
    """It stops, a new QueueUnit waits, and has its turn."""
    await is_gated(job)
    await seen(
        scheduler_of(job).units,
        lambda units: [unit.get("status", {}).get("phase", "") for unit in units] == [""],
        "a new QueueUnit",
    )
    await released(job)


async def is_held_and_starts_again(job: Job) -> None:
    await is_held(job)
    await starts_again(job)


async def is_owned(job: Job) -> None:
    """Its quota stays until the pods of now are gone, too."""
    state = await job.state()
    assert state.launcher
    pods = {state.launcher["metadata"]["uid"], state.workers["train-worker-0"]["metadata"]["uid"]}
    await seen(
        scheduler_of(job).units,
        lambda units: (
            pods
            <= {owner["uid"] for unit in units for owner in unit["metadata"]["ownerReferences"]}
        ),
        "other owners",
    )


RUNNING = (is_replaced, trains(1), trains(2))
OF_UNITS = partial(Refused, group=QUEUE_UNITS.group, resource=QUEUE_UNITS.plural)
REFUSED = {
    "CreateUnit": OF_UNITS(
        operation="CREATE",
        create=waiting,
        due=loses_its_unit,
        then=(is_not_held, trains(2), *RUNNING),
        after=is_held_and_starts_again,
    ),
    "ReleaseJob": Refused(
        group="kubeflow.org",
        resource="mpijobs",
        operation="UPDATE",
        when=f"!({HELD})",
        create=waiting,
        due=says("Dequeued"),
        then=(asks_for(1), asks_for(2)),
        after=released,
    ),
    "MarkRunning": OF_UNITS(
        resource=f"{QUEUE_UNITS.plural}/status",
        operation="UPDATE",
        create=waiting,
        due=says("Dequeued"),
        then=(trains(2), *RUNNING),
        after=lambda job: phase_of(scheduler_of(job), "Running"),
    ),
    "HoldJob": Refused(
        group="kubeflow.org",
        resource="mpijobs",
        operation="UPDATE",
        when=HELD,
        create=training,
        due=says("TimeoutBackoff"),
        then=RUNNING,
        after=starts_again,
    ),
    "AdoptUnit": OF_UNITS(
        operation="UPDATE",
        create=training,
        due=is_replaced,
        then=(is_replaced, trains(1), trains(2), is_held, is_gated, starts_again, is_replaced),
        after=is_owned,
    ),
    "DeleteUnit": OF_UNITS(
        operation="DELETE",
        create=training,
        due=is_held,
        then=(is_gated, sized(1), is_gated, is_not_held, trains(2), *RUNNING),
        after=is_held_and_starts_again,
    ),
}


@pytest.mark.parametrize("kind", drawn(list(REFUSED)))
async def test_what_does_not_need_it_comes_true(job: Job, cluster: Cluster, kind: str) -> None:
    await withstands(job, cluster, REFUSED[kind])
