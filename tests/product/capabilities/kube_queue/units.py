"""Jobs that KubeQueue holds, and their QueueUnits."""

from typing import Any

from mpijob_elastic import names
from mpijob_elastic.capabilities.kube_queue import KubeQueue
from mpijob_elastic.capabilities.kube_queue.facts import QueueUnit
from mpijob_elastic.model.json_parts import Owned
from mpijob_elastic.model.pod import LauncherPhase
from tests.builders import Story, job, launcher, pending

SUSPENDED = (names.GATE_SUSPENDED,)
HERE = Owned(
    name="j-mpi-qu",
    namespace="default",
    uid="uid-of-unit",
    resource_version="3",
    job="j",
    job_uid="uid-of-j",
)

OWNERS = ("uid-of-j-launcher", "uid-of-j-worker-0")


def unit(phase: str = "Enqueued", *, workers: int = 2, **facts: Any) -> QueueUnit:
    return QueueUnit(metadata=HERE, phase=phase, workers=workers, **{"pods": OWNERS, **facts})


def queued(found: QueueUnit | None = None, *rivals: str) -> KubeQueue:
    return KubeQueue(unit=found, rivals=rivals)


def held(
    found: QueueUnit | None = None, *, gates: tuple[str, ...] = SUSPENDED, **facts: Any
) -> Story:
    """A job of two workers that KubeQueue holds; all of its pods wait."""
    waits = launcher(LauncherPhase.WAITING, gates=gates)
    defaults = {
        "workers": tuple(pending(index, gates=gates) for index in range(2)),
        "launcher": waits,
    }
    return job(
        2,
        **{
            **defaults,
            "held_in_queue": "suspended_by" not in facts,
            "kube_queue": queued(found),
            **facts,
        },
    )
