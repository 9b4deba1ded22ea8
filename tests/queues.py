"""Jobs that wait for quota, or train on it: the Workloads of Kueue."""

from typing import Any

from mpijob_elastic import names
from mpijob_elastic.capabilities.kueue.facts import Queue, Workload
from mpijob_elastic.model.json_parts import Owned
from mpijob_elastic.model.pod import LauncherPhase, Worker
from mpijob_elastic.model.policy import Policy
from tests.builders import JOB, Story, config, job, launcher, pending, pods

BASE = names.launcher(JOB)
GATES = (names.GATE_QUEUED,)


def workload(name: str = BASE, *, workers: int = 2, **facts: Any) -> Workload:
    """A Workload that waits; `facts` say otherwise."""
    metadata = Owned(
        name=name, namespace="default", uid=f"uid-of-{name}", job=JOB, job_uid=f"uid-of-{JOB}"
    )
    pods = (BASE, names.worker(JOB, 0)) if name == BASE else (name,)
    owners = {"pods": tuple(f"uid-of-{pod}" for pod in pods)}
    return Workload(metadata=metadata, queue="team", workers=workers, **owners | facts)


def granted(name: str = BASE, **facts: Any) -> Workload:
    return workload(name, **{"reserved": True, "admitted": True, **facts})


def preempted(name: str) -> Workload:
    return granted(name, workers=1, evicted=True, said="Preempted to accommodate a workload")


def queue(*found: Workload, name: str = "team", **facts: Any) -> Queue:
    return Queue(name=name, workloads={one.metadata.name: one for one in found}, **facts)


def waiting(size: int, *found: Workload, **facts: Any) -> Story:
    """A job whose pods all wait for quota."""
    workers = tuple(pending(index, gates=GATES) for index in range(size))
    held = launcher(LauncherPhase.WAITING, gates=GATES)
    facts = {
        "config": config([], hostfile=pods(*range(size))),
        "queue": queue(*found),
        "workers": workers,
        **facts,
    }
    return job(size, launcher=held, known=False, **facts)


def training(*workers: Worker, found: tuple[Workload, ...], size: int, **facts: Any) -> Story:
    """A job of two at least that trains with the quota of these Workloads."""
    facts = {
        "policy": Policy(min_replicas=2),
        "config": config(pods(*range(size))),
        "queue": queue(*found),
        **facts,
    }
    return job(size, workers=workers, **facts)
