"""Behaviour of mpi-operator v0.2.3 on which the product relies."""

import json
import time
from typing import Any

import pytest

from lab.cluster import Cluster
from lab.errors import LabError
from lab.operator.process import Operator
from lab.processes import Identity
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
        launcher: dict[str, Any] | None = None,
        template: dict[str, Any] | None = None,
        **spec: Any,
    ) -> None:
        """Create it; `launcher` is added to the launcher's pod spec, `template` to the workers' template."""
        containers = [{"name": "main", "image": "horovod:test"}]
        worker: dict[str, Any] = {**(template or {})}
        worker["spec"] = {"containers": containers, **worker.get("spec", {})}
        roles = {
            "Launcher": {"template": {"spec": {"containers": containers, **(launcher or {})}}},
            "Worker": {"replicas": workers, "template": worker},
        }
        self.create_with({"mpiReplicaSpecs": roles, **spec})

    def create_with(self, spec: dict[str, Any]) -> None:
        body = {"apiVersion": "kubeflow.org/v1", "kind": "MPIJob", "metadata": {"name": "j"}, "spec": spec}
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

    def wait_for_event(self, reason: str) -> dict[str, Any]:
        selector = f"--field-selector=reason={reason},involvedObject.kind=MPIJob"
        return self.created("event", selector)[0]

    def running(self) -> None:
        self.wait("mpijob/j", "condition=Running")

    def workers(self) -> dict[str, str]:
        """Uids of the worker pods by name."""
        pods = json.loads(self.kubectl("get", "pods", "--selector=mpi-job-role=worker", "--output=json"))["items"]
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


def test_an_object_of_another_owner_stops_the_job(operator: Operator, job: Job) -> None:
    job.kubectl("create", "configmap", "j-config")
    job.create()
    event = job.wait_for_event("ErrResourceExists")
    assert event["message"] == 'Resource "j-config" of Kind "" already exists and is not managed by MPIJob'
    assert job.get("pods")["items"] == []
    assert "data" not in job.get("configmap/j-config")


def test_a_status_field_it_does_not_know_is_lost_with_its_next_status(operator: Operator, job: Job) -> None:
    job.create()
    job.running()
    job.patch_status("mpijob/j", {"replicaStatuses": {"Worker": {"selector": "a=b"}}})
    assert job.get("mpijob/j")["status"]["replicaStatuses"]["Worker"] == {"active": 2, "selector": "a=b"}
    job.patch_status("pod/j-worker-1", {"phase": "Failed"})
    job.wait("mpijob/j", "jsonpath={.status.replicaStatuses.Worker.failed}=1")
    assert job.get("mpijob/j")["status"]["replicaStatuses"]["Worker"] == {"active": 1, "failed": 1}


def test_a_deleted_launcher_is_created_anew_beside_the_old_hostfile(operator: Operator, job: Job) -> None:
    job.create()
    job.running()
    job.scale(1)
    job.kubectl("label", "pod/j-launcher", "old=true")
    # Not waiting: kubectl misses the end of a pod that is recreated at once.
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
        job.running()
    before = job.get("mpijobs,pods,configmaps,roles")
    job.kubectl("delete", "events", "--all")
    with Operator.start(cluster, namespace=namespace, qps=0):
        job.wait_for_event("MPIJobCreated")
        job.wait_for_event("MPIJobRunning")
        assert job.get("mpijobs,pods,configmaps,roles") == before


def test_a_larger_size_creates_workers_and_a_smaller_one_deletes_none(operator: Operator, job: Job) -> None:
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


def test_a_job_that_succeeds_loses_the_workers_of_its_last_size_only(operator: Operator, job: Job) -> None:
    job.create(workers=3, cleanPodPolicy="Running")
    job.running()
    job.scale(2)
    job.wait("mpijob/j", "jsonpath={.status.replicaStatuses.Worker.active}=2")
    job.end("j-launcher", "Succeeded")
    job.wait("mpijob/j", "condition=Succeeded")
    until(lambda: set(job.workers()) == {"j-worker-2"})


