"""The HPA of kube-controller-manager and a MPIJob: the whole path, up and down, and where both meet their bounds."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
import yaml

from lab.cluster import Cluster
from mpijob_elastic.kube import resources
from tests.lab.hpa import AT_ONCE, Autoscaler, applied
from tests.lab.job import Job
from tests.lab.metrics_api import Values, serving
from tests.lab.ranks import in_pod, start_rank
from tests.lab.suspended import held

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("scale_served", "elastic", "operator")]

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "hpa" / "job.yaml"
QUICK = {"mpijob-elastic/drain-timeout": "1s"}
# Of a worker's request.
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}


@pytest.fixture(scope="module")
def metrics(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Values]:
    """The metrics APIs; tests set their values."""
    directory: Path = tmp_path_factory.mktemp("metrics")
    with serving(cluster, directory) as values:
        yield values


async def looked(metrics: Values, job: Job, times: int = 2, *, metric: str = "queue") -> None:
    """Wait until the HPA has read the metric that often; what the last but one read led to is done then."""
    enough = metrics.reads[job.namespace, metric] + times
    await job.until(lambda _: metrics.reads[job.namespace, metric] >= enough, f"{metric} is read {times} times more")


async def written(job: Job) -> tuple[int, str]:
    """Return the generation, which changes of the spec count, and the version, which every write changes."""
    raw = await job.client.get(resources.MPI_JOBS.path(job.namespace, job.name))
    metadata = msgspec.json.decode(raw)["metadata"]
    return metadata["generation"], metadata["resourceVersion"]


async def test_up_and_down_through_the_whole_path(job: Job, hpa: Autoscaler, metrics: Values, cluster: Cluster) -> None:
    """HPA, scale, operator, Role, host list; and down again only when the ranks have gone."""
    metrics.external["queue"] = 3
    await job.create(replicas=1, annotations={"mpijob-elastic/drain-timeout": "1h"})
    await job.settled(1)
    assert await hpa.apply(1, 4) == ""
    await job.settled(3)
    leaving = job.workers(1, 2)
    ranks = [await asyncio.to_thread(start_rank, cluster, job, pod) for pod in leaving]
    metrics.external["queue"] = 1
    await job.until(lambda state: state.hosts == [f"{job.workers(0)[0]}:1"], "two have left the list")
    await looked(metrics, job, 4)
    assert set(leaving) <= set((await job.state()).running)
    for pod, rank in zip(leaving, ranks, strict=True):
        await asyncio.to_thread(in_pod, cluster, job, pod, f"kill {rank}")
    await job.settled(1)
    assert (await hpa.until(lambda seen: seen.desired == 1)).says("AbleToScale", "True", "ReadyForNewScale")


@pytest.mark.thorough
async def test_what_the_hpa_asks_of_a_suspended_job_counts_once_it_is_resumed(
    job: Job, hpa: Autoscaler, metrics: Values
) -> None:
    metrics.external["queue"] = 3
    await job.create(replicas=1, annotations={"mpijob-elastic/suspend": "true"})
    await job.until(lambda state: held(state, 1), "gated pods")
    await hpa.apply(1, 4)
    await job.until(lambda state: held(state, 3), "what the HPA asks for, gated")
    metrics.external["queue"] = 2
    await job.until(lambda state: held(state, 2), "fewer")
    await looked(metrics, job)
    assert (await job.state()).replicas == 2
    await job.annotate(suspend=None)
    await job.settled(2)


@pytest.mark.thorough
async def test_an_hpa_by_cpu_leaves_the_size_of_a_suspended_job_alone(
    job: Job, hpa: Autoscaler, metrics: Values
) -> None:
    """Of pods that run nowhere there is no CPU; it acts before and after."""
    asking = {"containers": [{"name": "worker", "image": "horovod:test", "resources": {"requests": {"cpu": "100m"}}}]}
    await job.create(replicas=2, annotations=QUICK, worker_spec=asking)
    await job.settled(2)
    load(metrics, job, 2, cpu=75)
    assert await hpa.apply(1, 4, metric=CPU) == ""
    await job.settled(3)
    load(metrics, job, 3, cpu=50)
    await job.annotate(suspend="true")
    await job.until(lambda state: held(state, 3), "gated pods")
    load(metrics, job, 0, cpu=0)
    await hpa.until(lambda seen: seen.says("ScalingActive", "False", "FailedGetResourceMetric"))
    before, _ = await written(job)
    await looked(metrics, job, 4, metric="pods")
    assert (await written(job))[0] == before
    assert (await job.state()).replicas == 3
    await job.annotate(suspend=None)
    await job.settled(3)
    load(metrics, job, 3, cpu=10)
    await job.settled(1)


def load(metrics: Values, job: Job, workers: int, *, cpu: int) -> None:
    """Say that as many workers run, each with that CPU."""
    metrics.cpu = {(job.namespace, pod): cpu for pod in job.workers(*range(workers))}


@pytest.mark.thorough
async def test_a_load_that_goes_up_and_down_does_not_resize_the_job_each_time(
    job: Job, hpa: Autoscaler, metrics: Values
) -> None:
    """Without a window for scaling down it would."""
    metrics.external["queue"] = 3
    await job.create(replicas=3, annotations=QUICK)
    await job.settled(3)
    await hpa.apply(1, 4, behavior={"scaleDown": {"stabilizationWindowSeconds": 600}})
    await looked(metrics, job)
    before, _ = await written(job)
    for waiting in (1, 3, 1, 3, 1):
        metrics.external["queue"] = waiting
        await looked(metrics, job)
    assert (await written(job))[0] == before
    await hpa.until(lambda seen: seen.says("AbleToScale", "True", "ScaleDownStabilized"))
    await hpa.apply(1, 4)
    for waiting in (3, 1):
        metrics.external["queue"] = waiting
        await job.settled(waiting)


async def test_beyond_our_bounds_the_hpa_is_refused_and_says_why(job: Job, hpa: Autoscaler, metrics: Values) -> None:
    metrics.external["queue"] = 4
    await job.create(replicas=2, annotations={**QUICK, "mpijob-elastic/max-replicas": "3"})
    await job.settled(2)
    warning = "HPA train: maxReplicas 6 is above mpijob-elastic/max-replicas (3): more is refused, not cut to 3"
    assert warning in await hpa.apply(1, 6)
    reason = "denied the request: spec.replicas: 4 is above metadata.annotations[mpijob-elastic/max-replicas] (3); use"
    await hpa.until(lambda seen: seen.says("AbleToScale", "False", "FailedUpdateScale", reason))
    assert (await job.state()).replicas == 2
    await job.annotate(max_replicas="6")
    await job.settled(4)


@pytest.mark.thorough
async def test_a_paused_hpa_goes_on_measuring_and_changes_nothing(job: Job, hpa: Autoscaler, metrics: Values) -> None:
    metrics.external["queue"] = 4
    await job.create(replicas=2, annotations=QUICK)
    await job.settled(2)
    paused = {"selectPolicy": "Disabled"}
    await hpa.apply(1, 6, behavior={"scaleUp": paused, "scaleDown": {**paused, **AT_ONCE["scaleDown"]}})
    await hpa.until(lambda seen: seen.says("ScalingLimited", "True", "ScaleUpLimit"))
    metrics.external["queue"] = 1
    await hpa.until(lambda seen: seen.says("ScalingLimited", "True", "ScaleDownLimit"))
    assert (await job.state()).replicas == 2
    await hpa.apply(1, 6)
    await job.settled(1)


@pytest.mark.thorough
async def test_after_the_jobs_end_the_hpa_is_refused_and_writes_nothing(
    job: Job, hpa: Autoscaler, metrics: Values
) -> None:
    metrics.external["queue"] = 2
    await job.create(replicas=2, annotations=QUICK)
    await job.settled(2)
    await hpa.apply(1, 4)
    await looked(metrics, job)
    await job.set_status(f"{job.name}-launcher", {"phase": "Succeeded"})
    await job.until(lambda state: not state.workers, "the job is cleaned up")
    metrics.external["queue"] = 4
    await hpa.until(lambda seen: seen.says("AbleToScale", "False", "FailedUpdateScale", "the job has finished"))
    before = await written(job)
    await looked(metrics, job, 4)
    assert await written(job) == before
    late = replace(hpa, name="late")
    await late.warned(1, 4, "HPA late: the job has finished, so every scale is refused: delete the HPA")


@pytest.mark.thorough
async def test_two_hpas_on_one_job(job: Job, hpa: Autoscaler, metrics: Values) -> None:
    metrics.external["queue"] = 2
    await job.create(replicas=2, annotations=QUICK)
    await job.settled(2)
    await hpa.apply(1, 4)
    other = replace(hpa, name="second")
    await other.warned(1, 4, "HPAs second and train scale the same job, so neither works (AmbiguousSelector)")
    await other.apply(1, 4)
    for one in (hpa, other):
        await one.until(lambda seen: seen.says("ScalingActive", "False", "AmbiguousSelector"))
    before, _ = await written(job)
    metrics.external["queue"] = 4
    await asyncio.sleep(3)  # three looks of each; neither reads the metric any more
    assert (await written(job))[0] == before


async def test_whoever_applies_the_job_again_leaves_the_size_to_the_hpa(
    job: Job, hpa: Autoscaler, metrics: Values, cluster: Cluster
) -> None:
    """As docs/hpa.md advises: server-side apply with the first size, and from then on without."""
    manifest = yaml.safe_load(EXAMPLE.read_text())
    manifest["metadata"]["namespace"] = job.namespace
    ours = ("--server-side", "--field-manager=git")
    await asyncio.to_thread(applied, cluster, json.dumps(manifest), *ours)
    await job.settled(2)
    metrics.external["queue"] = 4
    assert await hpa.apply(2, 8) == ""
    await job.settled(4)
    with pytest.raises(AssertionError, match=r"conflict with \"kube-controller-manager\""):
        await asyncio.to_thread(applied, cluster, json.dumps(manifest), *ours)
    del manifest["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"]
    await asyncio.to_thread(applied, cluster, json.dumps(manifest), *ours)
    assert (await job.settled(4)).replicas == 4
