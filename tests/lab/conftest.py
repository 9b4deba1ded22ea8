"""One lab for the whole session; a namespace of its own for each test."""

import os
import secrets
from collections.abc import AsyncIterator, Iterator

import pytest

from lab.build import ensure_programs
from lab.cluster import Cluster
from lab.install import Installed, install_into
from lab.operator.process import Operator
from lab.registration import called
from lab.replicas import Controller, Webhook
from lab.versions import DEFAULT_KUBERNETES
from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.waiting import has_account, until


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that uses the lab, wherever in its chain of fixtures."""
    for item in items:
        if "cluster" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.lab)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build what the lab needs before the first test: that may take longer than any test may."""
    needed = any(item.get_closest_marker("lab") for item in session.items)
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if needed and not session.config.option.collectonly:
        ensure_programs(DEFAULT_KUBERNETES, terminal.write_line if terminal else lambda _: None)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A ready lab, which ends with the session even if this process is killed."""
    with Cluster.start(name=f"pytest-{os.getpid()}") as running:
        yield running


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """Name of a fresh namespace in which pods can be created."""
    name = f"test-{secrets.token_hex(4)}"
    cluster.kubectl("create", "namespace", name)
    has_account(cluster, name)
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def operator(cluster: Cluster, namespace: str) -> Iterator[Operator]:
    """mpi-operator v0.2.3 for the test's namespace: its controller without rate limits, or $MPI_OPERATOR_BIN."""
    with Operator.start(cluster, namespace=namespace, qps=0) as running:
        yield running


@pytest.fixture(scope="session")
def installed(cluster: Cluster) -> Installed:
    """Our objects in the lab."""
    return install_into(cluster)


@pytest.fixture(scope="module")
def webhook(cluster: Cluster, installed: Installed) -> Iterator[Webhook]:
    """A webhook with the rights of its ServiceAccount, for all namespaces."""
    with Webhook.start(cluster, installed) as running:
        until(lambda: called(cluster))
        yield running


@pytest.fixture(scope="module")
def elastic(cluster: Cluster, installed: Installed, webhook: Webhook) -> Iterator[Controller]:
    """Webhook and controller with the rights of their ServiceAccounts, for all namespaces."""
    assert webhook.ready()
    with Controller.start(cluster, installed) as running:
        yield running


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[ApiWriter]:
    """The administrator's client."""
    async with await connect(user_agent="mpijob-elastic-test", kubeconfig=cluster.kubeconfig) as connected:
        yield connected


@pytest.fixture
def other_namespace(cluster: Cluster) -> Iterator[str]:
    """A second namespace."""
    name = f"test-{secrets.token_hex(4)}"
    cluster.kubectl("create", "namespace", name)
    has_account(cluster, name)
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")
