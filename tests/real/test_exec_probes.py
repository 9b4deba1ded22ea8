"""Workers in which the kubelet runs commands by exec: while such a command runs it looks like a rank, and not for longer."""

import json
from typing import Any

import pytest

from lab.cluster import Cluster
from lab.operator.process import Operator
from lab.replicas import Controller
from mpijob_elastic import names
from tests.real.mpijob import job
from tests.real.pods import await_phase, until

STAYS, LEAVES = "train-worker-0", "train-worker-1"
ENDLESS = 3600
# Half of the time something runs in the worker.
PERIODIC = {"exec": {"command": ["sleep", "0.5"]}, "periodSeconds": 1}
HANGING = {"exec": {"command": ["sleep", str(ENDLESS)]}, "timeoutSeconds": ENDLESS}

pytestmark = pytest.mark.usefixtures("own_node")


def made(drain_timeout: str, **worker: Any) -> dict[str, Any]:
    """A job of two whose workers have these fields."""
    found = job("sleep 600")
    found["metadata"]["annotations"] = {
        names.ENABLED: "true",
        names.MIN_REPLICAS: "1",
        names.DRAIN_TIMEOUT: drain_timeout,
    }
    workers = found["spec"]["mpiReplicaSpecs"]["Worker"]
    workers["replicas"] = 2
    workers["template"]["spec"]["containers"][0] |= worker
    return found


@pytest.mark.parametrize(
    ("probe", "drain_timeout", "reason"),
    [(PERIODIC, "60s", "SurplusDeleted"), (HANGING, "5s", "DrainTimeout")],
    ids=["every second", "one that hangs"],
)
def test_a_worker_with_an_exec_probe_drains(
    cluster: Cluster,
    namespace: str,
    operator: Operator,
    elastic: Controller,
    probe: dict[str, Any],
    drain_timeout: str,
    reason: str,
) -> None:
    here = ("--namespace", namespace)
    manifest = made(drain_timeout, livenessProbe=probe)
    cluster.kubectl("create", "-f", "-", *here, stdin=json.dumps(manifest))
    await_phase(cluster, namespace, LEAVES, "Running")
    config = ("get", "configmap", "train-config", *here, "-o", "jsonpath={.data}")
    until("it is listed", lambda: f"echo {LEAVES}:1" in cluster.kubectl(*config) or None)
    _scale_in(cluster, namespace)
    events = cluster.kubectl("get", "events", "-o", "jsonpath={.items[*].reason}", *here)
    assert {"SurplusDeleted", "DrainTimeout"} & set(events.split()) == {reason}


def test_a_worker_whose_startup_probe_hangs_is_not_listed_and_goes_at_once(
    cluster: Cluster, namespace: str, operator: Operator, elastic: Controller
) -> None:
    """A postStart hook would hold it: a kubelet (1.34) ends no container before its hook has ended."""
    here = ("--namespace", namespace)
    hangs = f"case $HOSTNAME in {STAYS}) ;; *) sleep {ENDLESS} ;; esac"
    probe = {"exec": {"command": ["sh", "-c", hangs]}, "timeoutSeconds": ENDLESS}
    manifest = made("10m", startupProbe=probe)
    manifest["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = 1
    cluster.kubectl("create", "-f", "-", *here, stdin=json.dumps(manifest))
    launcher = ("get", "pod/train-launcher", "--ignore-not-found", "-o", "name", *here)
    until("the operator creates the launcher", lambda: cluster.kubectl(*launcher) or None)
    await_phase(cluster, namespace, "train-launcher", "Running")
    _scale(cluster, namespace, 2)
    there = ("get", f"pod/{LEAVES}", "--ignore-not-found", "-o", "name", *here)
    until("the operator creates the worker", lambda: cluster.kubectl(*there) or None)
    await_phase(cluster, namespace, LEAVES, "Running")
    _scale_in(cluster, namespace)
    config = ("get", "configmap", "train-config", *here, "-o", "jsonpath={.data}")
    assert f"echo {LEAVES}" not in cluster.kubectl(*config)


def _scale(cluster: Cluster, namespace: str, size: int) -> None:
    patch = {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": size}}}}
    here = ("--namespace", namespace)
    cluster.kubectl("patch", "mpijob", "train", "--type=merge", "-p", json.dumps(patch), *here)


def _scale_in(cluster: Cluster, namespace: str) -> None:
    """Edit 2→1, and wait until the second worker is gone."""
    _scale(cluster, namespace, 1)
    there = ("get", "pod", LEAVES, "--ignore-not-found", "-o", "name", "--namespace", namespace)
    until("the surplus worker is gone", lambda: None if cluster.kubectl(*there) else True)
