"""The facts of a pod."""

import json
from operator import attrgetter
from typing import Any

import pytest

from mpijob_elastic.capabilities.live import READ
from mpijob_elastic.model.pod import LauncherFacts, LauncherPhase, PodFacts, Toleration
from mpijob_elastic.observe import facts_pod

LAUNCHER = {"group-name": "kubeflow.org", "mpi-job-name": "j", "mpi-job-role": "launcher"}
WAITING = {"state": {"waiting": {"reason": "PodInitializing"}}}
DELIVERING = {
    "name": "kubectl-delivery",
    "state": {"running": {"startedAt": "1970-01-01T00:01:40Z"}},
}
DRIVER = {"name": "main", "volumeMounts": [{"name": "mpi-job-config", "mountPath": "/etc/mpi"}]}
ENDED = {"name": "main", "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}


def finished(at: str) -> dict[str, Any]:
    """The status of a container that has ended."""
    return {
        "name": "main",
        "state": {"terminated": {"exitCode": 0, "finishedAt": f"1970-01-01T{at}Z"}},
    }


def driver_exits(code: int) -> dict[str, Any]:
    """The status of a driver that has ended."""
    return {"name": "main", "state": {"terminated": {"exitCode": code}}}


def pod(
    status: dict[str, Any] | None = None, spec: dict[str, Any] | None = None, **metadata: Any
) -> PodFacts:
    meta = {"name": "j-launcher", "namespace": "n", "uid": "u", "labels": LAUNCHER, **metadata}
    return facts_pod.read(
        json.dumps({"metadata": meta, "spec": spec or {}, "status": status or {}}).encode()
    )


def launcher(**parts: Any) -> LauncherFacts:
    """A pod with the role of a launcher, as `pod`."""
    found = pod(**parts)
    assert isinstance(found, LauncherFacts)
    return found


def test_a_worker_has_no_facts_of_a_launcher() -> None:
    assert type(pod(labels={**LAUNCHER, "mpi-job-role": "worker"})) is PodFacts


def conditions(*found: dict[str, str]) -> PodFacts:
    return pod({"conditions": found})


def _devices(healths: list[str] | None) -> list[dict[str, str]] | None:
    if healths is None:
        return None
    return [{"resourceID": f"GPU-{index}", "health": one} for index, one in enumerate(healths)]


def with_devices(*devices: tuple[str, list[str] | None]) -> PodFacts:
    """A pod of two containers, the second with such resources, each with the health of its devices."""
    status = [{"name": name, "resources": _devices(healths)} for name, healths in devices]
    containers = [
        {"name": "sidecar", "allocatedResourcesStatus": None},
        {"name": "main", "allocatedResourcesStatus": status},
    ]
    return pod({"containerStatuses": containers})


def mounting(volume: Any, name: str = "mpi-job-config", **runs: Any) -> PodFacts:
    volumes = [{"name": name, "configMap": volume}]
    return pod(spec={"volumes": volumes, "containers": [{"name": "launcher", **runs}]})


@pytest.mark.parametrize(
    ("grouped", "said"),
    [
        (True, {"annotations": {"scheduling.k8s.io/group-name": "j"}}),
        (True, {"labels": {**LAUNCHER, "scheduling.x-k8s.io/pod-group": "j"}}),
        (True, {"labels": {**LAUNCHER, "pod-group.scheduling.sigs.k8s.io": "j"}}),
        (True, {"spec": {"schedulingGroup": {"podGroupName": "j"}}}),
        (False, {"annotations": {"volcano.sh/task-spec": "launcher"}}),
        (False, {}),
    ],
)
def test_a_pod_starts_with_others_by_the_marks_that_schedulers_know(
    grouped: bool, said: dict[str, Any]
) -> None:
    meta = {"name": "j-launcher", "labels": LAUNCHER, **said}
    raw = json.dumps({"metadata": meta, "spec": said.get("spec", {})}).encode()
    assert READ.pod(raw).grouped is grouped


def with_hook(**hook: Any) -> list[dict[str, Any]]:
    return [{"name": "a"}, {"name": "b", "lifecycle": hook}]


def probed(probe: str, *, by: str = "exec") -> list[dict[str, Any]]:
    return [{"name": "m", probe: {"exec": None, by: {"command": ["true"]}}}]


def listed(key: str, path: str, **more: Any) -> dict[str, Any]:
    return {"items": [{"key": key, "path": path}], **more}


RUNS: dict[str, Any] = {"state": {"running": {}}}
PROXY = {"name": "proxy", "state": {"running": {"startedAt": "1970-01-01T01:00:00Z"}}}
STARTED = {"name": "main", "state": {"running": {"startedAt": "1970-01-01T00:03:20Z"}}}
BESIDE = {"containers": [{"name": "proxy"}, DRIVER]}
WORKER = {**LAUNCHER, "mpi-job-role": "worker"}
LIST = listed("discover_hosts.sh", "discover_hosts.sh")
BOTH = {"items": [*LIST["items"], *listed("elastic.sh", "elastic.sh")["items"]]}
PLACED = {
    "type": "PodScheduled",
    "status": "True",
    "lastTransitionTime": "1970-01-01T00:00:04Z",
}
READY = {"type": "Ready", "status": "True", "lastTransitionTime": "1970-01-01T00:00:09Z"}
KILLED = {"name": "main", "state": {"terminated": {"exitCode": 137, "reason": "Error"}}}
NO_GPU = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/3 nodes",
}
OVER = {"type": "DisruptionTarget", "status": "False", "reason": "Over"}
EVICTED = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
BY_KUEUE = {
    "type": "TerminationTarget",
    "status": "True",
    "reason": "WorkloadEvictedDueToPreempted",
}
UNREACHABLE = {
    "key": "node.kubernetes.io/unreachable",
    "operator": "Exists",
    "tolerationSeconds": 300,
}
TRIES: list[tuple[dict[str, Any], bool]] = [
    ({}, False),
    ({"command": None, "args": None, "env": None}, False),
    ({"command": ["mpirun", "x"], "env": [{"name": "A", "value": "b"}]}, False),
    ({"command": ["sh", "-c"], "args": ["horovodrun --host-discovery-script /x"]}, True),
    (
        {
            "command": ["/train.sh"],
            "env": [{"name": "HOSTS", "value": "/etc/mpi/discover_hosts.sh"}],
        },
        True,
    ),
]


