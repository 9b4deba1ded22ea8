"""The HPA that a job asks for by the annotation `autoscale`, with the HPA controller of Kubernetes."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from lab.cluster import Cluster
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import AUTOSCALERS
from mpijob_elastic.kube.writer import MERGE_PATCH
from tests.lab.hpa import Autoscaler
from tests.lab.job import Job
from tests.lab.metrics_api import Values, serving
from tests.lab.waiting import seen

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("scale_served", "elastic", "operator")]

NAME = "mpijob-train"
Object = dict[str, Any]
ASKING = {
    "mpijob-elastic/drain-timeout": "1s",
    "mpijob-elastic/autoscale": "external:queue=1",
    "mpijob-elastic/min-replicas": "1",
    "mpijob-elastic/max-replicas": "3",
}


@pytest.fixture(scope="module")
def metrics(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Values]:
    """The metrics APIs; tests set their values."""
    with serving(cluster, tmp_path_factory.mktemp("metrics")) as values:
        yield values


async def found(job: Job) -> Object:
    """The HPA that we make; {} if there is none."""
    try:
        raw = await job.client.get(AUTOSCALERS.path(job.namespace, NAME))
    except errors.NotFound:
        return {}
    hpa: Object = msgspec.json.decode(raw)
    return hpa


async def is_there(job: Job) -> Object:
    return await seen(lambda: found(job), bool, f"HPA {NAME} is made")


async def is_gone(job: Job) -> None:
    await seen(lambda: found(job), lambda hpa: not hpa, f"HPA {NAME} is gone")


async def bounded(job: Job, most: int) -> None:
    await seen(lambda: found(job), lambda hpa: hpa["spec"]["maxReplicas"] == most, f"maxReplicas is {most}")


async def selects(job: Job, policy: str) -> None:
    def shows(hpa: Object) -> bool:
        return all(hpa["spec"]["behavior"][way]["selectPolicy"] == policy for way in ("scaleUp", "scaleDown"))

    await seen(lambda: found(job), shows, f"selectPolicy is {policy}")


async def test_it_is_made_kept_and_deleted_with_its_job(job: Job, metrics: Values) -> None:
    """Its bounds follow the job, what others change in it does not last, and at rest nothing is written."""
    metrics.external["queue"] = 1
    await job.create(replicas=1, annotations=ASKING)
    hpa = await is_there(job)
    assert [owner["name"] for owner in hpa["metadata"]["ownerReferences"]] == ["train"]
    await job.annotate(max_replicas="4")
    await bounded(job, 4)
    path = AUTOSCALERS.path(job.namespace, NAME)
    await job.client.patch_object(path, body={"spec": {"maxReplicas": 9}}, content_type=MERGE_PATCH)
    await bounded(job, 4)
    await job.settled(1)
    before = await found(job)
    await asyncio.sleep(2)
    after = await found(job)
    fields = [
        [one["time"] for one in hpa["metadata"]["managedFields"] if one["manager"] == "mpijob-elastic"]
        for hpa in (before, after)
    ]
    assert fields[0] == fields[1]
    await job.annotate(autoscale=None)
    await is_gone(job)
    await job.annotate(autoscale="cpu=70")
    assert (await is_there(job))["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 70
    await job.delete()
    await is_gone(job)


@pytest.mark.thorough
async def test_a_job_grows_by_it_one_worker_at_a_time(job: Job, hpa: Autoscaler, metrics: Values) -> None:
    """After the window of a minute in which the smallest size wanted holds."""
    metrics.external["queue"] = 3
    await job.create(replicas=1, annotations=ASKING)
    await job.settled(1)
    await is_there(job)
    ours = replace(hpa, name=NAME)
    await ours.until(lambda said: said.says("AbleToScale", "True", "ScaleUpStabilized"))
    for _ in range(9):
        if (await job.state()).replicas > 1:
            break
        await asyncio.sleep(10)
    await job.settled(2)


@pytest.mark.thorough
async def test_it_is_paused_while_the_job_is_suspended_and_gone_when_it_has_finished(job: Job, metrics: Values) -> None:
    metrics.external["queue"] = 1
    await job.create(replicas=1, annotations=ASKING)
    await job.settled(1)
    await selects(job, "Max")
    await job.annotate(suspend="true")
    await selects(job, "Disabled")
    await job.annotate(suspend="false")
    await selects(job, "Max")
    await job.until(lambda state: state.launcher_runs, "the job runs again")
    await job.set_status("train-launcher", {"phase": "Succeeded"})
    await is_gone(job)


@pytest.mark.thorough
async def test_it_gives_way_to_a_users_own(job: Job, hpa: Autoscaler, metrics: Values) -> None:
    metrics.external["queue"] = 1
    await job.create(replicas=1, annotations=ASKING)
    await job.settled(1)
    await is_there(job)
    await hpa.apply(1, 3)
    await is_gone(job)
    state = await job.until(lambda state: "AutoscalerYields" in state.notices, "the job says who scales it")
    assert "HPA train scales train" in state.notices
    await hpa.until(lambda said: said.says("ScalingActive", "True", "ValidMetricFound"))
    await job.client.delete_object(AUTOSCALERS.path(job.namespace, "train"))
    await is_there(job)
    await job.until(lambda state: not state.notices, "nothing is left to say")


@pytest.mark.thorough
async def test_a_gitops_tool_that_sets_the_size_is_named(job: Job, metrics: Values, cluster: Cluster) -> None:
    metrics.external["queue"] = 1
    await job.create(replicas=1, annotations=ASKING)
    patch = json.dumps({"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 2}}}})
    where = ("patch", "mpijob", "train", "-n", job.namespace, "--type=merge", "-p", patch)
    await asyncio.to_thread(cluster.kubectl, *where, "--field-manager=argocd-controller")
    await job.until(lambda state: "argocd-controller sets Worker.replicas" in state.notices, "it is named")


async def test_bounds_are_asked_for_at_once(job: Job) -> None:
    with pytest.raises(errors.Invalid, match="use it beside mpijob-elastic/min-replicas and"):
        await job.create(replicas=1, annotations={"mpijob-elastic/autoscale": "cpu=70"})
