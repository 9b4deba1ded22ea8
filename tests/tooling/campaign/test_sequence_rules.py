"""The safety rules as the campaign holds them against what was stored."""

from dataclasses import replace
from typing import Any

import pytest

from mpijob_elastic import names
from tests.campaign.sequence_rules import Version, broken
from tests.lab.job import HOROVODRUN, MPIRUN

JOB, GONE = "j", "j-worker-1"


def version(
    kind: str, name: str, number: int, at: float, *, uid: str = "u", **content: Any
) -> Version:
    metadata = {
        "name": name,
        "uid": uid,
        "resourceVersion": str(number),
        **content.pop("metadata", {}),
    }
    return Version(
        kind=kind,
        name=name,
        number=number,
        at=at,
        deleted=False,
        content={"metadata": metadata, **content},
    )


def listed(number: int, at: float, *indices: int) -> Version:
    script = names.discover_hosts([names.worker(JOB, index) for index in indices], slots=1)
    metadata = {"managedFields": [{"time": clock(at)}]}
    data = {names.KEY_DISCOVER_HOSTS: script}
    return version("ConfigMap", names.config_map(JOB), number, at, metadata=metadata, data=data)


def clock(at: float) -> str:
    return f"2026-01-01T00:00:{at:02.0f}Z"


def pod(name: str, number: int, at: float, **metadata: Any) -> Version:
    conditions = [{"type": "Ready", "status": "True"}]
    owned = {"ownerReferences": [{"uid": "job"}], **metadata}
    return version(
        "Pod",
        name,
        number,
        at,
        uid=name,
        metadata=owned,
        spec={},
        status={"phase": "Running", "conditions": conditions},
    )


def mpi_job(
    number: int,
    at: float,
    *,
    replicas: int,
    command: list[str] = HOROVODRUN,
    enabled: str | None = None,
) -> Version:
    launcher = {
        "replicas": 1,
        "template": {"spec": {"containers": [{"name": "l", "image": "i", "command": command}]}},
    }
    worker = {
        "replicas": replicas,
        "template": {"spec": {"containers": [{"name": "w", "image": "i"}]}},
    }
    spec = {"mpiReplicaSpecs": {"Launcher": launcher, "Worker": worker}}
    metadata = {
        "namespace": "n",
        "annotations": {} if enabled is None else {names.ENABLED: enabled},
    }
    return version("MPIJob", JOB, number, at, uid="job", metadata=metadata, spec=spec)


def history(*, deleted_at: float) -> list[Version]:
    """Two workers of which one leaves the list at 10 s, and is deleted."""
    exec_rule = {"resources": ["pods/exec"], "resourceNames": ["j-worker-0", GONE]}
    going = {"deletionTimestamp": clock(deleted_at + 1), "deletionGracePeriodSeconds": 1}
    return [
        mpi_job(1, 0.0, replicas=2),
        version("Role", names.launcher(JOB), 2, 0.0, rules=[exec_rule]),
        *(
            pod(name, number, 0.0)
            for number, name in enumerate(("j-worker-0", GONE, names.launcher(JOB)), 3)
        ),
        listed(6, 1.0, 0, 1),
        mpi_job(7, 9.0, replicas=1),
        listed(8, 10.0, 0),
        pod(GONE, 9, deleted_at, **going),
    ]


TOO_EARLY = [f"Pod {GONE}@9: rule 2: a worker is deleted 0 s after it left the list"]


@pytest.mark.parametrize(("deleted_at", "found"), [(15.0, []), (12.0, []), (10.0, TOO_EARLY)])
@pytest.mark.parametrize("deleted", [{GONE}, set()], ids=["by us", "by another"])
def test_a_worker_has_time_to_leave(deleted_at: float, found: list[str], deleted: set[str]) -> None:
    versions = history(deleted_at=deleted_at)
    assert broken(versions, job=JOB, edits=set(), deleted=deleted) == (found if deleted else [])


def test_a_launcher_that_reads_the_list_decides_whatever_its_template_says_by_now() -> None:
    versions = history(deleted_at=15.0)
    plain = mpi_job(7, 1.0, replicas=1, command=MPIRUN)
    versions[6] = plain
    refused = [f"Pod {GONE}@9: rule 2: a worker of a job that is not elastic is deleted"]
    assert broken(versions, job=JOB, edits=set(), deleted={GONE}) == refused
    volume = {"configMap": {"items": [{"key": names.KEY_DISCOVER_HOSTS}]}}
    launcher = versions[4]
    versions[4] = replace(launcher, content={**launcher.content, "spec": {"volumes": [volume]}})
    assert broken(versions, job=JOB, edits=set(), deleted={GONE}) == []


def lost(*, enabled: str | None = None, then: str | None = None) -> list[Version]:
    """A published worker ends, its successor is published under the same name; `then`: what `enabled` is by then."""
    versions = history(deleted_at=15.0)[:6]
    going = {"deletionTimestamp": clock(10), "deletionGracePeriodSeconds": 0}
    return [
        *versions,
        mpi_job(7, 2.0, replicas=2, enabled=enabled),
        pod(GONE, 8, 10.0, **going),
        listed(9, 11.0, 0),
        mpi_job(10, 12.0, replicas=2, enabled=then),
        pod(GONE, 11, 14.0, uid="new"),
        listed(12, 15.0, 0, 1),
    ]


AGAIN = [
    f"ConfigMap {JOB}-config@12: rule 8: {GONE} is published again, and a rank may have died under this name"
]


def test_a_name_under_which_a_rank_died_is_not_published_again() -> None:
    assert broken(lost(), job=JOB, edits=set(), deleted=set()) == AGAIN


def test_a_job_that_was_switched_off_keeps_its_names() -> None:
    assert broken(lost(enabled="false"), job=JOB, edits=set(), deleted=set()) == []
    assert broken(lost(then="false"), job=JOB, edits=set(), deleted=set()) == []


def test_a_launcher_that_is_gone_has_no_blacklist() -> None:
    versions = lost()
    gone = replace(versions[4], number=11, at=14.0, deleted=True)
    assert broken([*versions[:-1], gone, versions[-1]], job=JOB, edits=set(), deleted=set()) == []
