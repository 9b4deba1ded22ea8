"""The time that a worker has to leave, as the campaign measures it: watches may show the writes late."""

from typing import Any

import pytest

from mpijob_elastic import names
from tests.campaign.sequence_rules import Version, broken
from tests.lab.job import HOROVODRUN

JOB, GONE = "j", "j-worker-1"


def version(kind: str, name: str, number: int, at: float, *, uid: str = "u", **content: Any) -> Version:
    metadata = {"name": name, "uid": uid, "resourceVersion": str(number), **content.pop("metadata", {})}
    return Version(kind=kind, name=name, number=number, at=at, deleted=False, content={"metadata": metadata, **content})


def listed(number: int, at: float, *indices: int) -> Version:
    script = names.discover_hosts([names.worker(JOB, index) for index in indices], slots=1)
    return version("ConfigMap", names.config_map(JOB), number, at, data={names.KEY_DISCOVER_HOSTS: script})


def pod(name: str, number: int, at: float, **metadata: Any) -> Version:
    conditions = [{"type": "Ready", "status": "True"}]
    owned = {"ownerReferences": [{"uid": "job"}], **metadata}
    return version(
        "Pod", name, number, at, uid=name, metadata=owned, status={"phase": "Running", "conditions": conditions}
    )


def mpi_job(number: int, at: float, *, replicas: int) -> Version:
    launcher = {
        "replicas": 1,
        "template": {"spec": {"containers": [{"name": "l", "image": "i", "command": HOROVODRUN}]}},
    }
    worker = {"replicas": replicas, "template": {"spec": {"containers": [{"name": "w", "image": "i"}]}}}
    spec = {"mpiReplicaSpecs": {"Launcher": launcher, "Worker": worker}}
    return version("MPIJob", JOB, number, at, uid="job", metadata={"namespace": "n"}, spec=spec)


def history(*, left_at: float, deleted_at: float) -> list[Version]:
    """Two workers of which one leaves the list, and is deleted."""
    exec_rule = {"resources": ["pods/exec"], "resourceNames": ["j-worker-0", GONE]}
    return [
        mpi_job(1, 0.0, replicas=2),
        version("Role", names.launcher(JOB), 2, 0.0, rules=[exec_rule]),
        *(pod(name, number, 0.0) for number, name in enumerate(("j-worker-0", GONE, names.launcher(JOB)), 3)),
        listed(6, 1.0, 0, 1),
        mpi_job(7, 10.0, replicas=1),
        listed(8, left_at, 0),
        pod("j-worker-0", 9, 10.5),
        pod(GONE, 10, deleted_at, deletionTimestamp="2026-01-01T00:00:00Z"),
    ]


@pytest.mark.parametrize(
    ("left_at", "deleted_at", "found"),
    [
        (10.2, 15.2, []),
        (10.2, 10.9, [f"Pod {GONE}@10: rule 2: a worker is deleted 0.7 s after it left the list"]),
        # The change of the list was seen late: a later version had been seen before.
        (14.5, 15.2, []),
    ],
)
def test_a_worker_has_time_to_leave(left_at: float, deleted_at: float, found: list[str]) -> None:
    versions = history(left_at=left_at, deleted_at=deleted_at)
    assert broken(versions, job=JOB, edits=set()) == found
