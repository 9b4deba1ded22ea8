"""An MPIJob of real pods, through the operator's own kubexec.sh, with controller and webhook beside the cluster."""

import json
import time
from typing import Any

from lab.cluster import Cluster
from lab.operator.process import Operator
from lab.replicas import Controller
from mpijob_elastic import names
from mpijob_elastic.capabilities.run_policy import RUN_POLICY
from mpijob_elastic.names import SUSPEND
from tests.real.mpijob import job, resize_through
from tests.real.pods import await_phase, until


def test_a_launcher_runs_commands_in_the_workers_it_is_told_of(
    cluster: Cluster, namespace: str, operator: Operator, elastic: Controller
) -> None:
    resize_through(cluster, namespace)


def test_a_kubelet_ends_the_launcher_at_the_deadline_of_the_run_policy(
    cluster: Cluster, namespace: str, operator: Operator, elastic: Controller
) -> None:
    made, here = job("sleep 600"), ("--namespace", namespace)
    made["metadata"]["annotations"] = {RUN_POLICY: "true"}
    made["spec"]["runPolicy"] = {"activeDeadlineSeconds": 10}
    cluster.kubectl("create", "-f", "-", *here, stdin=json.dumps(made))
    cluster.kubectl("wait", "mpijob/train", "--for=condition=Failed", "--timeout=240s", *here)
    reasons = cluster.kubectl(
        "get", "mpijob/train", "-o", "jsonpath={.status.conditions[*].reason}", *here
    )
    assert "DeadlineExceeded" in reasons.split()
    cluster.kubectl("wait", "pod/train-worker-0", "--for=delete", "--timeout=120s", *here)


def test_a_launcher_that_fails_runs_again_as_often_as_its_backoff_limit_says(
    cluster: Cluster, namespace: str, operator: Operator, elastic: Controller
) -> None:
    made, here = job("exit 3"), ("--namespace", namespace)
    made["metadata"]["annotations"] = {RUN_POLICY: "true"}
    made["spec"]["runPolicy"] = {"backoffLimit": 2}
    cluster.kubectl("create", "-f", "-", *here, stdin=json.dumps(made))
    cluster.kubectl("wait", "mpijob/train", "--for=condition=Failed", "--timeout=240s", *here)
    statuses = "jsonpath={.status.containerStatuses[0].restartCount}"
    assert cluster.kubectl("get", "pod/train-launcher", "-o", statuses, *here) == "2"
    cluster.kubectl("wait", "pod/train-worker-0", "--for=delete", "--timeout=120s", *here)


def test_a_job_is_suspended_and_resumed_and_the_operator_does_not_call_it_failed(
    cluster: Cluster, namespace: str, operator: Operator, elastic: Controller
) -> None:
    """A kubelet says of a pod that is deleted with a grace period how it ended, and the operator would believe it."""
    made: dict[str, Any] = job(f"{names.DISCOVER_HOSTS_PATH}; sleep 600")
    here = ("--namespace", namespace)

    def suspend(value: str) -> None:
        cluster.kubectl("annotate", "mpijob/train", f"{SUSPEND}={value}", "--overwrite", *here)

    cluster.kubectl("create", "-f", "-", *here, stdin=json.dumps(made))
    await_phase(cluster, namespace, "train-launcher", "Running")
    suspend("true")
    until("the launcher waits at the gate", lambda: _is_gated(cluster, namespace, "train-launcher"))
    until("the worker waits at the gate", lambda: _is_gated(cluster, namespace, "train-worker-0"))
    suspend("false")
    await_phase(cluster, namespace, "train-launcher", "Running")
    assert "Failed" not in cluster.kubectl(
        "get", "mpijob/train", "-o", "jsonpath={.status.conditions[*].type}", *here
    )


def test_a_launcher_that_is_recreated_before_it_starts_does_not_fail_its_job(
    cluster: Cluster, namespace: str, operator: Operator, elastic: Controller
) -> None:
    made: dict[str, Any] = job(f"{names.DISCOVER_HOSTS_PATH}; sleep 600")
    made["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["nodeSelector"] = {"no": "where"}
    here = ("--namespace", namespace)
    cluster.kubectl("create", "-f", "-", *here, stdin=json.dumps(made))
    started = (
        "get",
        "pod/train-launcher",
        "-o",
        "jsonpath={.status.initContainerStatuses[*].state.running}",
        *here,
    )
    there = ("get", "pod/train-launcher", "--ignore-not-found", "-o", "name", *here)
    until("the operator creates the launcher", lambda: cluster.kubectl(*there) or None)
    until("its init container waits", lambda: cluster.kubectl(*started) or None)
    cluster.kubectl("annotate", "mpijob/train", f"{SUSPEND}=true", *here)
    until("the launcher waits at the gate", lambda: _is_gated(cluster, namespace, "train-launcher"))
    time.sleep(40)  # longer than the launcher's grace period
    assert "Failed" not in cluster.kubectl(
        "get", "mpijob/train", "-o", "jsonpath={.status.conditions[*].type}", *here
    )


def _is_gated(cluster: Cluster, namespace: str, pod: str) -> bool | None:
    path = "jsonpath={.spec.schedulingGates[*].name}"
    found = cluster.kubectl(
        "get", "pod", pod, "--ignore-not-found", "-o", path, "--namespace", namespace
    )
    return found == names.GATE_SUSPENDED or None
