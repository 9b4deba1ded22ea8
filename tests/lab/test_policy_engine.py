"""A policy engine beside us that changes, or refuses, what we write."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.cluster import Cluster
from mpijob_elastic.kube.resources import CONFIG_MAPS, PODS, ROLES
from tests.lab.job import Job
from tests.lab.policy_engine import MARK, Engine, policy_engine

pytestmark = [pytest.mark.lab, pytest.mark.thorough, pytest.mark.usefixtures("elastic", "operator")]
QUICK = {"mpijob-elastic/drain-timeout": "1s"}


@pytest.fixture
def engine(cluster: Cluster, tmp_path: Path, namespace: str) -> Iterator[Engine]:
    with policy_engine(cluster, tmp_path, namespace=namespace) as running:
        yield running


@pytest.mark.usefixtures("engine")
async def test_a_job_is_resized_although_each_update_gets_a_label_and_an_annotation(
    job: Job, cluster: Cluster
) -> None:
    await job.create(replicas=2, annotations=QUICK)
    for replicas in (2, 3, 1):
        await job.scale(replicas)
        await job.settled(replicas)
    for resource, name in ((PODS, "launcher"), (CONFIG_MAPS, "config"), (ROLES, "launcher")):
        kind = (resource.plural, f"{job.name}-{name}", "-n", job.namespace)
        marks = cluster.kubectl(
            "get", *kind, "-o", "jsonpath={.metadata.annotations}{.metadata.labels}"
        )
        assert marks.count(MARK) == 2


async def test_a_refused_touch_is_told_with_its_reason_and_the_drain_begins_once_it_is_allowed(
    job: Job, engine: Engine
) -> None:
    """RefreshLauncher."""
    await job.create(replicas=2, annotations=QUICK)
    await job.settled(2)
    engine.denies = "no changes of pods on Sundays"
    await job.scale(1)
    await job.told("RefreshRefused", engine.denies)
    state = await job.state()
    assert engine.denies in state.notices
    assert state.running == job.workers(0, 1)
    engine.denies = ""
    await job.settled(1)
    await job.until(lambda state: not state.notices, "no notice")


@pytest.mark.parametrize("kinds", [("Role",), ("Role", "MPIJob")])
async def test_a_refused_role_is_told_and_holds_back_no_drain(
    job: Job, engine: Engine, kinds: tuple[str, ...]
) -> None:
    """Also where the notice on the job is refused, too."""
    await job.create(replicas=2, annotations=QUICK)
    await job.settled(2)
    engine.denies, engine.kinds = "Roles are made by the platform team", kinds
    await job.scale(3)
    await job.told("Refused", engine.denies)
    if "MPIJob" not in kinds:
        await job.until(lambda state: engine.denies in state.notices, "the notice")
    await job.scale(1)
    await job.settled(1)
    engine.denies = ""
    await job.scale(3)
    await job.settled(3)
    await job.until(lambda state: not state.notices, "no notice")
