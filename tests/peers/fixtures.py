"""Kueue and gang schedulers beside a lab: with simulated pods in tests/peers, with real ones in tests/real."""

from collections.abc import Iterator
from contextlib import AbstractContextManager

import pytest

from lab.cluster import Cluster
from lab.kueue import RELEASE
from lab.modules import PINNED
from tests.lab.on_demand import OnDemand
from tests.peers import coscheduling, koordinator
from tests.peers import volcano as volcano_scheduler
from tests.peers.built import peer
from tests.peers.kueue import Kueue
from tests.peers.queues import flavor_and_class, queue_of_four


@pytest.fixture(scope="session")
def kueue() -> Kueue:
    """The program."""
    return Kueue(program=peer("kueue"))


@pytest.fixture(scope="module")
def kueue_serves(
    cluster: Cluster, kueue: Kueue, programs: OnDemand, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Kueue, with the flavor of the example and a class of priority."""
    assert RELEASE.module.replace("@", " ") in (PINNED / kueue.program.name / "go.mod").read_text()
    programs.keep(())  # they look for its definitions when they start
    with kueue.serving(cluster, tmp_path_factory.mktemp("kueue")):
        flavor_and_class(cluster)
        yield
        programs.keep(())


@pytest.fixture(scope="module")
def volcano(
    cluster: Cluster, programs: OnDemand, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Volcano's scheduler, with its definitions in place of the lab's."""
    directory = tmp_path_factory.mktemp("volcano")
    yield from _beside(
        programs, volcano_scheduler.scheduling(peer("volcano-scheduler"), cluster, directory)
    )


@pytest.fixture(scope="module")
def volcano_for_gangs(
    cluster: Cluster, programs: OnDemand, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Volcano's scheduler, with its actions for gangs."""
    directory = tmp_path_factory.mktemp("volcano")
    scheduler = volcano_scheduler.scheduling(
        peer("volcano-scheduler"), cluster, directory, actions=volcano_scheduler.FOR_GANGS
    )
    yield from _beside(programs, scheduler)


@pytest.fixture(scope="module")
def coscheduler(
    cluster: Cluster, programs: OnDemand, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """kube-scheduler with the plugin Coscheduling, and its definitions."""
    directory = tmp_path_factory.mktemp("coscheduling")
    yield from _beside(
        programs, coscheduling.scheduling(peer(coscheduling.NAME), cluster, directory)
    )


@pytest.fixture(scope="module")
def koord_scheduler(
    cluster: Cluster, programs: OnDemand, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Koordinator's scheduler, with its definitions."""
    directory = tmp_path_factory.mktemp("koordinator")
    yield from _beside(programs, koordinator.scheduling(peer(koordinator.NAME), cluster, directory))


def _beside(programs: OnDemand, scheduling: AbstractContextManager[None]) -> Iterator[None]:
    """Schedule for a module.

    Ours ask once a minute whether PodGroups are served, so they start again with each.
    """
    programs.keep(())
    with scheduling:
        yield
        programs.keep(())


@pytest.fixture
def queue(cluster: Cluster, namespace: str) -> str:
    """The queue of the example, with quota of its own; returns the label."""
    return queue_of_four(cluster, namespace)
