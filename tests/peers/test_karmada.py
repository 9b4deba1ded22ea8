"""Karmada understands an MPIJob by the scripts of docs/examples/karmada, and keeps the size that its cluster gave it."""

import re
from pathlib import Path
from typing import Any

import pytest

from lab.cluster import Cluster
from lab.modules import PINNED
from tests.lab.definitions import KARMADA, served
from tests.peers.karmada import EXAMPLES, Interpreter
from tests.peers.queues import example

pytestmark = pytest.mark.peers

SIZE = "karmada.mpijob-elastic/size"
CREATED = {"type": "Created", "status": "True"}
EVICTED = {"type": "Failed", "status": "True", "reason": "MPIJobEvicted"}
FAILED = {"type": "Failed", "status": "True", "reason": "MPIJobFailed"}
SUCCEEDED = {"type": "Succeeded", "status": "True"}
END = {"completionTime": "2026-11-23T13:00:00Z"}


def bare(**fields: Any) -> dict[str, Any]:
    """A job with these fields only."""
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MPIJob",
        "metadata": {"name": "train"},
        **fields,
    }


def sized(replicas: int | None, asked: str | None = None) -> dict[str, Any]:
    """A job of a size, and the size that Karmada asked for."""
    job = bare(
        spec={"mpiReplicaSpecs": {"Worker": {} if replicas is None else {"replicas": replicas}}}
    )
    job["metadata"]["annotations"] = {
        "mpijob-elastic/min-replicas": "1",
        **({SIZE: asked} if asked else {}),
    }
    return job


def train() -> dict[str, Any]:
    """A job with everything that scripts may lose: volumes, empty fields, references."""
    job: dict[str, Any] = example("job")["MPIJob"]
    launcher, worker = (
        job["spec"]["mpiReplicaSpecs"][role]["template"] for role in ("Launcher", "Worker")
    )
    worker["spec"] |= {
        "nodeSelector": {"gpu": "a100"},
        "securityContext": {},
        "serviceAccountName": "trainer",
    }
    worker["spec"]["volumes"] = [
        {"name": "scratch", "emptyDir": {}},
        {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "settings", "configMap": {"name": "settings"}},
    ]
    launcher["spec"]["volumes"] = [{"name": "settings", "configMap": {"name": "settings"}}]
    launcher["spec"]["imagePullSecrets"] = [{"name": "registry"}]
    return job


def test_it_is_the_release_that_is_pinned() -> None:
    assert KARMADA.module.replace("@", " ") in (PINNED / "karmada" / "go.mod").read_text()


def test_all_scripts_are_lua(interpreter: Interpreter) -> None:
    found = dict(re.findall(r"^ +(\w+): +(\w+)", interpreter.run("--check"), re.MULTILINE))
    unset = {"InterpretComponent", "InterpretStatus"}
    assert found == dict.fromkeys(found.keys() - unset, "PASS") | dict.fromkeys(unset, "UNSET")
    assert len(found) == 8


def test_a_replica_is_a_worker(interpreter: Interpreter) -> None:
    size, needs = interpreter.answers("InterpretReplica", observed=train())
    assert size == 4
    assert needs == {
        "nodeClaim": {"nodeSelector": {"gpu": "a100"}},
        "resourceRequest": {"nvidia.com/gpu": "1"},
    }


def test_karmada_sets_the_size_and_nothing_else(interpreter: Interpreter) -> None:
    job = train()
    [revised] = interpreter.answers("ReviseReplica", "--desired-replica=3", observed=job)
    job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = 3
    job["metadata"]["annotations"][SIZE] = "3"
    assert revised == job


@pytest.mark.parametrize(
    ("desired", "observed", "size"),
    [
        (sized(4, "4"), sized(2, "4"), 2),  # an HPA or scale-timeout took it back
        (sized(4, "4"), sized(8, "4"), 8),  # filled
        (sized(6, "6"), sized(2, "4"), 6),  # edited in Karmada
        (sized(4, "4"), sized(2), 2),  # ran before Karmada had the scripts
        (sized(4), sized(2, "4"), 2),
        (sized(4), sized(2), 2),
        (sized(None, "4"), sized(2, "4"), 2),
        (sized(4, "4"), sized(None, "4"), 4),
        (sized(4, "4"), bare(), 4),
    ],
)
def test_the_size_on_the_member_stays_until_karmada_asks_for_another(
    interpreter: Interpreter, desired: dict[str, Any], observed: dict[str, Any], size: int
) -> None:
    [retained] = interpreter.answers("Retain", desired=desired, observed=observed)
    assert retained["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] == size


@pytest.mark.parametrize(
    ("status", "healthy"),
    [
        (None, False),  # no operator has seen it
        ({}, False),
        ({"conditions": None}, False),
        ({"conditions": [CREATED]}, True),  # its pods may wait in a queue
        ({"conditions": [CREATED, {"type": "Restarting", "status": "True"}]}, True),
        ({"conditions": [CREATED, {"type": "Running", "status": "True"}, EVICTED]}, True),
        ({"conditions": [CREATED, EVICTED], **END}, True),
        ({"conditions": [CREATED, FAILED]}, True),
        ({"conditions": [CREATED, FAILED], **END}, False),
        ({"conditions": [CREATED, FAILED | {"status": "False"}, SUCCEEDED], **END}, True),
    ],
)
def test_a_job_is_unhealthy_once_the_operator_has_given_it_up(
    interpreter: Interpreter, status: dict[str, Any] | None, *, healthy: bool
) -> None:
    assert interpreter.answers("InterpretHealth", observed=bare(status=status)) == [healthy]


@pytest.mark.lab
def test_karmadas_definitions_accept_the_examples(cluster: Cluster, tmp_path: Path) -> None:
    with served(cluster, KARMADA, tmp_path):
        cluster.kubectl("create", "--validate=strict", "--dry-run=server", "-f", str(EXAMPLES))
