"""The HPA of kube-controller-manager and an MPIJob: one that a user makes, and one that a job asks for by `autoscale`.

Bounds and suspension are in tests/product/admission/test_size.py and
tests/product/capabilities/autoscaling/test_size.py.
"""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import yaml

from lab.cluster import Cluster
from lab.versions import DEFAULT_KUBERNETES
from mpijob_elastic.capabilities.autoscaling.facts import AUTOSCALERS, TOLERANCE_SINCE
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.writer import MERGE_PATCH
from tests.lab.capabilities.autoscaling.metrics_api import Values, serving
from tests.lab.hpa import Autoscaler, applied
from tests.lab.job import Job, Object
from tests.lab.ranks import in_pod, start_rank
from tests.lab.test_cli import ours as our_command
from tests.lab.waiting import seen

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("scale_served", "elastic", "operator")]

EXAMPLE = Path(__file__).parents[4] / "docs" / "examples" / "hpa" / "job.yaml"
QUICK = {"mpijob-elastic/drain-timeout": "1s"}
NAME = "mpijob-train"  # of the HPA that we make
ASKING = {
    "mpijob-elastic/drain-timeout": "1s",
    "mpijob-elastic/autoscale": "external:queue=1",
    "mpijob-elastic/min-replicas": "1",
    "mpijob-elastic/max-replicas": "3",
}


@pytest.fixture(scope="module")
def metrics(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Values]:
    """A metrics API; tests set its values."""
    with serving(cluster, tmp_path_factory.mktemp("metrics")) as values:
        yield values


async def looked(metrics: Values, job: Job, times: int = 2) -> None:
    """Wait until the HPA has read the metric that often; what the last but one read led to is done then."""
    enough = metrics.reads[job.namespace, "queue"] + times
    await job.until(
        lambda _: metrics.reads[job.namespace, "queue"] >= enough, f"it is read {times} times more"
    )


async def test_up_and_down_through_the_whole_path(
    job: Job, hpa: Autoscaler, metrics: Values, cluster: Cluster
) -> None:
    """HPA, scale, operator, Role, host list; and down again only when the ranks have gone."""
    metrics.external["queue"] = 3
    await job.create(replicas=1, annotations={"mpijob-elastic/drain-timeout": "1h"})
    await job.settled(1)
    assert await hpa.apply(1, 4) == ""
    await job.settled(3)
    leaving = job.workers(1, 2)
    ranks = [await asyncio.to_thread(start_rank, cluster, job, pod) for pod in leaving]
    metrics.external["queue"] = 1
    await job.until(
        lambda state: state.hosts == [f"{job.workers(0)[0]}:1"], "two have left the list"
    )
    await looked(metrics, job, 4)
    assert set(leaving) <= set((await job.state()).running)
    for pod, rank in zip(leaving, ranks, strict=True):
        await asyncio.to_thread(in_pod, cluster, job, pod, f"kill {rank}")
    await job.settled(1)
    await hpa.until(
        lambda seen: seen.desired == 1 and seen.says("AbleToScale", "True", "ReadyForNewScale")
    )
    told = await asyncio.to_thread(
        our_command, cluster.kubeconfig, "history", job.name, "-n", job.namespace, "-o", "json"
    )
    changes = [
        (one["cause"], one["by"], one["from"], one["to"])
        for one in json.loads(told.stdout)["changes"]
    ]
    assert changes == [
        ("HPA", "kube-controller-manager", 1, 3),
        ("HPA", "kube-controller-manager", 3, 1),
    ]


async def test_beyond_our_bounds_the_hpa_is_refused_and_says_why(
    job: Job, hpa: Autoscaler, metrics: Values
) -> None:
    metrics.external["queue"] = 4
    await job.create(replicas=2, annotations={**QUICK, "mpijob-elastic/max-replicas": "3"})
    await job.settled(2)
    assert await hpa.apply(1, 6) == ""
    reason = "denied the request: spec.replicas: 4 is above metadata.annotations[mpijob-elastic/max-replicas] (3); use"
    await hpa.until(lambda seen: seen.says("AbleToScale", "False", "FailedUpdateScale", reason))
    assert (await job.state()).replicas == 2
    await job.annotate(max_replicas="6")
    await job.settled(4)


