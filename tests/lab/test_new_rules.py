"""Rules that begin to match pods by labels that the webhook puts back: told, explained, and left out by an option."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.cluster import Cluster
from lab.install import Installed
from lab.operator import objects
from lab.registration import called
from lab.replicas import Webhook
from mpijob_elastic import names
from tests.lab.command_line import CommandLine
from tests.lab.job import HOROVODRUN, Job
from tests.lab.on_demand import OnDemand
from tests.lab.scalable import told
from tests.lab.waiting import until

pytestmark = [pytest.mark.lab, pytest.mark.thorough]

BENCH = {"app": "bench"}
APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": BENCH}, "topologyKey": "kubernetes.io/hostname"}
        ]
    }
}
RULE = "the required anti-affinity to app=bench (by kubernetes.io/hostname)"


def create(cluster: Cluster, job: Job, folder: Path, *, replicas: int) -> str:
    """Create a job whose pods want a node each by a label of their templates; return what is said."""
    made: dict[str, Any] = objects.mpi_job(
        name=job.name, namespace=job.namespace, replicas=replicas, command=HOROVODRUN
    )
    for replica in made["spec"]["mpiReplicaSpecs"].values():
        replica["template"]["metadata"] = {"labels": BENCH}
        replica["template"]["spec"]["affinity"] = APART
    path = folder / "job.json"
    path.write_text(json.dumps(made))
    code, said = told(cluster, "create", "-f", str(path))
    assert code == 0, said
    return said


@pytest.mark.usefixtures("operator", "elastic")
async def test_a_rule_that_begins_to_match_is_told_and_explains_a_pending_pod(
    job: Job, cluster: Cluster, tmp_path: Path
) -> None:
    nodes = cluster.options.nodes
    said = await asyncio.to_thread(create, cluster, job, tmp_path, replicas=nodes)
    assert f"Warning: Worker.template: {RULE} begins to match the job's own pods" in said
    commands = CommandLine(cluster)

    def explained() -> bool:
        output = commands.run("explain", job.name, "-n", job.namespace, "--no-exec")[1]
        return f"{RULE} selects the job's own pods by labels" in " ".join(output.split())

    await asyncio.to_thread(until, explained)


@pytest.fixture
def unlabelling(cluster: Cluster, installed: Installed, programs: OnDemand) -> Iterator[Webhook]:
    """A webhook that leaves labels as they are."""
    programs.keep(("operator",))
    with Webhook.start(cluster, installed, "--no-template-labels") as running:
        until(lambda: called(cluster))
        yield running


@pytest.mark.usefixtures("operator", "unlabelling")
async def test_without_labels_a_job_runs_as_before(
    job: Job, cluster: Cluster, tmp_path: Path
) -> None:
    nodes = cluster.options.nodes
    said = await asyncio.to_thread(create, cluster, job, tmp_path, replicas=nodes)
    assert RULE not in said
    state = await job.until(lambda state: "Running" in state.conditions, "all running")
    assert len(state.running) == nodes
    for pod in state.workers.values():
        assert pod["metadata"]["labels"].keys().isdisjoint(BENCH)
        assert pod["metadata"]["labels"][names.LABEL_JOB_NAME] == job.name