def test_without_a_clean_pod_policy_the_workers_stay(operator: Operator, job: Job) -> None:
    job.create()
    job.running()
    before = job.workers()
    job.end("j-launcher", "Succeeded")
    job.wait("mpijob/j", "condition=Succeeded")
    assert job.get("mpijob/j")["status"]["completionTime"]
    assert job.workers() == before


def test_a_launcher_that_fails_ends_the_job(operator: Operator, job: Job) -> None:
    job.create(cleanPodPolicy="All")
    job.running()
    job.end("j-launcher", "Failed")
    job.wait("mpijob/j", "condition=Failed")
    assert job.get("mpijob/j")["status"]["completionTime"]
    until(lambda: not job.workers())


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
    assert sorted(pod["metadata"]["name"] for pod in job.get("pods")["items"]) == ["j-worker-0", "j-worker-1"]
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
    until(lambda: job.created("pod", "--selector=mpi-job-role=launcher")[0]["metadata"]["uid"] != before)
    job.kubectl("annotate", "pod/j-launcher", f"{LINGERS}=")
    job.kubectl("delete", "pod/j-launcher", "--wait=false")
    job.end("j-launcher", "Failed")  # what its kubelet says once SIGTERM has ended it, in the grace period
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


def test_an_evicted_worker_fails_the_job_and_comes_back_when_it_is_deleted(operator: Operator, job: Job) -> None:
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


def test_after_an_eviction_the_end_of_the_launcher_starts_another(operator: Operator, job: Job) -> None:
    """docs/suspend.md says what that means for a deadline."""
    job.create()
    job.running()
    job.end("j-worker-1", "Failed", "Evicted")
    job.wait("mpijob/j", "condition=Failed")
    job.kubectl("delete", "pod/j-worker-1", "--wait=false")
    job.running()
    before = job.get("pod/j-launcher")["metadata"]["uid"]
    job.end("j-launcher", "Failed", "DeadlineExceeded")
    until(lambda: job.created("pod", "--selector=mpi-job-role=launcher")[0]["metadata"]["uid"] != before)


def test_a_templates_labels_and_new_fields_are_lost(operator: Operator, job: Job) -> None:
    """The operator knows the pods of Kubernetes 1.15: `schedulingGates` is of 1.26."""
    metadata = {"labels": {"team": "x"}, "annotations": {"note": "y"}}
    job.create(template={"metadata": metadata, "spec": {"schedulingGates": [{"name": "example.com/gate"}]}})
    job.running()
    pod = job.get("pod/j-worker-0")
    assert pod["metadata"]["labels"] == {
        "group-name": "kubeflow.org",
        "mpi-job-name": "j",
        "mpi-job-role": "worker",
    }
    assert pod["metadata"]["annotations"]["note"] == "y"
    assert "schedulingGates" not in pod["spec"]