async def test_whoever_applies_the_job_again_leaves_the_size_to_the_hpa(
    job: Job, hpa: Autoscaler, metrics: Values, cluster: Cluster
) -> None:
    """As docs/scale.md advises: server-side apply with the first size, and from then on without."""
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


async def ours(job: Job) -> Object:
    """The HPA that we make; {} if there is none."""
    try:
        raw = await job.client.get(AUTOSCALERS.path(job.namespace, NAME))
    except errors.NotFound:
        return {}
    hpa: Object = msgspec.json.decode(raw)
    return hpa


async def is_there(job: Job) -> Object:
    return await seen(lambda: ours(job), bool, f"HPA {NAME} is made")


async def is_gone(job: Job) -> None:
    await seen(lambda: ours(job), lambda hpa: not hpa, f"HPA {NAME} is gone")


async def bounded(job: Job, most: int) -> None:
    await seen(
        lambda: ours(job), lambda hpa: hpa["spec"]["maxReplicas"] == most, f"maxReplicas is {most}"
    )


async def test_it_is_made_kept_and_deleted_with_its_job(job: Job, metrics: Values) -> None:
    """Its bounds follow the job, what others change in it lasts until then, and at rest nothing is written."""
    metrics.external["queue"] = 1
    await job.create(replicas=1, annotations=ASKING)
    hpa = await is_there(job)
    assert [owner["name"] for owner in hpa["metadata"]["ownerReferences"]] == ["train"]
    await job.annotate(max_replicas="4")
    await bounded(job, 4)
    path = AUTOSCALERS.path(job.namespace, NAME)
    await job.client.patch_object(path, body={"spec": {"maxReplicas": 9}}, content_type=MERGE_PATCH)
    await job.annotate(max_replicas="5")
    await bounded(job, 5)
    await job.settled(1)
    before = await ours(job)
    await asyncio.sleep(2)
    after = await ours(job)
    fields = [
        [
            one["time"]
            for one in hpa["metadata"]["managedFields"]
            if one["manager"] == "mpijob-elastic"
        ]
        for hpa in (before, after)
    ]
    assert fields[0] == fields[1]
    await job.annotate(autoscale=None)
    await is_gone(job)
    await job.annotate(autoscale="cpu=70")
    assert (await is_there(job))["spec"]["metrics"][0]["resource"]["target"][
        "averageUtilization"
    ] == 70
    await job.delete()
    await is_gone(job)


async def test_its_tolerance_is_kept_where_the_cluster_serves_it(job: Job, metrics: Values) -> None:
    """An older API server would drop the field; a tolerance that is not asked for any more goes."""
    metrics.external["queue"] = 1
    asked = {"mpijob-elastic/autoscale-tolerance": "up=2%,down=20%"}
    await job.create(replicas=1, annotations={**ASKING, **asked})
    behavior = (await is_there(job))["spec"]["behavior"]
    found = [behavior[way].get("tolerance") for way in ("scaleUp", "scaleDown")]
    if DEFAULT_KUBERNETES.minor < TOLERANCE_SINCE:
        assert found == [None, None]
        await job.until(lambda state: "ToleranceUnavailable" in state.notices, "it is told")
        return
    assert found == ["20m", "200m"]
    await job.annotate(autoscale_tolerance="down=20%")

    async def tolerances() -> list[str | None]:
        rules = (await ours(job))["spec"]["behavior"]
        return [rules[way].get("tolerance") for way in ("scaleUp", "scaleDown")]

    await seen(tolerances, lambda found: found == [None, "200m"], "one of them is gone")
