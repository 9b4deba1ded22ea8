"""Programs of other projects: `make test-peers` builds or installs them, and tests of what is missing are skipped."""

import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from mpijob_elastic.kube.writer import ApiWriter
from tests.peers.alert_rules import hurried
from tests.peers.built import NAMED, peer
from tests.peers.gpus import few
from tests.peers.karmada import Interpreter
from tests.peers.prometheus import Prometheus
from tests.peers.watch import Watch


@pytest.fixture
async def pool(client: ApiWriter) -> AsyncIterator[str]:
    """Two nodes with two GPUs each, by the value of their label."""
    async with few(client) as name:
        yield name


@pytest.fixture(scope="session", params=["helm", "helm-v4"])
def helm(request: pytest.FixtureRequest) -> Path:
    """Each major version that users have."""
    return peer(request.param)


@pytest.fixture(scope="session")
def cert_manager() -> Path:
    """The controllers and the CA injector (lab/binaries/cert-manager)."""
    return peer("cert-manager")


@pytest.fixture
def interpreter(tmp_path: Path) -> Interpreter:
    """The customization of the example, in karmadactl."""
    return Interpreter(program=peer("karmadactl"), directory=tmp_path)


@pytest.fixture(scope="session")
def prometheus() -> Path:
    """The program."""
    return installed_program("prometheus")


@pytest.fixture(scope="session")
def promtool() -> Path:
    """The program that comes with it."""
    return installed_program("promtool")


def installed_program(name: str) -> Path:
    """Return the path of a program of the package prometheus; skip the test if it is missing."""
    path = shutil.which(name) if NAMED is None else None
    if path is None:
        pytest.skip(f"{name} is not installed: make test-peers, or apt-get install prometheus")
    return Path(path)


@pytest.fixture
def watch(prometheus: Path, tmp_path: Path) -> Iterator[Watch]:
    """Prometheus with our alerts in a hurry; it scrapes what the test says."""
    with Prometheus.start(prometheus, tmp_path, rules=hurried()) as running:
        yield Watch(running)
