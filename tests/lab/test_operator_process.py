"""Starting and ending an operator, and running a binary instead of the stand-in."""

from pathlib import Path

import pytest

from lab.cluster import Cluster
from lab.errors import LabError
from lab.operator.process import BINARY_VARIABLE, Operator
from lab.processes import Identity

pytestmark = pytest.mark.lab


def _program(path: Path, script: str) -> str:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(BINARY_VARIABLE, raising=False)


@pytest.mark.usefixtures("stand_in")
def test_the_stand_in_says_what_it_is_and_ends_with_its_block(cluster: Cluster) -> None:
    with Operator.start(cluster, namespace="default") as operator:
        identity = Identity.of(operator.pid)
        assert "this is a stand-in for mpi-operator v0.2.3, a test double" in operator.log.read_text()
        assert not operator.real
    assert not identity.alive()


def test_a_binary_is_run_with_the_operators_own_flags(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = 'echo "flags: $*"; echo "kubeconfig: $KUBECONFIG"; echo Started workers; exec sleep 60'
    monkeypatch.setenv(BINARY_VARIABLE, _program(tmp_path / "operator", script))
    with Operator.start(cluster, namespace="default", gang_scheduling="volcano", qps=0) as operator:
        said = operator.log.read_text().splitlines()
        assert operator.real
    image = "--kubectl-delivery-image=mpioperator/kubectl-delivery:v0.2.3"
    options = "--namespace=default --gang-scheduling=volcano --lock-namespace=mpi-operator --threadiness=2"
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
