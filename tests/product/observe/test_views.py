"""The view of a job, from objects that the operator made."""

import json
from typing import Any

import pytest

from mpijob_elastic import names
from mpijob_elastic.model.bounds import MOST_CONTAINERS
from mpijob_elastic.model.memory import Left, Memory, pod_fingerprint, pod_key, render_memory
from mpijob_elastic.model.pod import LauncherPhase, Probe
from tests.counted import calls
from tests.product.observe.operator_worlds import created, look, pods_of


def test_a_job_of_the_operator_is_seen_whole() -> None:
    with calls() as counted:
        view = look(created())
    assert counted["container"] == 1, "kubexec.sh is read once for all workers"
    assert (view.namespace, view.name, view.replicas, view.facts.slots) == (
        "default",
        "scale",
        2,
        1,
    )
    assert (view.facts.elastic, view.blind, view.elastic) == (
        True,
        True,
        True,
    )  # no webhook was asked
    assert not view.foreign
    assert view.facts.clean_pod_policy == "Running"
    assert [worker.name for worker in view.workers] == ["scale-worker-0", "scale-worker-1"]
    assert all(worker.ready and worker.containers == ("worker",) for worker in view.workers)
    assert view.workers[0].facts.ready_at is not None
    assert view.workers[0].facts.ready_at - view.workers[0].facts.created_at == 5.0
    assert view.role is not None
    assert view.role.exec_rule == 1
    assert view.role.exec_names == ("scale-worker-0", "scale-worker-1")
    assert view.config is not None
    assert view.config.facts.script is None
    assert view.config.facts.hostfile == "scale-worker-0 slots=1\nscale-worker-1 slots=1\n"
    assert view.launcher is not None
    assert view.launcher.phase is LauncherPhase.STARTED
    assert not view.launcher.facts.mounts_discovery
    view = look(created("main-container"), "side")
    assert [(worker.name, worker.containers) for worker in view.workers] == [
        ("side-worker-0", ("worker",))
    ]


@pytest.mark.parametrize(
    ("phase", "condition", "ends"),
    [
        ("Succeeded", None, True),
        ("Failed", None, True),
        # The operator makes the launcher again, as the job goes on after an eviction.
        ("Failed", "MPIJobEvicted", False),
        ("Succeeded", "MPIJobEvicted", True),
        ("Running", None, False),
    ],
)
def test_whether_the_end_of_a_launcher_ends_its_job(
    phase: str, condition: str | None, *, ends: bool
) -> None:
    world = created()
    world["Pod/scale-launcher"]["status"]["phase"] = phase
    failed = [{"type": "Failed", "status": "True", "reason": condition}] if condition else []
    world["MPIJob/scale"]["status"] = {"conditions": failed}
    view = look(world)
    assert not view.facts.finished
    assert (view.over_at is not None) is ends


def test_a_job_whose_launcher_runs_has_not_finished_whatever_its_status_says() -> None:
    """Anybody with the right to edit may write a status; that must not free the quota with which the job trains."""
    world = created()
    world["MPIJob/scale"]["status"] = {"conditions": [{"type": "Succeeded", "status": "True"}]}
    assert not look(world).facts.finished
    world["Pod/scale-launcher"]["status"]["phase"] = "Succeeded"
    assert look(world).facts.finished


def test_a_job_whose_launcher_may_start_has_not_finished_whatever_its_status_says() -> None:
    """Quota that is wanted back from it could never be given back: a finished job does not stop."""
    world = created()
    world["MPIJob/scale"]["status"] = {"conditions": [{"type": "Succeeded", "status": "True"}]}
    world["Pod/scale-launcher"]["status"] = {"phase": "Pending"}
    assert not look(world).facts.finished
    world["Pod/scale-launcher"]["spec"]["schedulingGates"] = [{"name": names.GATE_QUEUED}]
    assert look(world).facts.finished


def test_a_pod_with_the_operators_labels_but_another_owner_is_not_seen() -> None:
    world = created()
    stranger = json.loads(json.dumps(world["Pod/scale-worker-1"]))
    stranger["metadata"].update(name="scale-worker-7", uid="x", ownerReferences=[])
    earlier = json.loads(json.dumps(stranger))
    earlier["metadata"].update(
        name="scale-worker-8",
        ownerReferences=world["Pod/scale-worker-1"]["metadata"]["ownerReferences"],
    )
    earlier["metadata"]["ownerReferences"][0]["uid"] = "uid of a deleted job of this name"
    world |= {"Pod/scale-worker-7": stranger, "Pod/scale-worker-8": earlier}
    assert [worker.name for worker in look(world).workers] == ["scale-worker-0"]


def test_objects_of_a_newer_operator_are_foreign() -> None:
    world = created()
    world["Pod/scale-worker-1"]["metadata"]["labels"]["replica-index"] = "1"
    assert "newer than v0.2.3" in look(world).foreign
    world = created()
    world["ConfigMap/scale-config"]["metadata"]["ownerReferences"][0]["apiVersion"] = (
        "kubeflow.org/v2beta1"
    )
    assert "v2beta1" in look(world).foreign


