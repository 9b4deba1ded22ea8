"""The facts of a pod."""

import json
from typing import Any

import pytest

from mpijob_elastic.model.disruption_signs import Toleration
from mpijob_elastic.model.job import LauncherPhase
from mpijob_elastic.observe import facts_pod

LAUNCHER = {"group-name": "kubeflow.org", "mpi-job-name": "j", "mpi-job-role": "launcher"}
WAITING = {"state": {"waiting": {"reason": "PodInitializing"}}}
DELIVERING = {"name": "kubectl-delivery", "state": {"running": {"startedAt": "1970-01-01T00:01:40Z"}}}
DRIVER = {"name": "main", "volumeMounts": [{"name": "mpi-job-config", "mountPath": "/etc/mpi"}]}
ENDED = {"name": "main", "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}


def finished(at: str) -> dict[str, Any]:
    """The status of a container that has ended."""
    return {"name": "main", "state": {"terminated": {"exitCode": 0, "finishedAt": f"1970-01-01T{at}Z"}}}


def pod(*, status: dict[str, Any], spec: dict[str, Any] | None = None, **metadata: Any) -> facts_pod.PodFacts:
    meta = {"name": "j-launcher", "namespace": "n", "uid": "u", "labels": LAUNCHER, **metadata}
    return facts_pod.read(json.dumps({"metadata": meta, "spec": spec or {}, "status": status}).encode())


@pytest.mark.parametrize(
    ("status", "phase"),
    [
        ({}, LauncherPhase.WAITING),
        ({"phase": "Pending"}, LauncherPhase.WAITING),
        ({"phase": "Pending", "containerStatuses": [WAITING]}, LauncherPhase.WAITING),
        ({"phase": "Pending", "initContainerStatuses": [DELIVERING]}, LauncherPhase.DELIVERING),
        (
            {"phase": "Pending", "initContainerStatuses": [{"name": "other", "state": {"running": {}}}]},
            LauncherPhase.WAITING,
        ),
        ({"phase": "Pending", "containerStatuses": [{"state": {"running": {}}}]}, LauncherPhase.STARTED),
        (
            {"phase": "Pending", "containerStatuses": [{**WAITING, "lastState": {"terminated": {}}}]},
            LauncherPhase.STARTED,
        ),
        ({"phase": "Running"}, LauncherPhase.STARTED),
        ({"phase": "Succeeded"}, LauncherPhase.FINISHED),
        ({"phase": "Failed"}, LauncherPhase.FINISHED),
    ],
)
def test_how_far_a_launcher_is(status: dict[str, Any], phase: LauncherPhase) -> None:
    assert pod(status=status).launcher_phase is phase


def test_when_kubectl_delivery_started() -> None:
    assert pod(status={"initContainerStatuses": [DELIVERING]}).delivering_since == 100.0


def test_when_the_driver_of_a_launcher_started() -> None:
    driver = {"name": "main", "state": {"running": {"startedAt": "1970-01-01T00:03:20Z"}}}
    proxy = {"name": "proxy", "state": {"running": {"startedAt": "1970-01-01T01:00:00Z"}}}
    spec = {"containers": [{"name": "proxy"}, DRIVER]}
    status = {"containerStatuses": [proxy, driver]}
    assert pod(status=status, spec=spec).started_at == 200.0
    assert pod(status=status, spec=spec, labels={**LAUNCHER, "mpi-job-role": "worker"}).started_at is None
    assert pod(status={"containerStatuses": [ENDED, proxy]}, spec=spec).started_at is None


@pytest.mark.parametrize(
    ("volumes", "mounts"),
    [
        ([], False),
        ([{"name": "mpi-job-config", "configMap": {"items": [{"key": "hostfile", "path": "hostfile"}]}}], False),
        ([{"name": "mpi-job-config", "configMap": {"items": [{"key": "discover_hosts.sh", "path": "x"}]}}], False),
        (
            [{"name": "other", "configMap": {"items": [{"key": "discover_hosts.sh", "path": "discover_hosts.sh"}]}}],
            False,
        ),
        (
            [
                {
                    "name": "mpi-job-config",
                    "configMap": {"items": [{"key": "discover_hosts.sh", "path": "discover_hosts.sh"}]},
                }
            ],
            True,
        ),
    ],
)
def test_whether_the_launcher_was_created_to_read_the_host_list(volumes: list[Any], mounts: bool) -> None:
    assert pod(status={}, spec={"volumes": volumes}).mounts_discovery is mounts


@pytest.mark.parametrize(
    "volume", [{}, {"items": [{"key": "discover_hosts.sh", "path": "discover_hosts.sh"}], "optional": True}]
)
@pytest.mark.parametrize(
    ("runs", "reads"),
    [
        ({}, False),
        ({"command": None, "args": None, "env": None}, False),
        ({"command": ["mpirun", "x"], "env": [{"name": "A", "value": "b"}]}, False),
        ({"command": ["sh", "-c"], "args": ["horovodrun --host-discovery-script /x"]}, True),
        ({"command": ["/train.sh"], "env": [{"name": "HOSTS", "value": "/etc/mpi/discover_hosts.sh"}]}, True),
    ],
)
def test_any_other_mount_says_nothing_of_the_driver(volume: Any, runs: Any, reads: bool) -> None:
    volumes = [{"name": "mpi-job-config", "configMap": volume}]
    facts = pod(status={}, spec={"volumes": volumes, "containers": [{"name": "launcher", **runs}]})
    assert facts.mounts_discovery is reads


def test_the_last_state_says_how_and_where_a_pod_ended() -> None:
    failed = pod(
        status={"phase": "Failed", "reason": "Evicted", "containerStatuses": [ENDED]}, spec={"nodeName": "gpu-1"}
    )
    assert failed.last_state == "Failed; Evicted; main exited with 137 (OOMKilled) on node gpu-1"
    assert pod(status={"phase": "Pending"}).last_state == ""


def test_ready_since_only_while_ready() -> None:
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "1970-01-01T00:00:09Z"}
    assert pod(status={"conditions": [ready]}).ready_at == 9.0
    assert pod(status={"conditions": [{**ready, "status": "False"}]}).ready_at is None
    assert pod(status={}).ready_at is None


