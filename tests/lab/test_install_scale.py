"""`kubectl scale` right after `mpijob-elastic install`, and no trace of it after `uninstall`."""

import asyncio
import json
import os
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lab.cluster import Cluster
from mpijob_elastic import names
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.command_line import IMAGE, CommandLine
from tests.lab.upgrades import CRD, define, interrupted
from tests.lab.waiting import until
from tests.product.upgrade.definitions import definition
from upgrade import crd, record, scale

pytestmark = [pytest.mark.lab, pytest.mark.thorough]
COMMAND = "mpijob-elastic upgrade scale"
# Everything that `install` makes, but no right to change definitions.
INSTALLERS_GROUPS = (
    "",
    "admissionregistration.k8s.io",
    "apps",
    "autoscaling",
    "coordination.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "kubeflow.org",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "scheduling.k8s.io",
)


@pytest.fixture(scope="module")
def lab() -> Iterator[CommandLine]:
    with Cluster.start(name=f"pytest-{os.getpid()}-install-scale") as cluster:
        cluster.kubectl("create", "namespace", "jobs")
        yield CommandLine(cluster)


@pytest.fixture
def administrators(lab: CommandLine) -> CommandLine:
    """A cluster whose definition an administrator wrote; nothing of ours is there."""
    return fresh(lab, "administrator")


def fresh(lab: CommandLine, name: str) -> CommandLine:
    code, output = lab.run("uninstall", "--yes", "--no-scale")
    assert code == 0, output
    define(lab.cluster, name)
    return lab


def spec(lab: CommandLine) -> dict[str, Any]:
    found: dict[str, Any] = lab.get(CRD)["spec"]
    return found


def is_scalable(lab: CommandLine) -> bool:
    return crd.is_scalable(lab.get(CRD))


def create_job(lab: CommandLine) -> None:
    specs = {"Launcher": {"replicas": 1, "template": {}}, "Worker": {"replicas": 2}}
    job = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MPIJob",
        "metadata": {"name": "train", "namespace": "jobs"},
        "spec": {"mpiReplicaSpecs": specs},
    }
    lab.cluster.kubectl("create", "-f", "-", stdin=json.dumps(job))


def uninstall(lab: CommandLine) -> str:
    code, output = lab.run("uninstall", "--yes")
    assert code == 0, output
    return output


@pytest.mark.parametrize("name", ["v0.2.3", "administrator"])
def test_there_and_back(lab: CommandLine, name: str) -> None:
    fresh(lab, name)
    create_job(lab)
    before = lab.world()
    output = lab.install()
    assert f"configured  CustomResourceDefinition {crd.NAME}" in output
    lab.cluster.kubectl("scale", "-n", "jobs", "mpijob/train", "--replicas=3")
    assert lab.cluster.kubectl("get", "-n", "jobs", "mpijob/train", "-o", "jsonpath={..Worker.replicas}") == "3"
    lab.cluster.kubectl("scale", "-n", "jobs", "mpijob/train", "--replicas=2")
    uninstall(lab)
    assert lab.world() == before


def test_a_second_time_nothing_changes(administrators: CommandLine) -> None:
    administrators.install()
    before = administrators.world()
    assert f"unchanged   CustomResourceDefinition {crd.NAME}" in administrators.install()
    assert administrators.world() == before


def test_a_dry_run_shows_the_change_and_writes_nothing(administrators: CommandLine) -> None:
    before = administrators.world()
    assert re.search(r"\+ +specReplicasPath: \.spec\.mpiReplicaSpecs", administrators.install("--dry-run"))
    assert administrators.world() == before
    administrators.install()
    before = administrators.world()
    code, output = administrators.run("uninstall", "--dry-run")
    assert code == 0, output
    assert re.search(r"- +specReplicasPath: \.spec\.mpiReplicaSpecs", output)
    assert administrators.world() == before


def test_what_was_left_out_is_added_by_the_command_that_is_named(administrators: CommandLine) -> None:
    before = spec(administrators)
    assert administrators.install("--no-scale").rstrip().endswith(COMMAND)
    assert spec(administrators) == before
    assert administrators.run("upgrade", "scale", "--dry-run")[0] == 0
    assert spec(administrators) == before
    code, output = administrators.run("upgrade", "scale")
    assert (code, is_scalable(administrators)) == (0, True), output
    assert COMMAND not in administrators.install("--no-scale")
    code, output = administrators.run("upgrade", "scale", "--remove")
    assert (code, spec(administrators)) == (0, before), output
    code, output = administrators.run("upgrade", "scale", "--remove")
    assert (code, "no record" in output) == (1, True), output


def test_without_an_installation_there_is_no_place_for_the_record(administrators: CommandLine) -> None:
    before = administrators.world()
    code, output = administrators.run("upgrade", "scale")
    assert (code, "mpijob-elastic install" in output) == (1, True), output
    assert administrators.world() == before