@pytest.mark.parametrize(
    ("facts", "known"),
    [
        # How far a launcher is.
        (pod(), {"launcher_phase": LauncherPhase.WAITING}),
        (
            pod({"phase": "Pending", "containerStatuses": [WAITING]}),
            {"launcher_phase": LauncherPhase.WAITING},
        ),
        (
            pod({"phase": "Pending", "initContainerStatuses": [DELIVERING]}),
            {"launcher_phase": LauncherPhase.DELIVERING, "delivering_since": 100.0},
        ),
        (
            pod({"phase": "Pending", "initContainerStatuses": [{"name": "other", **RUNS}]}),
            {"launcher_phase": LauncherPhase.WAITING},
        ),
        (
            pod({"phase": "Pending", "containerStatuses": [RUNS]}),
            {"launcher_phase": LauncherPhase.STARTED},
        ),
        (
            pod(
                {
                    "phase": "Pending",
                    "containerStatuses": [{**WAITING, "lastState": {"terminated": {}}}],
                }
            ),
            {"launcher_phase": LauncherPhase.STARTED},
        ),
        (pod({"phase": "Running"}), {"launcher_phase": LauncherPhase.STARTED}),
        (pod({"phase": "Succeeded"}), {"launcher_phase": LauncherPhase.FINISHED}),
        (pod({"phase": "Failed"}), {"launcher_phase": LauncherPhase.FINISHED}),
        # The driver has ended for good, and something beside it runs on.
        *(
            (
                pod(
                    {"phase": "Running", "containerStatuses": [driver_exits(code), PROXY]},
                    {**BESIDE, "restartPolicy": policy},
                ),
                {"launcher_phase": phase, "lingering": beside},
            )
            for policy, code, phase, beside in (
                ("Never", 0, LauncherPhase.LINGERING, ("proxy",)),
                ("Never", 1, LauncherPhase.LINGERING, ("proxy",)),
                ("OnFailure", 0, LauncherPhase.LINGERING, ("proxy",)),
                ("OnFailure", 1, LauncherPhase.STARTED, ()),
                ("Always", 0, LauncherPhase.STARTED, ()),
            )
        ),
        (
            pod(
                {
                    "phase": "Running",
                    "containerStatuses": [driver_exits(0), {**ENDED, "name": "proxy"}],
                },
                {**BESIDE, "restartPolicy": "Never"},
            ),
            {"launcher_phase": LauncherPhase.STARTED, "lingering": ()},
        ),
        # When its driver started.
        (pod({"containerStatuses": [PROXY, STARTED]}, BESIDE), {"started_at": 200.0}),
        (pod({"containerStatuses": [ENDED, PROXY]}, BESIDE), {"started_at": None}),
        # Whether it was created to read the host list; any other mount says nothing of the driver.
        (pod(spec={"volumes": []}), {"mounts_discovery": False}),
        (mounting(listed("hostfile", "hostfile")), {"mounts_discovery": False}),
        (mounting(listed("discover_hosts.sh", "x")), {"mounts_discovery": False}),
        (mounting(LIST, "other"), {"mounts_discovery": False}),
        (mounting(LIST), {"mounts_discovery": True, "mounts_elastic": False}),
        (mounting(BOTH), {"mounts_discovery": True, "mounts_elastic": True}),
        (mounting(BOTH, "other"), {"mounts_discovery": False, "mounts_elastic": False}),
        (mounting(listed("elastic.sh", "x")), {"mounts_elastic": False}),
        *(
            (mounting(volume, **runs), {"mounts_discovery": reads})
            for volume in ({}, {**LIST, "optional": True})
            for runs, reads in TRIES
        ),
        # How and where it ended, and whether for want of memory.
        (
            pod(
                {"phase": "Failed", "reason": "Evicted", "containerStatuses": [ENDED]},
                {"nodeName": "gpu-1"},
            ),
            {
                "last_state": "Failed; Evicted; main exited with 137 (OOMKilled) on node gpu-1",
                "out_of_memory": True,
                "node": "gpu-1",
            },
        ),
        (pod({"phase": "Failed", "containerStatuses": [KILLED]}), {"out_of_memory": False}),
        (
            pod({"phase": "Pending"}),
            {"last_state": "", "node": "", "tolerations": (), "ends_at": None},
        ),
        # Since when it is ready, why it is not scheduled, and whether it is about to go.
        (conditions(READY), {"ready_at": 9.0}),
        (conditions({**READY, "status": "False"}), {"ready_at": None, "unready_at": 9.0}),
        (conditions(READY, PLACED), {"ready_at": 9.0, "unready_at": 0.0}),
        (conditions(PLACED), {"ready_at": None, "unready_at": 4.0}),
        (conditions(PLACED, {**READY, "status": "Unknown"}), {"unready_at": 9.0}),
        (conditions(NO_GPU), {"unready_at": 0.0}),
        (conditions({"type": "Ready", "status": "False"}), {"unready_at": 0.0}),
        (conditions(), {"unready_at": 0.0, "ready_at": None, "obstacle": "", "disruption": ""}),
        (conditions(NO_GPU), {"obstacle": "Unschedulable: 0/3 nodes", "disruption": ""}),
        (
            conditions(EVICTED),
            {"obstacle": "", "disruption": "condition DisruptionTarget (EvictionByEvictionAPI)"},
        ),
        (conditions(OVER), {"disruption": ""}),
        (
            conditions(OVER, BY_KUEUE),
            {"disruption": "condition TerminationTarget (WorkloadEvictedDueToPreempted)"},
        ),
        (
            pod(spec={"tolerations": [UNREACHABLE, {"operator": "Exists"}]}),
            {"tolerations": (Toleration(operator="Exists"),)},
        ),
        # A device of its own that is broken; Unknown says nothing.
        (pod(), {"unhealthy": ""}),
        (with_devices(), {"unhealthy": ""}),
        (with_devices(("nvidia.com/gpu", None)), {"unhealthy": ""}),
        (with_devices(("nvidia.com/gpu", ["Healthy", "Unknown", ""])), {"unhealthy": ""}),
        (
            with_devices(("nvidia.com/gpu", ["Healthy", "Unhealthy"])),
            {"unhealthy": "nvidia.com/gpu", "disruption": ""},
        ),
        (
            with_devices(("rdma/hca", ["Healthy"]), ("claim:gpus", ["Unhealthy"])),
            {"unhealthy": "claim:gpus"},
        ),
        (with_devices(("", ["Unhealthy"])), {"unhealthy": "a device"}),
        (with_devices(("x" * 5000, ["Unhealthy"])), {"unhealthy": "x" * 100}),
        # What keeps a look from telling processes apart.
        (pod(), {"shares_processes": False}),
        (pod(spec={"shareProcessNamespace": True}), {"shares_processes": True}),
        (pod(spec={"hostPID": True}), {"shares_processes": True}),
        # When it has no more time to end; only a finalizer holds a pod without a grace period.
        (
            pod(deletionTimestamp="1970-01-01T00:01:40Z", deletionGracePeriodSeconds=30),
            {"ends_at": 100.0, "forced": False},
        ),
        (pod(deletionGracePeriodSeconds=None), {"forced": False}),
        (pod(deletionGracePeriodSeconds=0), {"forced": True}),
        # A preStop hook in any container.
        (pod(), {"pre_stop": False}),
        (
            pod(spec={"containers": with_hook(postStart={"sleep": {"seconds": 1}})}),
            {"pre_stop": False},
        ),
        (
            pod(spec={"containers": with_hook(preStop={"exec": {"command": ["x"]}})}),
            {"pre_stop": True},
        ),
        (pod(spec={"containers": with_hook(preStop={})}), {"pre_stop": True}),
        (
            pod(spec={"initContainers": with_hook(preStop={"sleep": {"seconds": 1}})}),
            {"pre_stop": True},
        ),
        # What a look could take for a rank: commands that a kubelet runs again and again.
        (pod(), {"probed_containers": ()}),
        (pod(spec={"containers": probed("livenessProbe")}), {"probed_containers": ("m",)}),
        (pod(spec={"containers": probed("readinessProbe")}), {"probed_containers": ("m",)}),
        (pod(spec={"containers": probed("startupProbe")}), {"probed_containers": ()}),
        (
            pod(spec={"containers": probed("livenessProbe", by="httpGet")}),
            {"probed_containers": ()},
        ),
    ],
    ids=lambda found: ", ".join(found) if isinstance(found, dict) else "",
)
def test_what_is_known_of_a_pod(facts: PodFacts, known: dict[str, Any]) -> None:
    assert {name: getattr(facts, name) for name in known} == known


