"""What is read of a Workload, places in a queue, and names in the words of Kueue."""

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from mpijob_elastic.capabilities.kueue import facts
from mpijob_elastic.capabilities.kueue.facts import Asked, Workload, named, places
from mpijob_elastic.model.json_parts import Owned
from tests.builders import job


def workload(name: str, *, namespace: str = "default", **facts: Any) -> Workload:
    metadata = Owned(name=name, namespace=namespace, uid=f"uid-{namespace}-{name}")
    return Workload(metadata=metadata, **{"queue": "team", **facts})


class Counted(list[Workload]):
    """Counts how often it is gone through."""

    looks = 0

    def __iter__(self) -> Iterator[Workload]:
        self.looks += 1
        return super().__iter__()


@pytest.mark.parametrize(
    ("owner", "asked", "is_its_own"),
    [
        pytest.param("uid-of-j", Asked(queue="team"), True, id="the job owns it"),
        pytest.param("of an earlier job", Asked(queue="team"), False, id="an earlier job owns it"),
        pytest.param("", Asked(queue="team"), False, id="nobody owns it"),
        pytest.param("", Asked(queue="team", prebuilt="one"), True, id="MultiKueue made it"),
    ],
)
def test_a_workload_is_that_of_its_owner(owner: str, asked: Asked, *, is_its_own: bool) -> None:
    one = workload("one")
    one = msgspec.structs.replace(
        one, metadata=msgspec.structs.replace(one.metadata, job_uid=owner)
    )
    about = msgspec.structs.replace(job(2).facts, asked=(asked,))
    assert about.metadata.uid == "uid-of-j"
    found = facts.of(about, [one], all_known=[one])
    assert found.workloads == ({"one": one} if is_its_own else {})


def test_a_place_is_told_by_priority_and_then_by_age_in_each_queue_alone() -> None:
    found = places(
        [
            workload("young", created_at=9.0),
            workload("old", created_at=1.0),
            workload("important", created_at=10.0, priority=5),
            workload("elsewhere", queue="other", created_at=2.0),
            workload("namesake", namespace="b", created_at=3.0),
            workload("runs", reserved=True),
            workload("over", finished=True),
            workload("put-aside", active=False),
        ]
    )
    ours = {"important": 1, "old": 2, "young": 3, "elsewhere": 1}
    assert found == {f"uid-default-{name}": place for name, place in ours.items()} | {
        "uid-b-namesake": 1
    }


def test_the_workload_that_takes_the_quota_is_named_where_it_is_known() -> None:
    wanted: dict[str, Any] = {"reserved": True, "evicted": True}
    taken = workload(
        "a", said="Preempted to accommodate a workload (UID: uid-b-rival, JobUID: u)", **wanted
    )
    told = "Preempted to accommodate a workload (b/rival, UID: uid-b-rival, JobUID: u)"
    rest = [
        workload("waits", said=taken.said),
        workload("other", said="Evicted for a reason", **wanted),
    ]
    first, *others = named([taken, *rest], [workload("x"), workload("rival", namespace="b")])
    assert (first.said, others) == (told, rest)
    assert named([taken], [workload("x")]) == [taken]


def test_to_name_it_costs_one_look_at_each_workload_however_many_are_taken() -> None:
    """A job with a hundred extras among ten thousand Workloads held everything up for a quarter of a second."""
    said = "Preempted to accommodate a workload (UID: uid-b-rival, JobUID: u)"
    taken = [workload(f"w{index}", said=said, reserved=True, evicted=True) for index in range(50)]
    among = Counted([workload("x"), workload("rival", namespace="b")])
    assert all("b/rival" in one.said for one in named(taken, among))
    assert among.looks == 1


ETA = "Provisioning, ETA: 2026-11-26T15:00:00Z"


def read(*true: str, checks: dict[str, str], **others: Any) -> Workload:
    conditions = [{"type": name, "status": "True", "message": f"{name} is so"} for name in true]
    told = [{"name": name, "state": state, "message": ETA} for name, state in checks.items()]
    body = {
        "metadata": {"name": "j-launcher"},
        "status": {"conditions": conditions, "admissionChecks": told},
    }
    return facts.read(json.dumps(body | others).encode())


@pytest.mark.parametrize(
    ("true", "checks", "checked", "said"),
    [
        (
            ["QuotaReserved"],
            {"a": "Ready", "b": "Pending"},
            True,
            f"AdmissionCheck b is Pending: {ETA}",
        ),
        (["QuotaReserved"], {"a": "Ready"}, False, ""),
        (["QuotaReserved", "Admitted"], {"a": "Ready"}, False, ""),
        (["QuotaReserved", "Evicted"], {"a": "Pending"}, False, "Evicted is so"),
        (["Evicted"], {"a": "Pending"}, False, ""),
    ],
)
def test_a_check_that_has_yet_to_answer_says_why_quota_that_is_reserved_starts_no_pod(
    true: list[str], checks: dict[str, str], checked: bool, said: str
) -> None:
    found = read(*true, checks=checks)
    assert (found.checked, found.said) == (checked, said)


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("Pending", "insufficient quota"),
        ("ExceedsMaxQuota", "it asks for more than its queue can ever give: insufficient quota"),
    ],
)
def test_a_workload_that_can_never_be_admitted_says_so(reason: str, said: str) -> None:
    condition = {
        "type": "QuotaReserved",
        "status": "False",
        "reason": reason,
        "message": "insufficient quota",
    }
    body = {"metadata": {"name": "j-launcher"}, "status": {"conditions": [condition]}}
    assert facts.read(json.dumps(body).encode()).said == said


@pytest.mark.parametrize(
    ("status", "reason", "late"),
    [
        ("True", "PodsReadyTimeout", True),
        ("True", "Preempted", False),
        ("False", "PodsReadyTimeout", False),
    ],
)
def test_a_workload_knows_that_its_pods_were_late(status: str, reason: str, *, late: bool) -> None:
    condition = {"type": "Evicted", "status": status, "reason": reason}
    body = {"metadata": {"name": "j-launcher"}, "status": {"conditions": [condition]}}
    assert facts.read(json.dumps(body).encode()).late is late
