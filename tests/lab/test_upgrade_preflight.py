"""`mpijob-elastic upgrade preflight` and `convert --live`, as commands, on clusters in each state."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import yaml

from mpijob_elastic import names
from tests.lab.command_line import INSTALL, UNINSTALL, CommandLine
from tests.lab.upgrades import deploy_operator, established
from tests.lab.versions import EVERYTHING
from tests.product.upgrade.definitions import definition

pytestmark = [pytest.mark.lab, pytest.mark.thorough]
GO, CARE, NO = 0, 3, 1
GROUP = "kai.alibabacloud.com"


@pytest.fixture(scope="module", autouse=True)
def definition_of_the_operator(lab: CommandLine) -> None:
    lab.fresh("v0.2.3")


def preflight(lab: CommandLine) -> tuple[int, dict[str, tuple[str, str]], list[dict[str, str]]]:
    """The exit code, each topic's verdict and text, and the jobs."""
    code, output, complaint = lab.streams("upgrade", "preflight", "-o", "json")
    assert complaint == ""
    report: dict[str, Any] = json.loads(output)
    assert report["verdict"] == {GO: "go", CARE: "care", NO: "no"}[code]
    return (
        code,
        {one["topic"]: (one["verdict"], one["text"]) for one in report["findings"]},
        report["jobs"],
    )


@contextmanager
def operator(lab: CommandLine, tag: str) -> Iterator[None]:
    namespace = deploy_operator(lab.cluster, f"mpioperator/mpi-operator:{tag}")
    try:
        yield
    finally:
        lab.cluster.kubectl("delete", "namespace", namespace)


def test_go(lab: CommandLine) -> None:
    with operator(lab, "v0.2.3"):
        before = lab.world()
        code, found, jobs = preflight(lab)
        assert lab.world() == before
    assert (code, jobs) == (GO if EVERYTHING else CARE, [])
    assert found["definition"][1].startswith("legacy")
    assert found["webhook"] == ("go", "not installed yet")
    assert found["rights"][0] == "go"


def test_jobs_are_listed(lab: CommandLine) -> None:
    lab.create_job(mpiReplicaSpecs={"Worker": {"replicas": 1}})
    lab.cluster.kubectl("annotate", "-n", "jobs", "mpijob/train", f"{names.ENABLED}=true")
    try:
        _, found, jobs = preflight(lab)
        assert found["jobs"] == ("go", "1 live")
        assert found["faults"][0] == "care"
        assert found["faults"][1].startswith(
            "jobs/train: spec.mpiReplicaSpecs.Launcher: is missing; describe the la"
        )
        assert [(one["namespace"], one["name"], one["readiness"]) for one in jobs] == [
            ("jobs", "train", "live")
        ]
        table = lab.run("upgrade", "preflight")[1]
        assert "jobs        train   live      its launcher has not started" in table
        assert table.rstrip().endswith("Verdict: go with care")
        assert yaml.safe_load(lab.run("upgrade", "preflight", "-o", "yaml")[1])["jobs"] == jobs
    finally:
        lab.cluster.kubectl("delete", "-n", "jobs", "mpijob/train")


def test_without_rights_it_is_no_and_says_which(lab: CommandLine) -> None:
    nobody = lab.cluster.service_account_kubeconfig("default", "default")
    output = lab.refused("upgrade", "preflight", kubeconfig=nobody)
    assert "your account may not" in output
    assert "unknown: this account may not list Deployments or Pods" in output


def test_an_installed_webhook_that_cannot_answer(lab: CommandLine) -> None:
    lab.done(*INSTALL)
    try:
        verdict, text = preflight(lab)[1]["webhook"]
        assert verdict == "care"
        assert text.startswith(
            "installed; the API server cannot trust the webhook (caBundle is empty), and"
        )
    finally:
        lab.done(*UNINSTALL)


def test_live_objects_are_converted(lab: CommandLine) -> None:
    crd = definition("administrator")
    names_ = {
        "kind": "TrainingJob",
        "listKind": "TrainingJobList",
        "plural": "trainingjobs",
        "singular": "trainingjob",
    }
    version = {"name": "v1alpha1", "served": True, "storage": True}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    crd = {
        **{key: crd[key] for key in ("apiVersion", "kind")},
        "metadata": {"name": f"trainingjobs.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": names_,
            "versions": [{**version, "schema": schema}],
        },
    }
    lab.cluster.kubectl("create", "-f", "-", stdin=json.dumps(crd))
    established(lab.cluster, f"crd/trainingjobs.{GROUP}")
    launcher = {"spec": {"containers": [{"name": "l", "image": "horovod"}]}}
    worker = {"replicas": 2, "minReplicas": 1, "maxReplicas": 5, "template": {}}
    job = {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {"name": "mnist", "namespace": "default"},
        "spec": {
            "backoffLimit": 2,
            "etReplicaSpecs": {"launcher": {"template": launcher}, "worker": worker},
        },
    }
    lab.cluster.kubectl("create", "-f", "-", stdin=json.dumps(job))
    code, output, complaint = lab.streams(
        "upgrade", "convert", "--live", "trainingjob/mnist", "-n", "default"
    )
    assert code == 0
    assert "spec.backoffLimit: had no effect" in complaint
    converted = yaml.safe_load(output)
    assert converted["metadata"]["annotations"] == {
        names.MIN_REPLICAS: "1",
        names.MAX_REPLICAS: "5",
    }
    # The API server takes it as it is.
    lab.cluster.kubectl("create", "--dry-run=server", "-f", "-", stdin=output)
    code, _, complaint = lab.streams(
        "upgrade", "convert", "--live", "trainingjob/other", "-n", "default"
    )
    assert (code, "not found" in complaint) == (1, True)
    code, _, complaint = lab.streams("upgrade", "convert", "--live", "pod/other")
    assert (code, "use mpijob/NAME or trainingjob/NAME" in complaint) == (1, True)