@pytest.mark.parametrize(
    ("conditions", "obstacle", "disrupted"),
    [
        ([], "", ""),
        ([{"type": "PodScheduled", "status": "True"}], "", ""),
        (
            [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}],
            "Unschedulable: 0/3 nodes",
            "",
        ),
        (
            [{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}],
            "",
            "condition DisruptionTarget (EvictionByEvictionAPI)",
        ),
        ([{"type": "DisruptionTarget", "status": "False", "reason": "Over"}], "", ""),
        (
            [
                {"type": "DisruptionTarget", "status": "False", "reason": "Over"},
                {"type": "TerminationTarget", "status": "True", "reason": "WorkloadEvictedDueToPreempted"},
            ],
            "",
            "condition TerminationTarget (WorkloadEvictedDueToPreempted)",
        ),
    ],
)
def test_why_it_is_not_scheduled_or_about_to_go(
    conditions: list[dict[str, str]], obstacle: str, disrupted: str
) -> None:
    facts = pod(status={"conditions": conditions})
    assert (facts.obstacle, facts.disrupted) == (obstacle, disrupted)


def test_where_it_is_and_what_it_tolerates_for_ever() -> None:
    unreachable = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}
    spec = {"nodeName": "n-1", "tolerations": [{**unreachable, "tolerationSeconds": 300}, {"operator": "Exists"}]}
    facts = pod(status={}, spec=spec)
    assert (facts.node, facts.tolerations) == ("n-1", (Toleration(operator="Exists"),))
    assert (pod(status={}).node, pod(status={}).tolerations) == ("", ())


def test_what_keeps_a_look_from_telling_processes_apart() -> None:
    assert not pod(status={}).shares_processes
    assert not pod(status={}, spec={"shareProcessNamespace": False}).shares_processes
    assert pod(status={}, spec={"shareProcessNamespace": True}).shares_processes
    assert pod(status={}, spec={"hostPID": True}).shares_processes


def test_when_a_pod_that_goes_has_no_more_time_to_end() -> None:
    going = pod(status={}, deletionTimestamp="1970-01-01T00:01:40Z", deletionGracePeriodSeconds=30)
    assert going.ends_at == 100.0
    assert pod(status={}).ends_at is None


@pytest.mark.parametrize(("seconds", "forced"), [(None, False), (30, False), (0, True)])
def test_only_a_finalizer_holds_a_pod_without_a_grace_period(seconds: int | None, forced: bool) -> None:
    assert pod(status={}, deletionGracePeriodSeconds=seconds).forced is forced


def test_whether_it_ran_out_of_memory() -> None:
    assert pod(status={"phase": "Failed", "containerStatuses": [ENDED]}).out_of_memory
    killed = {"name": "main", "state": {"terminated": {"exitCode": 137, "reason": "Error"}}}
    assert not pod(status={"phase": "Failed", "containerStatuses": [killed]}).out_of_memory


