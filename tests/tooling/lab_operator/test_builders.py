"""Every object as it is built is in what was recorded, where the API server has only added defaults."""

from typing import Any

import pytest

from lab.operator import pods, shared
from lab.operator.pods import PodOptions
from tests.lab.recording import Recording, World, read_all
from tests.tooling.lab_operator.objects import job, part_of, recorded_job

RECORDINGS = read_all()


def _built(world: World, options: PodOptions) -> list[dict[str, Any]]:
    subject = recorded_job(world)
    return [
        shared.config_map(subject),
        shared.service_account(subject),
        shared.role(subject),
        shared.role_binding(subject),
        *([shared.pod_group(subject)] if options.gang_scheduler else []),
        *(pods.worker(subject, name=name, options=options) for name in subject.workers),
        pods.launcher(subject, options=options),
    ]


@pytest.mark.parametrize("recording", RECORDINGS, ids=str)
def test_all_objects_are_built_as_recorded(recording: Recording) -> None:
    world = recording.steps[0].after
    built = _built(world, PodOptions(gang_scheduler=recording.gang_scheduling or ""))
    keys = [f"{item['kind']}/{item['metadata']['name']}" for item in built]
    assert sorted([*keys, f"MPIJob/{recording.job}", "Events"]) == sorted(world)
    for key, item in zip(keys, built, strict=True):
        assert part_of(world[key], item), key


def test_a_template_keeps_its_own_environment_mounts_and_volumes() -> None:
    spec = {
        "containers": [
            {"name": "main", "image": "i", "env": [{"name": "A", "value": "1"}], "volumeMounts": [{"name": "data"}]}
        ],
        "volumes": [{"name": "data"}],
        "initContainers": [{"name": "own"}],
    }
    subject = job(mpiReplicaSpecs={"Launcher": {"template": {"spec": spec}}}).with_defaults()
    built = pods.launcher(subject, options=PodOptions())["spec"]
    assert [item["name"] for item in built["containers"][0]["env"]][:2] == ["A", "OMPI_MCA_plm_rsh_agent"]
    assert built["containers"][0]["volumeMounts"][0] == {"name": "data"}
    assert [volume["name"] for volume in built["volumes"]] == ["data", "mpi-job-kubectl", "mpi-job-config"]
    assert [container["name"] for container in built["initContainers"]] == ["own", "kubectl-delivery"]


def test_a_worker_with_a_command_keeps_it() -> None:
    template = {"spec": {"containers": [{"name": "main", "image": "i", "command": ["sshd"]}]}}
    subject = job(mpiReplicaSpecs={"Worker": {"replicas": 1, "template": template}}).with_defaults()
    container = pods.worker(subject, name="j-worker-0", options=PodOptions())["spec"]["containers"][0]
    assert container["command"] == ["sshd"]
    assert "args" not in container


def test_restart_policy_exit_code_becomes_never() -> None:
    template = {"spec": {"containers": [{"name": "main", "image": "i"}], "restartPolicy": "Always"}}
    subject = job(mpiReplicaSpecs={"Launcher": {"restartPolicy": "ExitCode", "template": template}}).with_defaults()
    assert pods.launcher(subject, options=PodOptions())["spec"]["restartPolicy"] == "Never"


def test_a_job_without_workers_may_exec_into_no_pod_by_name() -> None:
    # An empty list of names would be dropped on the way; either way the rule is for all pods.
    rule = shared.role(job(mpiReplicaSpecs={}))["rules"][1]
    assert "resourceNames" not in rule


def test_a_pod_group_has_the_launchers_priority_class_or_else_the_workers() -> None:
    template = {"spec": {"containers": [], "priorityClassName": "high"}}
    subject = job(mpiReplicaSpecs={"Worker": {"replicas": 1, "template": template}})
    assert shared.pod_group(subject)["spec"] == {"minMember": 2, "priorityClassName": "high"}
