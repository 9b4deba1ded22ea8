"""Places in a queue, and names in the words of Kueue."""

from typing import Any

from mpijob_elastic.model.queue import Workload, named, places
from mpijob_elastic.model.wire import Owned


def workload(name: str, *, namespace: str = "default", **facts: Any) -> Workload:
    metadata = Owned(name=name, namespace=namespace, uid=f"uid-{namespace}-{name}")
    return Workload(metadata=metadata, **{"queue": "team", **facts})


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
    ours, theirs = "uid-default-", "uid-b-"
    assert found == {
        f"{ours}important": 1,
        f"{ours}old": 2,
        f"{ours}young": 3,
        f"{ours}elsewhere": 1,
        f"{theirs}namesake": 1,
    }


def test_the_workload_that_takes_the_quota_is_named_where_it_is_known() -> None:
    taken = workload("a", said="Preempted to accommodate a workload (UID: uid-b-rival, JobUID: u)")
    told = "Preempted to accommodate a workload (b/rival, UID: uid-b-rival, JobUID: u)"
    assert named(taken, [workload("x"), workload("rival", namespace="b")]).said == told
    assert named(taken, [workload("x")]) is taken