SHARED = ("role", "phase", "node", "last_state")


def test_pods_of_a_job_share_their_texts() -> None:
    """A cache of 100,000 pods holds each text once."""
    owner = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MPIJob",
        "name": "j",
        "uid": "job",
        "controller": True,
    }
    spec = {"nodeName": "node-1", "containers": [{"name": "main"}]}
    first, second = (
        pod(status={"phase": "Running"}, spec=spec, name=f"j-{i}", ownerReferences=[owner])
        for i in "01"
    )
    texts = attrgetter(
        "metadata.namespace", "metadata.job", "metadata.job_uid", "metadata.api_version", *SHARED
    )
    for of_first, of_second in zip(texts(first), texts(second), strict=True):
        assert of_first
        assert of_first is of_second
    assert first.containers[0] is second.containers[0]


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
        (
            [
                {
                    "name": "main",
                    "state": {"terminated": {"exitCode": 0}},
                    "lastState": CRASHED,
                    "restartCount": 2,
                }
            ],
            0,
        ),
        ([{"name": "sidecar", "state": CRASHED, "restartCount": 9}], 0),
    ],
)
@pytest.mark.parametrize(
    "containers",
    [
        [{"name": "main"}, {"name": "sidecar"}],
        [{"name": "sidecar"}, DRIVER],
        [
            {
                "name": "sidecar",
                "volumeMounts": [{"name": "x", "mountPath": "/etc/mpi-job-config"}],
            },
            DRIVER,
        ],
    ],
)
def test_how_often_a_launcher_has_failed(
    statuses: list[dict[str, Any]], containers: list[dict[str, Any]], failures: int
) -> None:
    spec = {"containers": containers, "activeDeadlineSeconds": 60}
    found = launcher(status={"containerStatuses": statuses}, spec=spec)
    assert (found.failures, found.deadline) == (failures, 60)


@pytest.mark.parametrize(
    ("status", "at"),
    [
        ({"phase": "Running"}, None),
        (
            {
                "phase": "Succeeded",
                "containerStatuses": [finished("00:05:00"), finished("00:02:00")],
            },
            300.0,
        ),
        ({"phase": "Failed", "containerStatuses": [finished("00:05:00")]}, 300.0),
        # The operator makes another.
        (
            {"phase": "Failed", "reason": "Evicted", "containerStatuses": [finished("00:05:00")]},
            None,
        ),
        # It was refused by its node, or nobody knows of its container.
        (
            {
                "phase": "Failed",
                "conditions": [{"type": "Ready", "lastTransitionTime": "1970-01-01T00:03:00Z"}],
            },
            180.0,
        ),
        ({"phase": "Failed", "containerStatuses": [ENDED]}, 60.0),
    ],
)
def test_when_a_launcher_ended(status: dict[str, Any], at: float | None) -> None:
    created: dict[str, Any] = {"creationTimestamp": "1970-01-01T00:01:00Z"}
    assert launcher(status=status, **created).ended_at == at
