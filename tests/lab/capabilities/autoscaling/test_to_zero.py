"""The size 0 suspends a job that says so, by kubectl and by a real HPA, and another size resumes it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.cluster import Cluster
from lab.versions import DEFAULT_KUBERNETES
from mpijob_elastic import names
from tests.lab.capabilities.autoscaling.metrics_api import Values, serving
from tests.lab.hpa import Autoscaler
from tests.lab.job import Job, State
from tests.lab.scalable import MINIMUM, from_zero, told
from tests.lab.suspended import held
from tests.lab.test_cli import ours as our_command

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("zero_served", "elastic", "operator")]

DOCS = Path(__file__).parents[4] / "docs" / "scale.md"
BOUNDED = {"mpijob-elastic/drain-timeout": "1s", "mpijob-elastic/min-replicas": "2"}
ASKING = {**BOUNDED, names.SCALE_TO_ZERO: "suspend"}


@pytest.fixture(scope="module")
def zero_served(cluster: Cluster, scale_served: None) -> Iterator[None]:
    """The definition allows the size 0, too."""
    with from_zero(cluster):
        yield


@pytest.fixture(scope="module")
def metrics(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Values]:
    """A metrics API; tests set its values."""
    with serving(cluster, tmp_path_factory.mktemp("metrics")) as values:
        yield values


def scaled(cluster: Cluster, job: Job, replicas: int) -> tuple[int, str]:
    """Scale the job with kubectl; return the exit code, and what it says."""
    return told(
        cluster, "scale", f"mpijob/{job.name}", "-n", job.namespace, f"--replicas={replicas}"
    )


def at_zero(state: State) -> bool:
    """Tell whether 0 is stored, and only a launcher is there, which waits at its gate."""
    return state.replicas == 0 and held(state, 0) and not state.hosts


def test_the_docs_name_the_field() -> None:
    assert MINIMUM in DOCS.read_text()


async def test_0_is_the_suspension_and_resume_gives_the_size_before_back(
    job: Job, cluster: Cluster
) -> None:
    await job.create(replicas=3, annotations=BOUNDED)
    await job.settled(3)
    code, said = scaled(cluster, job, 0)
    assert code == 1
    assert "annotate the job mpijob-elastic/scale-to-zero: suspend" in said
    await job.annotate(scale_to_zero="suspend")
    assert scaled(cluster, job, 0) == (0, "")
    stopped = await job.until(at_zero, "it is suspended, and its launcher waits")
    assert "is suspended by its size, 0" in stopped.notices
    await job.told("LauncherSuspended")
    # The operator makes the launcher of a job without workers at once, and again.
    assert stopped.launcher is not None
    first = stopped.launcher["metadata"]["uid"]
    await job.client.delete_object(
        f"/api/v1/namespaces/{job.namespace}/pods/{stopped.launcher['metadata']['name']}"
    )
    await job.until(
        lambda state: (
            at_zero(state)
            and state.launcher is not None
            and state.launcher["metadata"]["uid"] != first
        ),
        "the next launcher waits, too",
    )
    where = (job.name, "-n", job.namespace, "--no-wait")
    done = await asyncio.to_thread(our_command, cluster.kubeconfig, "resume", *where)
    assert "train is being resumed with 3 workers" in done.stdout
    assert (await job.settled(3)).replicas == 3
    assert (await job.at_rest()).notices == ""


@pytest.mark.skipif(
    DEFAULT_KUBERNETES.minor < 37, reason="Kubernetes 1.37 and newer let an HPA scale to zero"
)
async def test_an_hpa_suspends_and_resumes(
    job: Job, hpa: Autoscaler, metrics: Values, cluster: Cluster
) -> None:
    metrics.external["queue"] = 3
    await job.create(replicas=2, annotations=ASKING)
    await job.settled(2)
    await hpa.apply(0, 4)
    await job.settled(3)
    metrics.external["queue"] = 0
    await job.until(at_zero, "it is suspended by the HPA")
    metrics.external["queue"] = 1
    resumed = await job.settled(2)
    assert resumed.replicas == 2, "1 is raised to min-replicas"
    # A size of 0 that somebody else sets stays: an HPA goes on from the 0 alone that it has set.
    assert scaled(cluster, job, 0) == (0, "")
    await job.until(at_zero, "it is suspended by hand")
    await hpa.until(lambda seen: seen.says("ScalingActive", "False", "ScalingDisabled"))
    assert (await job.state()).replicas == 0