@pytest.mark.parametrize(
    ("spec", "has_hook"),
    [
        ({}, False),
        ({"containers": [{"name": "a"}, {"name": "b", "lifecycle": {"postStart": {"sleep": {"seconds": 1}}}}]}, False),
        ({"containers": [{"name": "a"}, {"name": "b", "lifecycle": {"preStop": {"exec": {"command": ["x"]}}}}]}, True),
        ({"containers": [{"name": "a", "lifecycle": {"preStop": {}}}]}, True),
        ({"initContainers": [{"name": "sidecar", "lifecycle": {"preStop": {"sleep": {"seconds": 1}}}}]}, True),
        ({"containers": None, "initContainers": None}, False),
    ],
)
def test_a_pre_stop_hook_in_any_container(spec: dict[str, Any], has_hook: bool) -> None:
    assert pod(status={}, spec=spec).pre_stop is has_hook


def test_pods_of_a_job_share_their_texts() -> None:
    """A cache of 100,000 pods holds each text once."""
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "MPIJob", "name": "j", "uid": "job", "controller": True}
    spec = {"nodeName": "node-1", "containers": [{"name": "main"}]}
    first, second = (pod(status={"phase": "Running"}, spec=spec, name=f"j-{i}", ownerReferences=[owner]) for i in "01")
    for of_first, of_second in (
        (first.metadata.namespace, second.metadata.namespace),
        (first.metadata.job, second.metadata.job),
        (first.metadata.job_uid, second.metadata.job_uid),
        (first.metadata.api_version, second.metadata.api_version),
        (first.role, second.role),
        (first.phase, second.phase),
        (first.containers[0], second.containers[0]),
        (first.node, second.node),
        (first.last_state, second.last_state),
    ):
        assert of_first
        assert of_first is of_second


CRASHED = {"terminated": {"exitCode": 1}}
LOOPS = {"waiting": {"reason": "CrashLoopBackOff"}}


@pytest.mark.parametrize(
    ("statuses", "failures"),
    [
        ([], 0),
        ([{"name": "main", "state": {"waiting": {}}}], 0),
        ([{"name": "main", "state": {"running": {}}, "lastState": CRASHED, "restartCount": 2}], 0),
        ([{"name": "main", "state": CRASHED, "restartCount": 0}], 1),
        ([{"name": "main", "state": CRASHED, "lastState": CRASHED, "restartCount": 2}], 3),
        ([{"name": "main", "state": LOOPS, "lastState": CRASHED, "restartCount": 2}], 3),
        ([{"name": "main", "state": {"terminated": {"exitCode": 0}}, "lastState": CRASHED, "restartCount": 2}], 0),
        ([{"name": "sidecar", "state": CRASHED, "restartCount": 9}], 0),
    ],
)
@pytest.mark.parametrize(
    "containers",
    [
        [{"name": "main"}, {"name": "sidecar"}],
        [{"name": "sidecar"}, DRIVER],
        [{"name": "sidecar", "volumeMounts": [{"name": "x", "mountPath": "/etc/mpi-job-config"}]}, DRIVER],
    ],
)
def test_how_often_a_launcher_has_failed(
    statuses: list[dict[str, Any]], containers: list[dict[str, Any]], failures: int
) -> None:
    spec = {"containers": containers, "activeDeadlineSeconds": 60}
    launcher = pod(status={"containerStatuses": statuses}, spec=spec)
    assert (launcher.failures, launcher.deadline) == (failures, 60)
    worker = pod(status={"containerStatuses": statuses}, spec=spec, labels={**LAUNCHER, "mpi-job-role": "worker"})
    assert (worker.failures, worker.deadline) == (0, None)


@pytest.mark.parametrize(
    ("status", "at"),
    [
        ({"phase": "Running"}, None),
        ({"phase": "Succeeded", "containerStatuses": [finished("00:05:00"), finished("00:02:00")]}, 300.0),
        ({"phase": "Failed", "containerStatuses": [finished("00:05:00")]}, 300.0),
        # The operator makes another.
        ({"phase": "Failed", "reason": "Evicted", "containerStatuses": [finished("00:05:00")]}, None),
        # It was refused by its node, or nobody knows of its container.
        ({"phase": "Failed", "conditions": [{"type": "Ready", "lastTransitionTime": "1970-01-01T00:03:00Z"}]}, 180.0),
        ({"phase": "Failed", "containerStatuses": [ENDED]}, 60.0),
    ],
)
def test_when_a_launcher_ended(status: dict[str, Any], at: float | None) -> None:
    created: dict[str, Any] = {"creationTimestamp": "1970-01-01T00:01:00Z"}
    assert pod(status=status, **created).ended_at == at
    assert pod(status=status, **created, labels={**LAUNCHER, "mpi-job-role": "worker"}).ended_at is None
