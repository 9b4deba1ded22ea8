"""What `install` makes of the definition of MPIJobs, and of what others made of it, on a lab of its own."""

import json
from pathlib import Path
from typing import Any

import pytest

from mpijob_elastic import names
from tests.lab.command_line import INSTALL, UNINSTALL, CommandLine
from tests.lab.scalable import told
from tests.lab.upgrades import CRD, deploy_operator
from tests.lab.waiting import may, until
from tests.product.upgrade.definitions import definition, recorded_by_upgrade_apply
from upgrade import crd, record

pytestmark = [pytest.mark.lab, pytest.mark.thorough]
COMMAND = "mpijob-elastic upgrade scale"
SCALE = ("upgrade", "scale")
FORCED = ("--server-side", "--force-conflicts")
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


@pytest.fixture
def administrators(lab: CommandLine) -> CommandLine:
    """A cluster whose definition an administrator wrote; nothing of ours is there."""
    lab.fresh("administrator")
    return lab


@pytest.fixture
def legacy(lab: CommandLine) -> CommandLine:
    """A cluster with the definition of v0.2.3's manifest; nothing of ours is there."""
    lab.fresh("v0.2.3")
    return lab


def test_what_was_left_out_is_added_by_the_command_that_is_named(
    administrators: CommandLine,
) -> None:
    before = administrators.spec()
    assert administrators.install("--no-scale").rstrip().endswith(COMMAND)
    administrators.done(*SCALE, "--dry-run")
    assert administrators.spec() == before
    administrators.done(*SCALE)
    assert administrators.is_scalable()
    assert COMMAND not in administrators.install("--no-scale")
    administrators.done(*SCALE, "--remove")
    assert administrators.spec() == before
    assert "no record" in administrators.refused(*SCALE, "--remove")


def test_an_account_without_rights_on_definitions_installs_the_rest(
    administrators: CommandLine,
) -> None:
    before = administrators.spec()
    kubeconfig = installers(administrators)
    code, output = administrators.run(*INSTALL, kubeconfig=kubeconfig)
    assert code == 0, output
    assert "your account may not patch CustomResourceDefinition" in output
    assert output.rstrip().endswith(COMMAND)
    assert administrators.spec() == before
    administrators.install()
    said = administrators.refused(*UNINSTALL, kubeconfig=kubeconfig)
    assert "may not patch CustomResourceDefinition" in said
    assert "--no-scale" in said
    administrators.done(*UNINSTALL)
    assert administrators.spec() == before


def test_whoever_applies_the_definition_again_is_named(administrators: CommandLine) -> None:
    apply_as(administrators, "argocd-controller", definition("administrator"))
    assert "argocd-controller" in administrators.install()
    apply_as(administrators, "argocd-controller", definition("administrator"))
    assert not administrators.is_scalable()
    administrators.install()
    assert administrators.is_scalable()
    administrators.done(*UNINSTALL)
    assert not administrators.is_scalable()


def test_a_manifest_that_has_the_subresource_since_keeps_it(administrators: CommandLine) -> None:
    administrators.install()
    apply_as(administrators, "argocd-controller", crd.upgraded(definition("administrator")))
    administrators.done(*UNINSTALL)
    assert administrators.is_scalable()


def test_the_example_in_v1_takes_the_place_of_the_old_form_and_keeps_what_users_wrote(
    legacy: CommandLine,
) -> None:
    worker = {"replicas": 2, "extra": {"kept": True}}
    legacy.create_job(
        mpiReplicaSpecs={"Launcher": {"replicas": 1, "template": {}}, "Worker": worker}
    )
    legacy.cluster.kubectl("apply", *FORCED, "-f", str(Path(__file__).parents[2] / crd.IN_V1))
    assert "preserveUnknownFields" not in json.dumps(legacy.spec()).replace("x-kubernetes-", "")
    scale = ("scale", "-n", "jobs", "mpijob/train", "--replicas=0")
    # The API server serves a changed definition a moment later.
    until(lambda: "greater than or equal to 1" in told(legacy.cluster, *scale)[1])
    legacy.cluster.kubectl("annotate", "-n", "jobs", "mpijob/train", "touched=yes")
    extra = legacy.cluster.kubectl(
        "get", "-n", "jobs", "mpijob/train", "-o", "jsonpath={..Worker.extra.kept}"
    )
    assert extra == "true"
    before = legacy.spec()
    legacy.install()
    legacy.done(*UNINSTALL)
    assert legacy.spec() == before


