"""docs/session.md runs as it is: every command in order, with real Elastic Horovod.

`UPDATE_PAGES=1 pytest tests/real/test_session.py` writes what the commands print into the page;
what they must print is looked for there (tests/product/test_session_page.py).
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.cluster import Cluster
from lab.training import log as training
from lab.training.job import TrainingJob
from mpijob_elastic import names
from tests.lab.waiting import create_namespace, may
from tests.real.nodes import SECOND, schedule_on
from tests.real.pods import until
from tests.real.session import PAGE, Shell, renewed, shown
from tests.real.session_steps import STEPS, missing


@pytest.fixture
def ml(cluster: Cluster) -> Iterator[str]:
    """The namespace of the page."""
    create_namespace(cluster, "ml")
    yield "ml"
    cluster.kubectl("delete", "namespace", "ml", "--wait=false")


def admin(cluster: Cluster, namespace: str) -> Path:
    """Return the kubeconfig of somebody who is admin of a namespace, with all rights on its MPIJobs."""
    cluster.kubectl("create", "serviceaccount", "anna", "-n", namespace)
    cluster.kubectl(
        "create", "role", "mpijobs", "-n", namespace, "--verb=*", "--resource=mpijobs.kubeflow.org"
    )
    for role in ("--clusterrole=admin", "--role=mpijobs"):
        name, who = role.rpartition("=")[2], f"--serviceaccount={namespace}:anna"
        cluster.kubectl("create", "rolebinding", name, "-n", namespace, role, who)
    may(cluster, "anna", "create", "mpijobs.kubeflow.org", namespace=namespace)
    may(cluster, "anna", "create", "pods/exec", namespace=namespace)
    return cluster.service_account_kubeconfig(namespace, "anna")


def await_training(job: TrainingJob, indices: tuple[int, ...], *, since: float) -> None:
    """Wait for a step of exactly these workers."""
    hosts = {names.worker(job.name, index) for index in indices}

    def trained() -> bool | None:
        return (
            any(set(step.hosts) == hosts and step.time >= since for step in job.log().steps) or None
        )

    until(f"{hosts} train", trained)


@pytest.mark.timeout(1200)
@pytest.mark.usefixtures(
    "two_nodes", "scale_served", "metrics", "training_image", "operator", "elastic"
)
def test_every_command_of_the_page_does_what_it_shows(
    cluster: Cluster, ml: str, tmp_path: Path
) -> None:
    shell = Shell(cluster, admin(cluster, ml), tmp_path)
    job = TrainingJob(cluster=cluster, namespace=ml)
    outputs = []
    page = PAGE.read_text()
    for step, (line, _) in zip(STEPS, shown(page), strict=True):
        if step.moved:
            schedule_on(cluster, SECOND)
        if step.harmless:
            assert training.harm(job.log()) == []
        began = time.time()
        code, output = shell.type(line, step.answers)
        outputs.append(output)
        assert code == step.code, f"{line}\n{output}"
        if not os.environ.get("UPDATE_PAGES"):
            assert missing(step, output) == [], f"{line}\n{output}"
        if step.trains:
            await_training(job, step.trains, since=began)
    if os.environ.get("UPDATE_PAGES"):
        PAGE.write_text(renewed(page, outputs))
