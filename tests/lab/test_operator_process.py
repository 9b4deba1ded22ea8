"""Starting and ending an operator: the controller of a release, its own program, and a binary of the caller's."""

import urllib.request
from pathlib import Path

import pytest

from lab import ports
from lab.cluster import Cluster
from lab.errors import LabError
from lab.operator import Release
from lab.operator.process import BINARY_VARIABLE, HEALTH_PORT, Operator
from lab.processes import Identity

pytestmark = [pytest.mark.lab, pytest.mark.campaign]


def _program(path: Path, script: str) -> str:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture(autouse=True)
def no_override(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(BINARY_VARIABLE, raising=False)


@pytest.mark.parametrize("release", Release)
def test_controllers_of_one_release_run_beside_each_other(cluster: Cluster, release: Release) -> None:
    with (
        Operator.start(cluster, namespace="default", release=release) as first,
        Operator.start(cluster, namespace="kube-public", release=release, qps=0) as second,
    ):
        identities = [Identity.of(operator.pid) for operator in (first, second)]
        assert [operator.program.name for operator in (first, second)] == [f"mpi-controller-{release}"] * 2
    assert not any(identity.alive() for identity in identities)


@pytest.mark.skipif(ports.taken(HEALTH_PORT), reason="another program has the port that the operator's program needs")
def test_the_untouched_program_holds_its_lock_and_answers_about_its_health(cluster: Cluster) -> None:
    with Operator.start(cluster, namespace="default", untouched=True) as operator:
        assert operator.program.name == "mpi-operator-v0.2.3"
        with urllib.request.urlopen(f"http://127.0.0.1:{HEALTH_PORT}/healthz") as answer:
            assert answer.status == 200
        held = cluster.kubectl("get", "endpoints", "mpi-operator", "--namespace=mpi-operator", "--output=yaml")
        assert "holderIdentity" in held
        with pytest.raises(LabError, match=f"mpi-operator-v0.2.3 answers about its health on port {HEALTH_PORT}"):
            Operator.start(cluster, untouched=True).__enter__()


def test_a_binary_is_run_with_the_operators_own_flags(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = 'echo "flags: $*"; echo "kubeconfig: $KUBECONFIG"; echo Started workers; exec sleep 60'
    monkeypatch.setenv(BINARY_VARIABLE, _program(tmp_path / "operator", script))
    with Operator.start(cluster, namespace="default", gang_scheduling="volcano", qps=0) as operator:
        said = operator.log.read_text().splitlines()
    image = "--kubectl-delivery-image=mpioperator/kubectl-delivery:v0.2.3"
    options = "--namespace=default --gang-scheduling=volcano --lock-namespace=mpi-operator"
    assert said[:2] == [f"flags: {image} {options}", f"kubeconfig: {cluster.kubeconfig}"]
    assert "mpi-operator" in cluster.kubectl("get", "namespaces", "--output=name")


def test_a_binary_that_ends_is_reported_with_its_last_words(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(BINARY_VARIABLE, _program(tmp_path / "operator", "echo port 8080 is in use; exit 3"))
    with (
        pytest.raises(LabError, match=r"the operator ended with exit code 3.*\n.*port 8080 is in use"),
        Operator.start(cluster),
    ):
        pytest.fail("it cannot have started")
