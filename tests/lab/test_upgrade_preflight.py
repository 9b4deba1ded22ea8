"""`mpijob-elastic upgrade preflight` and `convert --live`, as commands, on clusters in each state."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.cluster import Cluster
from mpijob_elastic import names
from tests.lab.upgrades import CRD, define, deploy_operator, established, gone, whole
from tests.lab.versions import EVERYTHING
from tests.product.upgrade.definitions import definition

pytestmark = [pytest.mark.lab, pytest.mark.thorough]
GO, CARE, NO = 0, 3, 1
GROUP = "kai.alibabacloud.com"


class Lab:
    """The lab and the command line."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def run(self, *arguments: str, kubeconfig: Path | None = None) -> tuple[int, str, str]:
        command = [sys.executable, "-W", "error", "-m", "mpijob_elastic", "upgrade", *arguments]
        command.append(f"--kubeconfig={kubeconfig or self.cluster.kubeconfig}")
        done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        return done.returncode, done.stdout, done.stderr

    def preflight(self) -> tuple[int, dict[str, tuple[str, str]], list[dict[str, str]]]:
        """The exit code, each topic's verdict and text, and the jobs."""
        code, output, complaint = self.run("preflight", "-o", "json")
        assert complaint == ""
        report: dict[str, Any] = json.loads(output)
        assert report["verdict"] == {GO: "go", CARE: "care", NO: "no"}[code]
        return code, {one["topic"]: (one["verdict"], one["text"]) for one in report["findings"]}, report["jobs"]


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Cluster.start(name=f"pytest-{os.getpid()}-preflight") as cluster:
        define(cluster, "v0.2.3")
        yield Lab(cluster)


@contextmanager
def operator(lab: Lab, tag: str) -> Iterator[None]:
    namespace = deploy_operator(lab.cluster, f"mpioperator/mpi-operator:{tag}")
    try:
        yield
    finally:
        lab.cluster.kubectl("delete", "namespace", namespace)


def test_go(lab: Lab) -> None:
    with operator(lab, "v0.2.3"):
        before = whole(lab.cluster)
        code, found, jobs = lab.preflight()
        assert whole(lab.cluster) == before
    assert (code, jobs) == (GO if EVERYTHING else CARE, [])
    assert found["definition"][1].startswith("legacy")
    assert found["webhook"] == ("go", "not installed yet")
    assert found["rights"][0] == "go"


@pytest.mark.parametrize(("tag", "expected"), [("v0.3.0", NO), ("latest", CARE), ("v0.2.2", CARE)])
def test_operators(lab: Lab, tag: str, expected: int) -> None:
    with operator(lab, tag):
        assert lab.preflight()[0] == expected


def test_no_operator_in_sight(lab: Lab) -> None:
    code, found, _ = lab.preflight()
    assert (code, found["operator"][0]) == (CARE, "care")


def test_jobs_are_listed(lab: Lab) -> None:
    job = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MPIJob",
        "metadata": {"name": "train", "namespace": "default", "annotations": {names.ENABLED: "true"}},
        "spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 1}}},
    }
    lab.cluster.kubectl("create", "-f", "-", stdin=json.dumps(job))
    try:
        _, found, jobs = lab.preflight()
        assert found["jobs"] == ("go", "1 live")
        assert found["faults"][0] == "care"
        assert found["faults"][1].startswith(
            "default/train: spec.mpiReplicaSpecs.Launcher: is missing; describe the la"
        )
        assert [(one["namespace"], one["name"], one["readiness"]) for one in jobs] == [("default", "train", "live")]
        table = lab.run("preflight")[1]
        assert "default     train   live      its launcher has not started" in table
        assert table.rstrip().endswith("Verdict: go with care")
        assert yaml.safe_load(lab.run("preflight", "-o", "yaml")[1])["jobs"] == jobs
    finally:
        lab.cluster.kubectl("delete", "mpijob/train")


def test_other_definitions(lab: Lab) -> None:
    try:
        define(lab.cluster, "administrator")
        assert lab.preflight()[1]["definition"][1].startswith("structural (apiextensions v1), stored as v1")
        define(lab.cluster, "v0.3.0")
        code, found, _ = lab.preflight()
        assert (code, found["definition"][0]) == (NO, "no")
        gone(lab.cluster, CRD)
        code, found, _ = lab.preflight()
        assert (code, found["definition"][0]) == (NO, "no")
        assert "install mpi-operator v0.2.3" in found["definition"][1]
    finally:
        define(lab.cluster, "v0.2.3")


def test_without_rights_it_is_no_and_says_which(lab: Lab) -> None:
    nobody = lab.cluster.service_account_kubeconfig("default", "default")
    code, output, complaint = lab.run("preflight", kubeconfig=nobody)
    assert (code, complaint) == (NO, "")
    assert "your account may not" in output
    assert "unknown: this account may not list Deployments or Pods" in output


def test_an_installed_webhook_that_does_not_answer(lab: Lab) -> None:
    lab.run("apply", "--yes", "--no-wait", "--no-canary", "--image=none")
    try:
        verdict, text = lab.preflight()[1]["webhook"]
        assert verdict == "care"
        assert "did not answer" in text
    finally:
        assert lab.run("rollback", "--yes")[0] == 0


def test_live_objects_are_converted(lab: Lab) -> None:
    crd = definition("administrator")
    names_ = {"kind": "TrainingJob", "listKind": "TrainingJobList", "plural": "trainingjobs", "singular": "trainingjob"}
    version = {"name": "v1alpha1", "served": True, "storage": True}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    crd = {
        **{key: crd[key] for key in ("apiVersion", "kind")},
        "metadata": {"name": f"trainingjobs.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names_, "versions": [{**version, "schema": schema}]},
    }
    lab.cluster.kubectl("create", "-f", "-", stdin=json.dumps(crd))
    established(lab.cluster, f"crd/trainingjobs.{GROUP}")
    worker = {"replicas": 2, "minReplicas": 1, "maxReplicas": 5, "template": {}}
    job = {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {"name": "mnist", "namespace": "default"},
        "spec": {"backoffLimit": 2, "etReplicaSpecs": {"launcher": {"template": {}}, "worker": worker}},
    }
    lab.cluster.kubectl("create", "-f", "-", stdin=json.dumps(job))
    code, output, complaint = lab.run("convert", "--live", "trainingjob/mnist", "-n", "default")
    assert code == 0
    assert "spec.backoffLimit: has no counterpart" in complaint
    converted = yaml.safe_load(output)
    assert converted["metadata"]["annotations"] == {names.MIN_REPLICAS: "1", names.MAX_REPLICAS: "5"}
    # The API server takes it as it is.
    lab.cluster.kubectl("create", "--dry-run=server", "-f", "-", stdin=output)
    code, _, complaint = lab.run("convert", "--live", "trainingjob/other", "-n", "default")
    assert (code, "not found" in complaint) == (1, True)
    code, _, complaint = lab.run("convert", "--live", "pod/other")
    assert (code, "use mpijob/NAME or trainingjob/NAME" in complaint) == (1, True)
