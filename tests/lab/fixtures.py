"""One lab for the whole session with one operator, webhook and controller; a namespace of its own for each test."""

import os
import secrets
from collections.abc import AsyncIterator, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

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
from tests.lab.command_line import CommandLine
from tests.lab.hpa import Autoscaler
from tests.lab.job import Job
from tests.lab.on_demand import OnDemand
from tests.lab.scalable import scalable
from tests.lab.waiting import create_namespace, until

# Fixtures that start programs anew where they differ between two tests.
PROGRAMS = ("scale_served", "elastic", "webhook", "operator")
# Files that take longest, in seconds: they start first, so that no worker of pytest-xdist ends long
# after the others.
SECONDS = {
    "test_scenario_scaling.py": 90,
    "test_parking.py": 60,
    "test_evictions.py": 45,
    "test_upgrade_jobs.py": 40,
    "test_hpa.py": 35,
    "test_decide_safety.py": 40,
    "test_every_interleaving.py": 40,
}


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Mark tests that use the lab or belong to the campaign; order those that are selected for speed.

    Tests of the lab come first, and those that need the same programs after one another.
    """
    for item in items:
        if "cluster" in _fixtures(item):
            item.add_marker(pytest.mark.lab)
        if item.get_closest_marker("campaign"):
            item.add_marker(pytest.mark.thorough)  # so no part of `make test`
    yield
    of_file: dict[Path, set[str]] = {}
    for item in items:
        of_file.setdefault(item.path, set()).update(_programs(item))

    def turn(item: pytest.Item) -> tuple[bool, list[str], int, Path, list[str]]:
        in_lab = item.get_closest_marker("lab") is not None
        return (
            not in_lab,
            sorted(of_file[item.path]),
            -SECONDS.get(item.path.name, 0),
            item.path,
            _programs(item),
        )

    items.sort(key=turn)


def _programs(item: pytest.Item) -> list[str]:
    return [name for name in PROGRAMS if name in _fixtures(item)]


def _fixtures(item: pytest.Item) -> Sequence[str]:
    found: Sequence[str] = getattr(item, "fixturenames", ())
    return found


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build what the lab needs before the first test: that may take longer than any test may."""
    needed = any(item.get_closest_marker("lab") for item in session.items)
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if needed and not session.config.option.collectonly:
        ensure_programs(DEFAULT_KUBERNETES, terminal.write_line if terminal else lambda _: None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show with a failure what the programs said: the log ends with the lab."""
    report = yield
    programs = getattr(item, "funcargs", {}).get("programs")
    if report.failed and programs:
        report.sections += programs.ends()
    return report


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A ready lab, which ends with the session even if this process is killed."""
    with Cluster.start(name=f"pytest-{os.getpid()}") as running:
        yield running


@pytest.fixture(scope="module")
def lab() -> Iterator[CommandLine]:
    """A lab of the module's own, for tests that change what belongs to the whole cluster; with two namespaces."""
    with Cluster.start(name=f"pytest-{os.getpid()}-{secrets.token_hex(2)}") as own:
        for name in ("jobs", "others"):
            create_namespace(own, name)
        yield CommandLine(own)


@pytest.fixture(scope="session")
def programs() -> Iterator[OnDemand]:
    """Operator, webhook and controller of the session, as far as they run."""
    found = OnDemand()
    yield found
    found.keep(())


@pytest.fixture(autouse=True)
def _nothing_else_runs(request: pytest.FixtureRequest, programs: OnDemand) -> None:
    """Stop the programs that earlier tests asked for and this one does not."""
    programs.keep(request.fixturenames)


@pytest.fixture
def operator(cluster: Cluster, programs: OnDemand) -> Operator:
    """mpi-operator v0.2.3 for all namespaces: its controller without rate limits, or $MPI_OPERATOR_BIN."""
    return programs.get(
        "operator", cluster, lambda: Operator.start(cluster, qps=0, flags=["--threadiness=8"])
    )


@pytest.fixture(scope="session")
def installed(cluster: Cluster) -> Installed:
    """Our objects in the lab."""
    return install_into(cluster)


@pytest.fixture
def webhook(cluster: Cluster, installed: Installed, programs: OnDemand) -> Webhook:
    """A webhook with the rights of its ServiceAccount, for all namespaces."""

    @contextmanager
    def start() -> Iterator[Webhook]:
        with Webhook.start(cluster, installed) as running:
            until(lambda: called(cluster))
            yield running

    return programs.get("webhook", cluster, start)


@pytest.fixture
def elastic(
    cluster: Cluster, installed: Installed, webhook: Webhook, programs: OnDemand
) -> Controller:
    """Webhook and controller with the rights of their ServiceAccounts, for all namespaces."""
    assert webhook.ready()
    return programs.get("elastic", cluster, lambda: Controller.start(cluster, installed))


@pytest.fixture(scope="module")
def scale_served(cluster: Cluster, programs: OnDemand) -> Iterator[None]:
    """MPIJobs have the subresource scale, as an upgraded cluster gives it to them."""
    programs.keep(())  # they look at the definition when they start
    with scalable(cluster):
        yield
        programs.keep(())


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[ApiWriter]:
    """The administrator's client."""
    async with await connect(
        user_agent="mpijob-elastic-test", kubeconfig=cluster.kubeconfig
    ) as connected:
        yield connected


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """Name of a fresh namespace in which pods can be created."""
    name = f"test-{secrets.token_hex(4)}"
    create_namespace(cluster, name)
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def job(client: ApiWriter, namespace: str) -> Job:
    """A job that the test creates in its namespace."""
    return Job(client=client, namespace=namespace)


@pytest.fixture
def hpa(cluster: Cluster, client: ApiWriter, job: Job) -> Autoscaler:
    """An HPA that the test creates for its job."""
    return Autoscaler(cluster=cluster, client=client, job=job)
