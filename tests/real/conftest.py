"""One lab with two real nodes for the whole session; where it cannot be had, the tests are skipped and say why.

With LAB_KIND it is a cluster of kind's.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.build import Say, ensure_peers, ensure_programs
from lab.cluster import Cluster
from lab.images import build, delivery, horovod, mpi, operator
from lab.images.product import image
from lab.kind import KindCluster
from lab.node import requirements
from lab.options import Options
from lab.programs import PEERS
from lab.training.job import load_image
from lab.versions import DEFAULT_KUBERNETES
from tests.real import metrics as metrics_server
from tests.real.nodes import FIRST, KIND, NAME, SECOND, schedule_on

OPTIONS = Options(nodes=0, real_nodes=2)


def _told(config: pytest.Config) -> Say:
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    return terminal.write_line if terminal else lambda _: None


def _missing() -> list[str]:
    """Why no real node of our own can be had, where one is wanted."""
    return [] if KIND else requirements.missing()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build what a real node needs before the first test: that may take longer than any test may."""
    needed = {name for item in session.items for name in getattr(item, "fixturenames", ())}
    if "real_node" not in needed or session.config.option.collectonly or _missing():
        return
    ensure_programs(DEFAULT_KUBERNETES, _told(session.config), real_node=not KIND)
    build.ensure(delivery.NAME, _told(session.config))
    if "training_image" in needed and not build.lacking(horovod.NAME):
        build.ensure(horovod.NAME, _told(session.config))
    if "mpi_image" in needed and not build.lacking(mpi.NAME):
        build.ensure(mpi.NAME, _told(session.config))
    if "metrics" in needed:
        _metrics_server(_told(session.config))
    if "deployed" in needed and not build.lacking(image.NAME):
        build.ensure(operator.NAME, _told(session.config))
        build.ensure(image.NAME, _told(session.config))


def _metrics_server(say: Say) -> Path:
    [program] = ensure_peers(
        say, [peer for peer in PEERS if peer.name == metrics_server.SERVER]
    ).values()
    return program


@pytest.fixture(scope="session")
def real_node() -> None:
    """Skips the test, with the reasons, where a real node cannot be had."""
    if reasons := _missing():
        pytest.skip("no real node here: " + " ".join(reasons))


@pytest.fixture(scope="session")
def own_node() -> None:
    """Skips the test under kind."""
    if KIND:
        pytest.skip(
            "LAB_KIND is set: this is about the namespaces and cgroups that the lab's own nodes are made of"
        )


@pytest.fixture(scope="session")
def cluster(real_node: None) -> Iterator[Cluster]:
    """A ready lab whose pods really run, with the image of the launcher's init container.

    Nothing is scheduled on the second node unless a test says so.
    """
    with (KindCluster if KIND else Cluster).start(name=NAME, options=OPTIONS) as running:
        running.load_image(build.ensure(delivery.NAME, lambda _: None))
        schedule_on(running, FIRST)
        yield running


@pytest.fixture(scope="session")
def training_image(cluster: Cluster) -> None:
    """The image of the example that trains is known on the node; skips the test where it cannot be built."""
    if packages := build.lacking(horovod.NAME):
        pytest.skip(
            f"no image to train with: apt-get install --no-install-recommends {' '.join(packages)}"
        )
    load_image(cluster, lambda _: None)


@pytest.fixture(scope="session")
def mpi_image(cluster: Cluster) -> None:
    """The image with three MPIs is known on the nodes; skips the test where it cannot be built."""
    if packages := build.lacking(mpi.NAME):
        pytest.skip(
            f"no image of MPI: apt-get install --no-install-recommends {' '.join(packages)}"
        )
    cluster.load_image(build.ensure(mpi.NAME, lambda _: None))


@pytest.fixture
def two_nodes(cluster: Cluster, own_node: None) -> Iterator[None]:
    """Afterwards both nodes are as they were, whatever was done to the second one."""
    yield
    cluster.start_node(SECOND)
    schedule_on(cluster, FIRST)


@pytest.fixture(scope="module")
def metrics(
    cluster: Cluster, own_node: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """metrics-server runs."""
    with metrics_server.serving(
        cluster, _metrics_server(lambda _: None), tmp_path_factory.mktemp("metrics")
    ):
        yield
