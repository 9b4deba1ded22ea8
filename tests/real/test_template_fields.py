"""Fields that the operator drops, and that a kubelet shows: they act once they are put back, and a drain is as without them."""

import json
from typing import Any

import pytest

from lab.cluster import Cluster
from lab.images import delivery
from lab.operator.process import Operator
from lab.replicas import Controller
from mpijob_elastic import names
from tests.real.mpijob import job
from tests.real.pods import await_phase, until

POD = "train-worker-0"
LEAVING = "train-worker-1"
# Seconds after which the main container of a worker has started, for its startupProbe.
STARTS_AFTER = 6

pytestmark = pytest.mark.usefixtures("own_node")


def made() -> dict[str, Any]:
    """A job of two whose workers have a native sidecar, a startupProbe and a preStop that sleeps."""
    found = job("sleep 600")
    found["metadata"]["annotations"] = {names.ENABLED: "true", names.DRAIN_TIMEOUT: "20s"}
    worker = found["spec"]["mpiReplicaSpecs"]["Worker"]
    worker["replicas"] = 2
    spec = worker["template"]["spec"]
    ready = f"[ $(($(date +%s) - $(stat -c %Y /proc/1))) -ge {STARTS_AFTER} ]"
    spec["containers"][0] |= {
        "startupProbe": {
            "exec": {"command": ["sh", "-c", ready]},
            "periodSeconds": 1,
            "failureThreshold": 60,
        },
        "lifecycle": {"preStop": {"sleep": {"seconds": 1}}},
    }
    spec["initContainers"] = [
        {
            "name": "log",
            "image": delivery.REFERENCE,
            "command": ["sh", "-c", "trap exit TERM; while :; do sleep 0.2; done"],
            "restartPolicy": "Always",
        }
    ]
    return found


def test_a_sidecar_a_startup_probe_and_a_sleep_before_the_end_act(
    cluster: Cluster, namespace: str, operator: Operator, elastic: Controller
) -> None:
    here = ("--namespace", namespace)
    cluster.kubectl("create", "-f", "-", *here, stdin=json.dumps(made()))

    def pod(name: str) -> dict[str, Any]:
        text = cluster.kubectl("get", "pod", name, "--ignore-not-found", "-o", "json", *here)
        return json.loads(text) if text else {}

    until("the operator creates the worker", lambda: pod(POD) or None)
    await_phase(cluster, namespace, POD, "Running")
    sidecar, main = (
        pod(POD)["status"][key][0] for key in ("initContainerStatuses", "containerStatuses")
    )
    assert sidecar["state"].keys() == {"running"}
    assert sidecar["state"]["running"]["startedAt"] <= main["state"]["running"]["startedAt"]
    until(
        "the startupProbe ends, and the worker is Ready",
        lambda: pod(POD)["status"]["containerStatuses"][0]["ready"] or None,
    )
    ready = next(one for one in pod(POD)["status"]["conditions"] if one["type"] == "Ready")
    assert ready["lastTransitionTime"] > main["state"]["running"]["startedAt"]

    patch = {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 1}}}}
    cluster.kubectl("patch", "mpijob", "train", "--type=merge", "-p", json.dumps(patch), *here)
    until("the surplus worker drains and goes", lambda: None if pod(LEAVING) else True)
    events = cluster.kubectl("get", "events", "-o", "jsonpath={.items[*].reason}", *here)
    assert "DrainTimeout" not in events.split()
