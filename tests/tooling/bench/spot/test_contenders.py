"""The job of each side is such as its user would write it."""

from typing import Any

import msgspec
import pytest

from bench.sides import Ours, Peer
from bench.spot import contenders
from bench.spot.contenders import HOLD, Contender
from mpijob_elastic.model import job_facts
from mpijob_elastic.model.mpijob import MPIJob

SIDES = (contenders.rigid(), contenders.peer(Peer()), contenders.elastic(Ours()))


def manifest(side: Contender) -> dict[str, Any]:
    return side.manifest(size=4, selector={"pool": side.name})


@pytest.mark.parametrize("side", SIDES, ids=lambda side: side.name)
def test_workers_keep_to_their_machines_and_the_launcher_is_held(side: Contender) -> None:
    replicas = manifest(side)["spec"]["mpiReplicaSpecs"]
    assert replicas["Worker"]["template"]["spec"]["nodeSelector"] == {"pool": side.name}
    assert replicas["Worker"]["replicas"] == 4
    assert HOLD in replicas["Launcher"]["template"]["metadata"]["annotations"]


@pytest.mark.parametrize("side", SIDES, ids=lambda side: side.name)
def test_it_is_elastic_by_our_own_rules_where_it_says_so(side: Contender) -> None:
    job = job_facts.of(msgspec.convert(manifest(side), MPIJob))
    assert job.elastic == side.elastic
    assert not job.problems


def test_the_peer_is_the_release_that_is_elastic_itself() -> None:
    assert SIDES[1].title == "elastic, mpi-operator v0.3.0 alone"


def test_both_elastic_sides_get_the_same_job() -> None:
    ours, theirs = (side.manifest(size=4, selector={}) for side in SIDES[1:])
    assert ours == theirs