def test_what_exec_has_shown_belongs_to_one_pod_and_one_leave_of_its_name() -> None:
    world = created()
    left = Left(pod=pod_fingerprint("uid of Pod/scale-worker-1"), at=100.0)
    former = Left(pod=pod_fingerprint("older"), at=90.0)
    text = render_memory(Memory(left={"scale-worker-1": left, "scale-worker-0": former}))
    world["ConfigMap/scale-config"]["metadata"]["annotations"] = {"mpijob-elastic/memory": text}
    world["ConfigMap/scale-config"]["data"]["discover_hosts.sh"] = "#!/bin/sh\n"
    asked: list[tuple[str, str]] = []

    older = pod_key("scale-worker-0", former.pod)
    there = [
        pod_key(name, pod_fingerprint(f"uid of Pod/{name}"))
        for name in ("scale-worker-0", "scale-worker-1")
    ]

    def probes(pod: str, occasion: str) -> Probe:
        asked.append((pod, occasion))
        return Probe(busy_seen=pod == there[1], idle_at=7.0 if pod == older else None)

    view = look(world, probes=probes)
    # A recreated pod may be taken for the pod that left, so it is asked about too, by its own uid.
    assert set(asked) == {
        (older, "left at 90.0"),
        (there[0], "left at 90.0"),
        (there[1], "left at 100.0"),
    }
    assert [worker.probe.busy_seen for worker in view.workers] == [False, True]
    assert view.former == {"scale-worker-0": Probe(idle_at=7.0)}


def test_what_exec_has_shown_of_a_host_belongs_to_its_name() -> None:
    world = created()
    world["ConfigMap/scale-config"]["metadata"]["annotations"] = {"mpijob-elastic/memory": "{}"}
    script = "#!/bin/sh\necho scale-worker-0:1\necho scale-worker-1.r2:1\n"
    world["ConfigMap/scale-config"]["data"]["discover_hosts.sh"] = script
    asked: list[str] = []

    def probes(_uid: str, occasion: str) -> Probe:
        asked.append(occasion)
        return Probe()

    view = look(world, probes=probes)
    assert asked == ["scale-worker-0", "scale-worker-1.r2"]
    assert view.host_of == {
        "scale-worker-0": "scale-worker-0",
        "scale-worker-1": "scale-worker-1.r2",
    }
    assert view.published_pods == ("scale-worker-0", "scale-worker-1")


MOUNT = [{"name": "mpi-job-config", "mountPath": "/etc/mpi"}]
DEFAULT = "kubectl.kubernetes.io/default-container"


def container(name: str, *, mounts: bool = False) -> dict[str, Any]:
    return {"name": name, "volumeMounts": MOUNT if mounts else []}


@pytest.mark.parametrize(
    ("named", "default", "main", "containers"),
    [
        (None, None, "", ("worker",)),
        (None, None, "side-car", ("worker",)),  # kubexec.sh was written before the job was edited
        ("side-car", None, "", ("side-car",)),
        ("worker", "side-car", "", ("worker",)),
        # kubectl v1.15 knows no annotation, later versions follow it.
        (None, "worker", "", ("worker",)),
        (None, "side-car", "", ("worker", "side-car")),
        (None, "stranger", "", ("worker",)),
        # kubexec.sh names it and fails, or cannot be read.
        ("stranger", None, "", ("worker",)),
        ("$MAIN", None, "", ("worker",)),
        ("$MAIN", None, "side-car", ("worker", "side-car")),
        ("$MAIN", "side-car", "", ("worker", "side-car")),
    ],
)
def test_a_look_goes_where_kubexec_may_go(
    named: str | None, default: str | None, main: str, containers: tuple[str, ...]
) -> None:
    world = created()
    pod = world["Pod/scale-worker-0"]
    pod["spec"]["containers"] = [
        container("worker", mounts=True),
        container("side-car"),
        container("log"),
    ]
    pod["metadata"]["annotations"] = {DEFAULT: default} if default else {}
    world["MPIJob/scale"]["spec"]["mainContainer"] = main
    data = world["ConfigMap/scale-config"]["data"]
    if named:
        data["kubexec.sh"] = data["kubexec.sh"].replace(
            "${POD_NAME}", f"${{POD_NAME}} --container {named}"
        )
    assert look(world).workers[0].containers == containers


@pytest.mark.parametrize(
    ("default", "script", "containers"),
    [
        # As Istio says; the proxy has no mount, so kubectl v1.15 can start no rank there.
        ("worker", None, ("worker",)),
        ("", None, ("proxy",)),  # where every kubectl goes
        ("", "exec my-own-tool", ("worker",)),
        ("worker", "exec my-own-tool", ("worker",)),
        ("worker", "# " * 4096, ("worker",)),
        ("proxy", "exec my-own-tool", ("proxy", "worker")),
    ],
)
def test_a_container_that_was_put_first_is_not_taken_for_the_ranks(
    default: str, script: str | None, containers: tuple[str, ...]
) -> None:
    world = created()
    for pod in pods_of(world):
        main = pod["spec"]["containers"][0]
        assert MOUNT[0] in main["volumeMounts"], "the operator's own pod"
        pod["spec"]["containers"] = [container("proxy"), main]
        pod["metadata"]["annotations"] = {DEFAULT: default} if default else {}
    if script:
        world["ConfigMap/scale-config"]["data"]["kubexec.sh"] = script
    view = look(world)
    assert view.workers[0].containers == containers
    assert view.launcher is not None
    assert view.launcher.container == "launcher"


def test_of_too_many_containers_exec_cannot_tell() -> None:
    world = created()
    several = [container(f"c{index}", mounts=True) for index in range(MOST_CONTAINERS + 1)]
    world["Pod/scale-worker-0"]["spec"]["containers"] = several
    world["Pod/scale-worker-1"]["spec"]["containers"] = several[1:]
    world["ConfigMap/scale-config"]["data"]["kubexec.sh"] = "exec my-own-tool"
    assert [worker.opaque for worker in look(world).workers] == [True, False]
    world["Pod/scale-worker-1"]["spec"]["shareProcessNamespace"] = True
    assert [worker.opaque for worker in look(world).workers] == [True, True]


def test_a_size_that_is_missing_is_not_known_and_covers_the_workers_that_are_there() -> None:
    world = created()
    del world["MPIJob/scale"]["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"]
    view = look(world)
    assert (view.facts.size_known, view.replicas, view.surplus) == (False, 2, ())
