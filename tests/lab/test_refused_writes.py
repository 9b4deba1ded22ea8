"""Each write of a day is refused for good, one kind at a time: what does not need it comes true, and users are told."""

from pathlib import Path

import pytest

from lab.cluster import Cluster
from lab.registration import evictions_wait
from mpijob_elastic.capabilities.autoscaling.autoscaler import autoscaler_name
from mpijob_elastic.capabilities.autoscaling.facts import AUTOSCALERS
from mpijob_elastic.kube import errors
from tests.kinds import kinds
from tests.lab.capabilities.disruption.test_evictions import evict
from tests.lab.deaths import drawn
from tests.lab.job import Job
from tests.lab.refusing import (
    DAY,
    RUNNING,
    Refused,
    Step,
    asks,
    is_replaced,
    sized,
    stops,
    withstands,
)
from tests.lab.waiting import seen, until
from tests.room_words import rooms

pytestmark = [pytest.mark.lab, pytest.mark.thorough, pytest.mark.usefixtures("elastic", "operator")]

ROOT = Path(__file__).parents[2]


async def loses_the_second_only(job: Job) -> None:
    await job.until(lambda state: sorted(state.workers) == [*job.workers(0, 2)], "no second worker")


async def keeps_three(job: Job) -> None:
    assert sorted((await job.state()).workers) == [*job.workers(0, 1, 2)]


async def has_an_autoscaler(job: Job) -> None:
    await job.annotate(autoscale="cpu=70", min_replicas="1", max_replicas="4")
    path = AUTOSCALERS.path(job.namespace, autoscaler_name(job.name))
    await seen(lambda: job.client.find(path), lambda found: found is not None, "its HPA")


async def is_evicted(job: Job) -> None:
    with pytest.raises(errors.Throttled):
        await evict(job, job.workers(1)[0])


def trains_without_the_second(replicas: int) -> Step:
    async def step(job: Job) -> None:
        await job.scale(replicas)
        rest = [f"{name}:1" for name in job.workers(0, *range(2, replicas))]
        await job.until(lambda state: state.hosts == rest, "the other workers")

    return step


REFUSED = {
    # The launcher of a job that stops waits for it: by the notice the webhook holds the next one
    # back.
    "TellUser": Refused(
        group="kubeflow.org",
        resource="mpijobs",
        operation="UPDATE",
        due=asks(suspend="true"),
        then=RUNNING,
    ),
    "WriteRole": Refused(
        group="rbac.authorization.k8s.io",
        resource="roles",
        operation="UPDATE",
        due=sized(4),
        then=DAY,
    ),
    "MakeAutoscaler": Refused(
        group="autoscaling",
        resource="horizontalpodautoscalers",
        operation="CREATE",
        due=asks(autoscale="cpu=70", min_replicas="1", max_replicas="4"),
        then=DAY,
    ),
    "DeleteLauncher": Refused(
        resource="pods",
        operation="DELETE",
        when="request.name == 'train-launcher'",
        due=asks(suspend="true"),
        then=RUNNING,
    ),
    "DeleteWorkers": Refused(
        resource="pods",
        operation="DELETE",
        when="request.name == 'train-worker-2'",
        due=sized(1),
        then=(loses_the_second_only, is_replaced),
    ),
    "WriteConfig": Refused(
        resource="configmaps", operation="UPDATE", due=sized(2), then=(keeps_three,)
    ),
    "Ungate": Refused(
        resource="pods",
        operation="UPDATE",
        when="request.name.contains('-worker-')",
        before=(stops,),
        due=asks(suspend=None),
        then=(stops,),
    ),
    "ChangeAutoscaler": Refused(
        group="autoscaling",
        resource="horizontalpodautoscalers",
        operation="UPDATE",
        before=(has_an_autoscaler,),
        due=asks(max_replicas="5"),
        then=DAY,
    ),
    "DeleteAutoscaler": Refused(
        group="autoscaling",
        resource="horizontalpodautoscalers",
        operation="DELETE",
        before=(has_an_autoscaler,),
        due=asks(autoscale=None),
        then=DAY,
    ),
    "ReleaseWorker": Refused(
        resource="pods",
        operation="UPDATE",
        when="request.name == 'train-worker-1'",
        due=is_evicted,
        then=(trains_without_the_second(4), stops),
    ),
}
# The files where the others are refused, or why they are not.
ELSEWHERE = {
    "RefreshLauncher": "tests/lab/test_policy_engine.py",
    "WriteSelector": "nothing needs it but an HPA that reads it",
    "EndExecs": "it is an exec",
    "DeletePlaceholder": "nothing needs the place of a pod that holds nothing",
    "EndLauncher, DeleteJob": "nothing else is due after it",
    "RollBack, Fill": "nothing else is due before the size has changed",
}


def test_every_write_is_thought_of() -> None:
    said = [ELSEWHERE, *(words.refused for words in rooms())]
    elsewhere = {
        name: where for one in said for names, where in one.items() for name in names.split(", ")
    }
    assert {kind.__name__ for kind in kinds()} == REFUSED.keys() | elsewhere.keys()
    files = {name: where for name, where in elsewhere.items() if where.endswith(".py")}
    assert [name for name, where in files.items() if name.lower() not in _words(ROOT / where)] == []


def _words(file: Path) -> str:
    return file.read_text().lower().replace("_", "")


@pytest.mark.parametrize("kind", drawn(list(REFUSED)))
async def test_what_does_not_need_it_comes_true(job: Job, cluster: Cluster, kind: str) -> None:
    until(lambda: evictions_wait(cluster))
    await withstands(job, cluster, REFUSED[kind])
