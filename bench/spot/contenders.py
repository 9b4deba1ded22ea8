"""The compared ways to train on spot machines: the programs beside the job, and the job itself."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from bench import jobs
from bench.sides import Ours, Peer, Side
from bench.spot.pool import ON_DEMAND
from lab.cluster import Cluster
from lab.operator.process import Operator
from mpijob_elastic import names
from mpijob_elastic.model.policy import DEFAULT_DRAIN_TIMEOUT

# Keeps a pod Pending in a lab (lab/manifests/kwok-stages.yaml).
HOLD = "lab.mpijob-elastic/hold"
DRAIN_TIMEOUT = "60s"

Start = Callable[[Cluster], AbstractContextManager[Side]]


class SideName(StrEnum):
    """The sides, as the command line names them."""

    STATIC = "static"
    PEER = "peer"
    OURS = "ours"


@dataclass(frozen=True, kw_only=True)
class Contender:
    """A side.

    quiet: seconds without a write that count as rest, if every running worker trains.
    patience: the same if a worker does not train: longer than any delay of the side.
    remembers: it keeps times on objects, which must move with a jump of the clock.
    """

    name: SideName
    title: str
    elastic: bool
    quiet: float
    patience: float
    remembers: bool
    start: Start

    def manifest(self, *, size: int, selector: Mapping[str, str]) -> dict[str, Any]:
        """Return the job as its user would write it, limited to its machines; its launcher is held."""
        job = jobs.manifest(jobs.JOB, replicas=size, drain_timeout=DRAIN_TIMEOUT)
        launcher, worker = (job["spec"]["mpiReplicaSpecs"][role]["template"] for role in ("Launcher", "Worker"))
        if self.elastic:
            job["metadata"]["annotations"][names.MIN_REPLICAS] = "1"
        else:
            job["metadata"]["annotations"] = {}
        command = ["horovodrun", "-np", "1", "--min-np", "1", "--max-np", str(size), "--host-discovery-script"]
        rigid = ["horovodrun", "-np", str(size)]
        start = [*command, names.DISCOVER_HOSTS_PATH] if self.elastic else rigid
        launcher["spec"]["containers"][0]["command"] = [*start, "python", "train.py"]
        launcher["spec"]["nodeSelector"] = {"kubernetes.io/hostname": ON_DEMAND}
        launcher["metadata"] = {"annotations": {HOLD: "until every host of the hostfile runs"}}
        worker["spec"]["nodeSelector"] = dict(selector)
        return job


@contextmanager
def _alone(cluster: Cluster) -> Iterator[Side]:
    with Operator.start(cluster) as operator:
        yield Side(pids={"operator": operator.pid})


def rigid() -> Contender:
    """Return the static job beside mpi-operator v0.2.3 alone; it is created again whenever it fails."""
    return _forgetful(name=SideName.STATIC, title="static job", elastic=False, start=_alone)


def elastic(ours: Ours) -> Contender:
    """Return an elastic job with us beside mpi-operator v0.2.3. Its longest delay is the drain-timeout."""
    patience = DEFAULT_DRAIN_TIMEOUT + 15.0
    title = "elastic, mpijob-elastic"
    return Contender(
        name=SideName.OURS, title=title, elastic=True, quiet=4.0, patience=patience, remembers=True, start=ours.start
    )


def peer(other: Peer) -> Contender:
    """Return the same job with the peer alone. v0.3.0 has no delays between two writes."""
    title = f"elastic, {other.name} alone"
    return _forgetful(name=SideName.PEER, title=title, elastic=True, start=other.start)


def _forgetful(*, name: SideName, title: str, elastic: bool, start: Start) -> Contender:
    return Contender(name=name, title=title, elastic=elastic, quiet=2.0, patience=5.0, remembers=False, start=start)
