"""What mpi-operator v0.2.3 does that no recording shows; true of the real one as well (MPI_OPERATOR_BIN)."""

import json
from typing import Any

import pytest

from lab.cluster import Cluster
from lab.operator.process import Operator
from tests.lab.waiting import until

pytestmark = pytest.mark.lab


class Job:
    """The job `j` in a namespace, looked at and changed with kubectl."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._cluster = cluster
        self._namespace = namespace

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        return self._cluster.kubectl("--namespace", self._namespace, *arguments, stdin=stdin)

    def create(self, *, workers: int = 2, launcher: dict[str, Any] | None = None) -> None:
        containers = [{"name": "main", "image": "horovod:test"}]
        roles = {
            "Launcher": {"template": {"spec": {"containers": containers, **(launcher or {})}}},
            "Worker": {"replicas": workers, "template": {"spec": {"containers": containers}}},
        }
        body = {
            "apiVersion": "kubeflow.org/v1",
            "kind": "MPIJob",
            "metadata": {"name": "j"},
            "spec": {"mpiReplicaSpecs": roles},
        }
        self.kubectl("create", "--filename=-", stdin=json.dumps(body))

    def wait(self, what: str, condition: str) -> None:
        self.kubectl("wait", what, f"--for={condition}", "--timeout=240s")

    def created(self, *what: str) -> list[dict[str, Any]]:
        """Wait until there are objects, by kind and selector, and return them."""

        def found() -> list[dict[str, Any]]:
            items: list[dict[str, Any]] = json.loads(self.kubectl("get", *what, "--output=json"))["items"]
            return items

        until(lambda: bool(found()))
        return found()

    def get(self, what: str) -> Any:
        return json.loads(self.kubectl("get", what, "--output=json"))

    def wait_for_event(self, reason: str) -> dict[str, Any]:
        selector = f"--field-selector=reason={reason},involvedObject.kind=MPIJob"
        return self.created("event", selector)[0]

    def scale(self, replicas: int) -> None:
        patch = {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": replicas}}}}
        self.kubectl("patch", "mpijob/j", "--type=merge", f"--patch={json.dumps(patch)}")

    def patch_status(self, what: str, status: dict[str, Any]) -> None:
        patch = json.dumps({"status": status})
        self.kubectl("patch", what, "--subresource=status", "--type=merge", f"--patch={patch}")


@pytest.fixture
def job(cluster: Cluster, namespace: str) -> Job:
    return Job(cluster, namespace)


def test_an_object_of_another_owner_stops_the_job(operator: Operator, job: Job) -> None:
    job.kubectl("create", "configmap", "j-config")
    job.create()
    event = job.wait_for_event("ErrResourceExists")
    assert event["message"] == 'Resource "j-config" of Kind "" already exists and is not managed by MPIJob'
    assert job.get("pods")["items"] == []
    assert "data" not in job.get("configmap/j-config")


def test_a_status_field_it_does_not_know_is_lost_with_its_next_status(operator: Operator, job: Job) -> None:
    job.create()
    job.wait("mpijob/j", "condition=Running")
    job.patch_status("mpijob/j", {"replicaStatuses": {"Worker": {"selector": "a=b"}}})
    assert job.get("mpijob/j")["status"]["replicaStatuses"]["Worker"] == {"active": 2, "selector": "a=b"}
    job.patch_status("pod/j-worker-1", {"phase": "Failed"})
    job.wait("mpijob/j", "jsonpath={.status.replicaStatuses.Worker.failed}=1")
    assert job.get("mpijob/j")["status"]["replicaStatuses"]["Worker"] == {"active": 1, "failed": 1}


def test_a_deleted_launcher_is_created_anew_beside_the_old_hostfile(operator: Operator, job: Job) -> None:
    job.create()
    job.wait("mpijob/j", "condition=Running")
    job.scale(1)
    job.kubectl("label", "pod/j-launcher", "old=true")
    # Not waiting: kubectl misses the end of a pod that is created anew at once.
    job.kubectl("delete", "pod/j-launcher", "--wait=false")
    job.created("pod", "--selector=mpi-job-role=launcher,!old")
    assert job.get("configmap/j-config")["data"]["hostfile"] == "j-worker-0 slots=1\nj-worker-1 slots=1\n"


def test_a_pod_that_cannot_be_created_is_told_as_a_failure(operator: Operator, job: Job) -> None:
    job.kubectl("create", "quota", "one-pod", "--hard=pods=1")
    job.wait("quota/one-pod", "jsonpath={.status.hard.pods}=1")
    job.create()
    event = job.wait_for_event("MPIJobFailed")
    assert event["message"].startswith(
        'worker pod created failed: pods "j-worker-1" is forbidden: exceeded quota: one-pod'
    )


def test_a_restart_policy_in_the_launchers_template_is_overwritten_with_a_warning(operator: Operator, job: Job) -> None:
    job.create(launcher={"restartPolicy": "Always"})
    job.wait_for_event("SettedPodTemplateRestartPolicy")
    [launcher] = job.created("pod", "--selector=mpi-job-role=launcher")
    assert launcher["spec"]["restartPolicy"] == "Never"


def test_a_restart_changes_no_object_and_tells_again_that_the_job_was_created(
    cluster: Cluster, namespace: str, job: Job
) -> None:
    with Operator.start(cluster, namespace=namespace, qps=0):
        job.create()
        job.wait("mpijob/j", "condition=Running")
    before = job.get("mpijobs,pods,configmaps,roles")
    job.kubectl("delete", "events", "--all")
    with Operator.start(cluster, namespace=namespace, qps=0):
        job.wait_for_event("MPIJobCreated")
        job.wait_for_event("MPIJobRunning")
        assert job.get("mpijobs,pods,configmaps,roles") == before