def test_an_elastic_operator_is_left_alone(legacy: CommandLine) -> None:
    namespace = deploy_operator(legacy.cluster, "mpioperator/mpi-operator:v0.3.0")
    try:
        before = legacy.world()
        said = legacy.refused(*INSTALL, "--canary=jobs")
        assert f"Deployment {namespace}/mpi-operator" in said
        assert "0.3.0" in said
        assert "changes the size of jobs itself" in said
        assert legacy.world() == before
    finally:
        legacy.cluster.kubectl("delete", "namespace", namespace)


def test_a_definition_of_an_elastic_operator_is_left_alone(lab: CommandLine) -> None:
    lab.fresh("v0.3.0")
    before = lab.world()
    assert "v2beta1" in lab.refused(*INSTALL, "--canary=jobs")
    assert lab.world() == before
    defined = lab.spec()
    assert "stores its objects as v2beta1" in lab.install()
    assert lab.spec() == defined


def test_what_upgrade_apply_recorded_is_put_back_or_its_damage_is_told(legacy: CommandLine) -> None:
    before = legacy.spec()
    data = recorded_by_upgrade_apply(legacy.get(CRD))
    legacy.install()
    legacy.cluster.kubectl("delete", "-n", names.NAMESPACE, f"secret/{record.NAME}")
    record_of_upgrade(legacy, data | {record.KEY: ""})
    said = legacy.refused(*UNINSTALL)
    assert "Secret mpijob-elastic/mpijob-elastic-upgrade, is damaged" in said
    assert "or leave the definition of MPIJobs as it is: --no-scale" in said
    record_of_upgrade(legacy, data)
    legacy.done(*UNINSTALL, "--traces")
    assert legacy.spec() == before


def record_of_upgrade(lab: CommandLine, data: dict[str, str]) -> None:
    """Make the Secret that `upgrade apply` of version 0.2.0 made."""
    metadata = {"name": "mpijob-elastic-upgrade", "namespace": names.NAMESPACE}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}
    lab.cluster.kubectl("apply", "-f", "-", stdin=json.dumps(secret))


def apply_as(lab: CommandLine, manager: str, wanted: dict[str, Any]) -> None:
    body = {key: value for key, value in wanted.items() if key != "status"}
    command = (
        "apply",
        "--server-side",
        "--force-conflicts",
        f"--field-manager={manager}",
        "-f",
        "-",
    )
    lab.cluster.kubectl(*command, stdin=json.dumps(body))


def installers(lab: CommandLine) -> Path:
    """The kubeconfig of an account that may install, and may read definitions."""
    rules = [
        {"apiGroups": [*INSTALLERS_GROUPS], "resources": ["*"], "verbs": ["*"]},
        {
            "apiGroups": ["apiextensions.k8s.io"],
            "resources": ["customresourcedefinitions"],
            "verbs": ["get"],
        },
        {
            "apiGroups": ["scheduling.volcano.sh", "scheduling.sigs.k8s.io"],
            "resources": ["*"],
            "verbs": ["*"],
        },
    ]
    metadata = {"name": "installers"}
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": metadata,
        "rules": rules,
    }
    lab.cluster.kubectl("apply", "-f", "-", stdin=json.dumps(role))
    binding = (
        "clusterrolebinding",
        "installers",
        "--clusterrole=installers",
        "--serviceaccount=jobs:default",
    )
    lab.cluster.kubectl("create", *binding)
    may(lab.cluster, "default", "create", "secrets", namespace="jobs")
    return lab.cluster.service_account_kubeconfig("jobs", "default")