def test_an_account_without_rights_on_definitions_installs_the_rest(administrators: CommandLine) -> None:
    before = spec(administrators)
    kubeconfig = installers(administrators)
    code, output = administrators.run("install", "--no-wait", f"--image={IMAGE}", kubeconfig=kubeconfig)
    assert code == 0, output
    assert "your account may not patch CustomResourceDefinition" in output
    assert output.rstrip().endswith(COMMAND)
    assert spec(administrators) == before
    administrators.install()
    code, output = administrators.run("uninstall", "--yes", kubeconfig=kubeconfig)
    assert (code, "may not patch CustomResourceDefinition" in output, "--no-scale" in output) == (1, True, True)
    uninstall(administrators)
    assert spec(administrators) == before


def test_a_definition_of_an_elastic_operator_is_left_alone(lab: CommandLine) -> None:
    fresh(lab, "v0.3.0")
    before = spec(lab)
    output = lab.install()
    assert "stores its objects as v2beta1" in output
    assert spec(lab) == before


def test_whoever_applies_the_definition_again_is_named(administrators: CommandLine) -> None:
    apply_as(administrators, "argocd-controller", definition("administrator"))
    assert "argocd-controller" in administrators.install()
    apply_as(administrators, "argocd-controller", definition("administrator"))
    assert not is_scalable(administrators)
    administrators.install()
    assert is_scalable(administrators)
    uninstall(administrators)
    assert not is_scalable(administrators)


def test_a_manifest_that_has_the_subresource_since_keeps_it(administrators: CommandLine) -> None:
    administrators.install()
    apply_as(administrators, "argocd-controller", crd.upgraded(definition("administrator")))
    uninstall(administrators)
    assert is_scalable(administrators)


def test_an_upgrade_on_top_is_rolled_back_to_the_installation(administrators: CommandLine) -> None:
    before = spec(administrators)
    administrators.install()
    installed = administrators.world()
    for command in (("apply", "--no-wait", "--no-canary", f"--image={IMAGE}"), ("rollback",)):
        code, output = administrators.run("upgrade", *command, "--yes")
        assert code == 0, output
    assert administrators.world() == installed
    uninstall(administrators)
    assert spec(administrators) == before


def test_what_an_upgrade_added_is_taken_back_by_its_rollback(administrators: CommandLine) -> None:
    before = administrators.world()
    code, output = administrators.run("upgrade", "apply", "--yes", "--no-wait", "--no-canary", f"--image={IMAGE}")
    assert code == 0, output
    administrators.install()
    code, output = administrators.run("upgrade", "scale", "--remove")
    assert (code, "mpijob-elastic upgrade rollback" in output) == (1, True), output
    code, output = administrators.run("upgrade", "rollback", "--yes")
    assert code == 0, output
    assert administrators.world() == before


def test_a_definition_that_is_gone_keeps_nobody_from_uninstalling(administrators: CommandLine) -> None:
    administrators.install()
    administrators.cluster.kubectl("delete", CRD)
    uninstall(administrators)
    assert "Nothing is installed." in uninstall(administrators)


def test_can_be_killed_after_every_write_and_run_again(administrators: CommandLine) -> None:
    before = spec(administrators)
    administrators.install("--no-scale")
    for run in (partial(scale.offer, seconds=240), scale.take_back):

        async def once(client: ApiWriter, run: Any = run) -> None:
            await run(client, dry_run=False, say=lambda _: None)

        for at in range(1, 20):
            if asyncio.run(interrupted(administrators.cluster, once, at=at)):
                break
        assert is_scalable(administrators) == (run is not scale.take_back)
    assert spec(administrators) == before
    secrets = administrators.cluster.kubectl("get", "-n", names.NAMESPACE, "secrets", "-o", "name")
    assert record.DEFINITION not in secrets


def apply_as(lab: CommandLine, manager: str, wanted: dict[str, Any]) -> None:
    body = {key: value for key, value in wanted.items() if key != "status"}
    command = ("apply", "--server-side", "--force-conflicts", f"--field-manager={manager}", "-f", "-")
    lab.cluster.kubectl(*command, stdin=json.dumps(body))


def installers(lab: CommandLine) -> Path:
    everything = {"apiGroups": [*INSTALLERS_GROUPS], "resources": ["*"], "verbs": ["*"]}
    others = [
        {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": ["get"]},
        {"apiGroups": ["scheduling.volcano.sh", "scheduling.sigs.k8s.io"], "resources": ["*"], "verbs": ["*"]},
    ]
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "installers"},
        "rules": [everything, *others],
    }
    lab.cluster.kubectl("apply", "-f", "-", stdin=json.dumps(role))
    binding = ("clusterrolebinding", "installers", "--clusterrole=installers", "--serviceaccount=jobs:default")
    lab.cluster.kubectl("create", *binding)
    until(lambda: "default" in lab.cluster.kubectl("get", "-n", "jobs", "serviceaccounts", "-o", "name"))
    return lab.cluster.service_account_kubeconfig("jobs", "default")
