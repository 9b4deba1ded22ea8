"""Sizes on a real API server: kubectl is refused, and kube-controller-manager's HPA is rounded."""

import asyncio
from collections.abc import Iterator

import msgspec
import pytest

from lab.cluster import Cluster
from mpijob_elastic.capabilities.autoscaling.facts import AUTOSCALERS
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.writer import MERGE_PATCH
from tests.lab.capabilities.autoscaling.metrics_api import Values, serving
from tests.lab.hpa import Autoscaler
from tests.lab.job import Job, Object
from tests.lab.scalable import told
from tests.lab.waiting import seen

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("scale_served", "elastic", "operator")]

SIZES = {"mpijob-elastic/drain-timeout": "1s", "mpijob-elastic/sizes": "2,4,8"}


@pytest.fixture(scope="module")
def metrics(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Values]:
    """A metrics API; tests set its values."""
    with serving(cluster, tmp_path_factory.mktemp("metrics")) as values:
        yield values


async def rests(job: Job, metrics: Values, *steps: tuple[int, int]) -> None:
    """See that the job settles at a size for each load."""
    for load, size in steps:
        metrics.external["queue"] = load
        await job.settled(size)


async def test_kubectl_is_refused_with_what_to_write(job: Job, cluster: Cluster) -> None:
    await job.create(replicas=2, annotations=SIZES)
    await job.settled(2)

    async def refused(*arguments: str) -> str:
        code, said = await asyncio.to_thread(told, cluster, "-n", job.namespace, *arguments)
        assert code != 0
        return said

    none = "is not a size of metadata.annotations[mpijob-elastic/sizes] (2,4,8); use"
    assert f"spec.replicas: 5 {none} 4 or 8" in await refused(
        "scale", "mpijob/train", "--replicas=5"
    )
    edit = '{"spec":{"mpiReplicaSpecs":{"Worker":{"replicas":3}}}}'
    assert f"Worker.replicas: 3 {none} 2 or 4" in await refused(
        "patch", "mpijob/train", "--type=merge", "-p", edit
    )
    wrong = await refused("annotate", "mpijob/train", "--overwrite", "mpijob-elastic/sizes=2-8")
    assert (
        '"2-8" is not allowed; use "2,4,8" (these; at most 100, each from 1 to 10000) or "*4"'
        in wrong
    )
    bounds = await refused(
        "annotate", "mpijob/train", "mpijob-elastic/min-replicas=5", "mpijob-elastic/max-replicas=7"
    )
    assert (
        "at least one of them between mpijob-elastic/min-replicas (5) and mpijob-elastic/max-replicas (7)"
        in bounds
    )
    assert (await job.state()).replicas == 2


@pytest.mark.thorough
async def test_an_hpa_rests_at_the_next_larger_size(
    job: Job, hpa: Autoscaler, metrics: Values
) -> None:
    """What a user's own HPA computes is rounded up, on the way up and down."""
    metrics.external["queue"] = 3
    await job.create(replicas=2, annotations=SIZES)
    await job.settled(2)
    assert await hpa.apply(2, 8) == ""
    await rests(job, metrics, (3, 4), (5, 8), (3, 4), (1, 2))
    await hpa.until(lambda seen: seen.says("AbleToScale", "True", "ReadyForNewScale"))


async def test_the_hpa_of_the_job_takes_a_whole_gap_in_one_step(job: Job, metrics: Values) -> None:
    """Up and down as a job asks for by `autoscale`, without the minutes that its HPA waits."""
    metrics.external["queue"] = 1
    bounds = {"mpijob-elastic/min-replicas": "1", "mpijob-elastic/max-replicas": "9"}
    await job.create(
        replicas=2, annotations={**SIZES, **bounds, "mpijob-elastic/autoscale": "external:queue=1"}
    )
    path = AUTOSCALERS.path(job.namespace, "mpijob-train")

    async def made() -> Object:
        try:
            hpa: Object = msgspec.json.decode(await job.client.get(path))
        except errors.NotFound:
            return {}
        return hpa

    spec = (await seen(made, bool, "the HPA is made"))["spec"]
    assert (spec["minReplicas"], spec["maxReplicas"]) == (2, 8)
    for rules in (behavior := spec["behavior"]).values():
        assert [one["value"] for one in rules["policies"]] == [4]
        rules["stabilizationWindowSeconds"], rules["policies"][0]["periodSeconds"] = 0, 1
    await job.client.patch_object(
        path, body={"spec": {"behavior": behavior}}, content_type=MERGE_PATCH
    )
    await job.settled(2)
    await rests(job, metrics, (3, 4), (7, 8), (1, 2))