def test_a_pod_group_is_written_once(cluster: Cluster, namespace: str, job: Job) -> None:
    with Operator.start(cluster, namespace=namespace, gang_scheduling="default-scheduler", qps=0):
        job.create()
        job.running()
        assert job.get("podgroup/j")["spec"]["minMember"] == 3
        assert job.get("pod/j-worker-0")["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == "j"
        job.scale(3)
        until(lambda: len(job.workers()) == 3)
        assert job.get("podgroup/j")["spec"]["minMember"] == 3


_POD = {"template": {"spec": {"containers": [{"name": "main", "image": "horovod:test"}]}}}
_EMPTY: dict[str, Any] = {"template": {"spec": {"containers": []}}}


@pytest.mark.parametrize(
    "roles",
    [
        {"Worker": {"replicas": 1, **_POD}},
        {"Launcher": _POD, "Worker": _POD},
        {"Launcher": _EMPTY, "Worker": {"replicas": 1, **_POD}},
        {},
    ],
    ids=["no launcher", "no number of workers", "a launcher without containers", "nothing"],
)
def test_a_job_that_lacks_a_part_ends_the_operator(
    cluster: Cluster, namespace: str, job: Job, roles: dict[str, Any]
) -> None:
    """docs/troubleshooting.md says what to do."""
    with Operator.start(cluster, namespace=namespace, qps=0) as operator:
        process = Identity.of(operator.pid)
        job.create_with({"mpiReplicaSpecs": roles})
        until(lambda: not process.alive())
        assert "panic" in operator.log.read_text()
    # It would end the next operator for all namespaces.
    job.kubectl("delete", "mpijob/j")


def test_a_finished_job_whose_size_is_removed_ends_the_operator_and_the_next(
    cluster: Cluster, namespace: str, job: Job
) -> None:
    with Operator.start(cluster, namespace=namespace, qps=0) as operator:
        process = Identity.of(operator.pid)
        job.create(cleanPodPolicy="Running")
        job.running()
        job.end("j-launcher", "Succeeded")
        job.wait("mpijob/j", "condition=Succeeded")
        job.kubectl("patch", "mpijob/j", "--type=json", f"--patch={json.dumps([_NO_SIZE])}")
        until(lambda: not process.alive())
    assert "in goroutine" in last_words(cluster, namespace)
    job.kubectl("delete", "mpijob/j")


def last_words(cluster: Cluster, namespace: str) -> str:
    """Start an operator that ends by itself; return the end of its log."""
    try:
        with Operator.start(cluster, namespace=namespace, qps=0) as operator:
            process = Identity.of(operator.pid)
            until(lambda: not process.alive())
            return operator.log.read_text()
    except LabError as error:  # it has ended before it was seen to have started
        return str(error)


_NO_SIZE = {"op": "remove", "path": "/spec/mpiReplicaSpecs/Worker/replicas"}


@pytest.mark.parametrize(
    "container",
    [{"env": [{"name": "A", "value": 1}]}, {"resources": {"limits": {"memory": "1GB"}}}],
    ids=["a number as value", "no quantity"],
)
def test_a_value_of_a_wrong_type_keeps_the_operator_from_all_new_jobs(
    cluster: Cluster, namespace: str, job: Job, container: dict[str, Any]
) -> None:
    """docs/troubleshooting.md says what to do."""
    bad = {"containers": [{"name": "main", "image": "horovod:test", **container}]}
    with Operator.start(cluster, namespace=namespace, qps=0) as operator:
        body = {"apiVersion": "kubeflow.org/v1", "kind": "MPIJob", "metadata": {"name": "bad"}}
        roles = {"Launcher": _POD, "Worker": {"replicas": 1, "template": {"spec": bad}}}
        job.kubectl("create", "--filename=-", stdin=json.dumps({**body, "spec": {"mpiReplicaSpecs": roles}}))
        until(lambda: "Failed to list *v1.MPIJob" in operator.log.read_text())
        job.create()
        failures = operator.log.read_text().count("Failed to list *v1.MPIJob")
        until(lambda: operator.log.read_text().count("Failed to list *v1.MPIJob") > failures + 1)
        assert job.get("pods")["items"] == []
        job.kubectl("delete", "mpijob/bad")
        job.running()


@pytest.mark.parametrize("worker", [None, {"replicas": 1, **_EMPTY}], ids=["no workers", "workers without containers"])
def test_a_job_without_workers_or_their_containers_does_not(
    cluster: Cluster, namespace: str, job: Job, worker: dict[str, Any] | None
) -> None:
    with Operator.start(cluster, namespace=namespace, qps=0) as operator:
        job.create_with({"mpiReplicaSpecs": {"Launcher": _POD, "Worker": worker}})
        if worker is None:
            job.running()
        else:
            until(lambda: "error syncing" in operator.log.read_text())
        assert Identity.of(operator.pid).alive()
    job.kubectl("delete", "mpijob/j")
