"""Kueue and gang schedulers beside a lab: with simulated pods in tests/peers, with real ones in tests/real."""

import json
from collections.abc import Iterator

import pytest

from lab.cluster import Cluster
from lab.modules import PINNED
from tests.lab.on_demand import OnDemand
from tests.lab.waiting import PATIENCE, kubectl_until_done
from tests.peers import coscheduling
from tests.peers import volcano as volcano_scheduler
from tests.peers.built import peer
from tests.peers.kueue import Kueue
from tests.peers.queues import example, queue_of_four


@pytest.fixture(scope="session")
def kueue() -> Kueue:
    """The program."""
    return Kueue(program=peer("kueue"))


@pytest.fixture(scope="module")
def kueue_serves(
    cluster: Cluster, kueue: Kueue, programs: OnDemand, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Kueue, with the flavor of the example and a class of priority."""
    assert kueue.release.module.replace("@", " ") in (PINNED / kueue.program.name / "go.mod").read_text()
    programs.keep(())  # they look for its definitions when they start
    with kueue.serving(cluster, tmp_path_factory.mktemp("kueue")):
        high = {"kind": "WorkloadPriorityClass", "metadata": {"name": "high"}, "value": 1000}
        for item in (example("queues")["ResourceFlavor"], high):
            item["apiVersion"] = kueue.api
            # Its webhooks may not answer yet.
            kubectl_until_done(cluster, "apply", "-f", "-", stdin=json.dumps(item), patience=PATIENCE)
        yield
        programs.keep(())


@pytest.fixture(scope="module")
def volcano(cluster: Cluster, programs: OnDemand, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Volcano's scheduler, with its definitions in place of the lab's."""
    program = peer("volcano-scheduler")
    programs.keep(())  # they ask once a minute whether PodGroups are served
    with volcano_scheduler.scheduling(program, cluster, tmp_path_factory.mktemp("volcano")):
        yield
        programs.keep(())


@pytest.fixture(scope="module")
def coscheduler(cluster: Cluster, programs: OnDemand, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """kube-scheduler with the plugin Coscheduling, and its definitions."""
    program = peer(coscheduling.NAME)
    programs.keep(())  # as with Volcano
    with coscheduling.scheduling(program, cluster, tmp_path_factory.mktemp("coscheduling")):
        yield
        programs.keep(())


@pytest.fixture
def queue(cluster: Cluster, kueue: Kueue, namespace: str) -> str:
    """The queue of the example, with quota of its own; returns the label."""
    return queue_of_four(cluster, namespace, api=kueue.api)
