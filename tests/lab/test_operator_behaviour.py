"""Behaviour of mpi-operator v0.2.3 on which the product relies."""

import json
import time
from typing import Any

import pytest

from lab.cluster import Cluster
from lab.operator.process import Operator
from tests.lab.job import LINGERS
from tests.lab.waiting import until

pytestmark = [pytest.mark.lab, pytest.mark.campaign]


class Job:
    """The job `j` in a namespace, looked at and changed with kubectl."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._cluster = cluster
        self._namespace = namespace

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        return self._cluster.kubectl("--namespace", self._namespace, *arguments, stdin=stdin)

    def create(
        self,
        *,
        workers: int = 2,
        template: dict[str, Any] | None = None,
        **spec: Any,
    ) -> None:
        """Create it; `template` is added to the workers' template."""
        containers = [{"name": "main", "image": "horovod:test"}]
        worker: dict[str, Any] = {**(template or {})}
        worker["spec"] = {"containers": containers, **worker.get("spec", {})}
        roles = {
            "Launcher": {"template": {"spec": {"containers": containers}}},
            "Worker": {"replicas": workers, "template": worker},
        }
        self.create_with({"mpiReplicaSpecs": roles, **spec})

    def create_with(self, spec: dict[str, Any]) -> None:
        body = {
            "apiVersion": "kubeflow.org/v1",
            "kind": "MPIJob",
            "metadata": {"name": "j"},
            "spec": spec,
        }
        self.kubectl("create", "--filename=-", stdin=json.dumps(body))

    def wait(self, what: str, condition: str) -> None:
        self.kubectl("wait", what, f"--for={condition}", "--timeout=240s")

    def created(self, *what: str) -> list[dict[str, Any]]:
        """Wait until there are objects, by kind and selector, and return them."""
        found: list[dict[str, Any]] = []

        def look() -> bool:
            found[:] = json.loads(self.kubectl("get", *what, "--output=json"))["items"]
            return bool(found)

        until(look)
        return found

    def get(self, what: str) -> Any:
        return json.loads(self.kubectl("get", what, "--output=json"))

    def running(self) -> None:
        self.wait("mpijob/j", "condition=Running")

    def workers(self) -> dict[str, str]:
        """Uids of the worker pods by name."""
        pods = json.loads(
            self.kubectl("get", "pods", "--selector=mpi-job-role=worker", "--output=json")
        )["items"]
        return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in pods if not _going(pod)}

    def end(self, pod: str, phase: str, reason: str = "") -> None:
        """Say of a pod that it has ended."""
        self.patch_status(f"pod/{pod}", {"phase": phase, "reason": reason})

    def scale(self, replicas: int) -> None:
        patch = {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": replicas}}}}
        self.kubectl("patch", "mpijob/j", "--type=merge", f"--patch={json.dumps(patch)}")

    def patch_status(self, what: str, status: dict[str, Any]) -> None:
        patch = json.dumps({"status": status})
        self.kubectl("patch", what, "--subresource=status", "--type=merge", f"--patch={patch}")


def _going(pod: dict[str, Any]) -> bool:
    return "deletionTimestamp" in pod["metadata"]


@pytest.fixture
def job(cluster: Cluster, namespace: str) -> Job:
    return Job(cluster, namespace)


def test_a_status_field_it_does_not_know_is_lost_with_its_next_status(
    operator: Operator, job: Job
) -> None:
    job.create()
    job.running()
    job.patch_status("mpijob/j", {"replicaStatuses": {"Worker": {"selector": "a=b"}}})
    assert job.get("mpijob/j")["status"]["replicaStatuses"]["Worker"] == {
        "active": 2,
        "selector": "a=b",
    }
    job.patch_status("pod/j-worker-1", {"phase": "Failed"})
    job.wait("mpijob/j", "jsonpath={.status.replicaStatuses.Worker.failed}=1")
    assert job.get("mpijob/j")["status"]["replicaStatuses"]["Worker"] == {"active": 1, "failed": 1}


def test_a_deleted_launcher_is_created_anew_beside_the_old_hostfile(
    operator: Operator, job: Job
) -> None:
    job.create()
    job.running()
    job.scale(1)
    job.kubectl("label", "pod/j-launcher", "old=true")
    # Not waiting: kubectl misses the end of a pod that is recreated at once.
    job.kubectl("delete", "pod/j-launcher", "--wait=false")
    job.created("pod", "--selector=mpi-job-role=launcher,!old")
    assert (
        job.get("configmap/j-config")["data"]["hostfile"]
        == "j-worker-0 slots=1\nj-worker-1 slots=1\n"
    )


def test_a_larger_size_creates_workers_and_a_smaller_one_deletes_none(
    operator: Operator, job: Job
) -> None:
    """Nor are hostfile, Role and what others wrote into them touched again."""
    job.create()
    job.running()
    foreign = {"data": {"discover_hosts.sh": "#!/bin/sh\n"}}
    job.kubectl("patch", "configmap/j-config", "--type=merge", f"--patch={json.dumps(foreign)}")
    grant = [{"op": "add", "path": "/rules/1/resourceNames/-", "value": "j-worker-2"}]
    job.kubectl("patch", "role/j-launcher", "--type=json", f"--patch={json.dumps(grant)}")
    shared = [job.get("configmap/j-config"), job.get("role/j-launcher")]
    job.scale(3)
    until(lambda: len(job.workers()) == 3)
    before = job.workers()
    job.scale(1)
    job.wait("mpijob/j", "jsonpath={.status.replicaStatuses.Worker.active}=1")
    assert job.workers() == before
    assert [job.get("configmap/j-config"), job.get("role/j-launcher")] == shared


def test_a_job_that_succeeds_loses_the_workers_of_its_last_size_only(
    operator: Operator, job: Job
) -> None:
    job.create(workers=3, cleanPodPolicy="Running")
    job.running()
    job.scale(2)
    job.wait("mpijob/j", "jsonpath={.status.replicaStatuses.Worker.active}=2")
    job.end("j-launcher", "Succeeded")
    job.wait("mpijob/j", "condition=Succeeded")
    until(lambda: set(job.workers()) == {"j-worker-2"})


def test_a_failed_job_begins_again_only_without_its_completion_time_and_stays_failed_beside(
    operator: Operator, job: Job
) -> None:
    """Hence retries in place, in docs/suspend.md."""
    job.create()
    job.running()
    job.end("j-launcher", "Failed")
    job.wait("mpijob/j", "condition=Failed")
    job.kubectl("delete", "pod/j-launcher")
    time.sleep(2)  # an operator that means to create it takes milliseconds
    assert sorted(pod["metadata"]["name"] for pod in job.get("pods")["items"]) == [
        "j-worker-0",
        "j-worker-1",
    ]
    job.patch_status("mpijob/j", {"completionTime": None})
    job.running()
    conditions = {one["type"]: one["status"] for one in job.get("mpijob/j")["status"]["conditions"]}
    assert (conditions["Running"], conditions["Failed"]) == ("True", "True")


def test_a_launcher_deleted_at_once_is_made_again_and_one_that_is_seen_to_end_fails_the_job(
    operator: Operator, job: Job
) -> None:
    """Hence `upgrade adopt`, and no `kubectl delete pod`, in docs/elastic-jobs.md."""
    job.create()
    job.running()
    before = job.get("pod/j-launcher")["metadata"]["uid"]
    job.kubectl("delete", "pod/j-launcher", "--grace-period=0", "--force")
    until(
        lambda: (
            job.created("pod", "--selector=mpi-job-role=launcher")[0]["metadata"]["uid"] != before
        )
    )
    job.kubectl("annotate", "pod/j-launcher", f"{LINGERS}=")
    job.kubectl("delete", "pod/j-launcher", "--wait=false")
    job.end(
        "j-launcher", "Failed"
    )  # what its kubelet says once SIGTERM has ended it, in the grace period
    job.wait("mpijob/j", "condition=Failed")
    job.kubectl("delete", "pod/j-launcher", "--grace-period=0", "--force")
    time.sleep(2)  # an operator that means to create it takes milliseconds
    assert sorted(job.workers()) == [pod["metadata"]["name"] for pod in job.get("pods")["items"]]


def test_a_failed_worker_stays_and_a_deleted_one_comes_back(operator: Operator, job: Job) -> None:
    job.create()
    job.running()
    before = job.workers()
    job.end("j-worker-1", "Failed")
    job.wait("mpijob/j", "jsonpath={.status.replicaStatuses.Worker.failed}=1")
    assert job.workers() == before
    job.kubectl("delete", "pod/j-worker-1", "--wait=false")
    until(lambda: job.workers().get("j-worker-1") not in (None, before["j-worker-1"]))


def test_an_evicted_worker_fails_the_job_and_comes_back_when_it_is_deleted(
    operator: Operator, job: Job
) -> None:
    job.create()
    job.running()
    before = job.workers()
    job.end("j-worker-1", "Failed", "Evicted")
    job.wait("mpijob/j", "condition=Failed")
    failed = [one for one in job.get("mpijob/j")["status"]["conditions"] if one["type"] == "Failed"]
    assert [one["reason"] for one in failed] == ["MPIJobEvicted"]
    assert job.workers() == before
    job.kubectl("delete", "pod/j-worker-1", "--wait=false")
    until(lambda: job.workers().get("j-worker-1") not in (None, before["j-worker-1"]))


def test_a_templates_labels_and_new_fields_are_lost(operator: Operator, job: Job) -> None:
    """The operator knows the pods of Kubernetes 1.15: `schedulingGates` is of 1.26."""
    metadata = {"labels": {"team": "x"}, "annotations": {"note": "y"}}
    job.create(
        template={"metadata": metadata, "spec": {"schedulingGates": [{"name": "example.com/gate"}]}}
    )
    job.running()
    pod = job.get("pod/j-worker-0")
    assert pod["metadata"]["labels"] == {
        "group-name": "kubeflow.org",
        "mpi-job-name": "j",
        "mpi-job-role": "worker",
    }
    assert pod["metadata"]["annotations"]["note"] == "y"
    assert "schedulingGates" not in pod["spec"]
