"""The launcher's Role."""

from typing import Any

import pytest

from mpijob_elastic.decide import decide, side_objects
from mpijob_elastic.decide.actions import WriteRole
from mpijob_elastic.model.job import JobView, Role
from mpijob_elastic.model.policy import Policy
from tests.builders import JOB, NOW, config, job, pods, ref, role, worker


def written(view: JobView) -> tuple[str, ...] | None:
    assert view.role is not None
    write = side_objects.grow_role(view, view.role)
    return write.exec_names if write else None


def up_to(most: int) -> Policy:
    return Policy(max_replicas=most)


@pytest.mark.parametrize(
    ("facts", "grown"),
    [
        ({}, None),
        ({"replicas": 4}, 4),
        ({"replicas": 12, "role": role(10)}, 12),
        # All sizes that the job may have, in one write.
        ({"policy": up_to(5)}, 5),
        ({"policy": up_to(5), "role": role(0, 1, 2, 3)}, 5),
        ({"policy": up_to(5), "role": role(*range(5))}, None),
        ({"policy": up_to(2)}, None),
        ({"max_np_workers": 6}, 6),
        ({"max_np_workers": 6, "policy": up_to(8)}, 8),
        ({"policy": up_to(1_000_000)}, side_objects.MOST_AHEAD),
        ({"policy": up_to(1_000_000), "replicas": 1_001, "role": role(*range(1_000))}, 1_001),
        # It never shrinks.
        ({"role": role(0, 1, 2, 3)}, None),
        ({"replicas": 2, "workers": (worker(0), worker(1))}, None),
        ({"replicas": 4, "role": role(7)}, (0, 1, 2, 3, 7)),
        ({"elastic": False, "replicas": 4}, None),
        ({"elastic": False, "policy": up_to(5)}, None),
    ],
)
def test_it_names_every_worker_that_the_job_may_get(facts: dict[str, Any], grown: int | tuple[int, ...] | None) -> None:
    indices = range(grown) if isinstance(grown, int) else grown
    assert written(job(**facts)) == (None if indices is None else pods(*indices))


def test_a_size_within_the_bound_is_reached_without_a_write_of_the_role() -> None:
    view = job(3, replicas=4, policy=up_to(4), role=role(0, 1, 2, 3))
    assert not any(isinstance(action, WriteRole) for action in decide(view, now=NOW).actions)


def test_names_that_somebody_else_added_stay() -> None:
    view = job(2, role=Role(ref=ref(JOB), exec_rule=1, exec_names=("helper", *pods(0))))
    assert written(view) == ("helper", *pods(0, 1))


def test_a_name_in_the_script_alone_gives_no_right_to_exec() -> None:
    view = job(2, config=config([*pods(0, 1), "somebody-elses-pod"]), replicas=3)
    assert written(view) == pods(0, 1, 2)


def test_a_rule_without_names_would_mean_every_pod() -> None:
    assert written(job(3, replicas=0, workers=())) is None
