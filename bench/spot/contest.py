"""The compared ways to train on spot machines: all play the same trace in a row, in the same lab."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
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


@dataclass(frozen=True, kw_only=True)
class Contender:
    """A side: the programs beside the job, and the job itself.

    quiet: seconds without a write that count as rest, if every running worker trains.
    patience: the same if a worker does not train: longer than any delay of the side.
    remembers: it keeps times on objects, which must move with a jump of the clock.
    """

    name: str
    title: str
    start: Start
    elastic: bool = True
    quiet: float = 2.0
    patience: float = 5.0
    remembers: bool = False

    def manifest(self, *, size: int, selector: Mapping[str, str]) -> dict[str, Any]:
        """Return the job as its user would write it, limited to its machines; its launcher is held."""
        job = jobs.manifest(jobs.JOB, replicas=size, drain_timeout=DRAIN_TIMEOUT)
        launcher, worker = (
            job["spec"]["mpiReplicaSpecs"][role]["template"] for role in ("Launcher", "Worker")
        )
        ranks = ["-np", str(size)]
        if self.elastic:
            ranks = ["-np", "1", "--min-np", "1", "--max-np", str(size)]
            ranks += ["--host-discovery-script", names.DISCOVER_HOSTS_PATH]
            job["metadata"]["annotations"][names.MIN_REPLICAS] = "1"
        else:
            job["metadata"]["annotations"] = {}
        launcher["spec"]["containers"][0]["command"] = ["horovodrun", *ranks, "python", "train.py"]
        launcher["spec"]["nodeSelector"] = {"kubernetes.io/hostname": ON_DEMAND}
        launcher["metadata"] = {"annotations": {HOLD: "until every host of the hostfile runs"}}
        worker["spec"]["nodeSelector"] = dict(selector)
        return job


@contextmanager
def _alone(cluster: Cluster) -> Iterator[Side]:
    with Operator.start(cluster) as operator:
        yield Side(pids={"operator": operator.pid})


def contenders(*, peer: Peer, ours: Ours) -> Sequence[Contender]:
    """Return the sides: a static job, which is created again whenever it fails, the peer alone, and us."""
    return (
        Contender(name="static", title="static job", elastic=False, start=_alone),
        # v0.3.0 has no delays between two writes.
        Contender(name="peer", title=f"elastic, {peer.name} alone", start=peer.start),
        Contender(
            name="ours",
            title="elastic, mpijob-elastic",
            start=ours.start,
            quiet=4.0,
            patience=DEFAULT_DRAIN_TIMEOUT + 15.0,
            remembers=True,
        ),
    )
