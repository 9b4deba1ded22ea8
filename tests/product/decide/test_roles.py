"""The launcher's Role."""

from typing import Any

import pytest

from mpijob_elastic.decide import side_objects
from mpijob_elastic.model.job import JobView, Role
from tests.builders import JOB, config, job, pods, ref, role, worker


def writes(view: JobView) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    assert view.role is not None
    grown, shrunk = side_objects.grow_role(view, view.role), side_objects.shrink_role(view, view.role)
    return grown.exec_names if grown else None, shrunk.exec_names if shrunk else None


@pytest.mark.parametrize(
    ("facts", "grown", "shrunk"),
    [
        ({}, None, None),
        ({"replicas": 4}, (0, 1, 2, 3), None),
        ({"replicas": 12, "role": role(10)}, tuple(range(12)), None),
        ({"role": role(0, 1, 2, 3)}, None, (0, 1, 2)),
        # Not before the last surplus worker is gone, also a worker that is going.
        ({"replicas": 2}, None, None),
        ({"replicas": 2, "workers": (worker(0), worker(1), worker(2, deleting=True))}, None, None),
        ({"replicas": 2, "workers": (worker(0), worker(1))}, None, (0, 1)),
        ({"elastic": False, "replicas": 4}, None, None),
        ({"elastic": False, "role": role(0, 1, 2, 3)}, None, None),
    ],
)
def test_it_grows_first_and_shrinks_last(
    facts: dict[str, Any], grown: tuple[int, ...] | None, shrunk: tuple[int, ...] | None
) -> None:
    expected = (None if grown is None else pods(*grown), None if shrunk is None else pods(*shrunk))
    assert writes(job(**facts)) == expected


def test_names_that_somebody_else_added_stay() -> None:
    view = job(2, role=Role(ref=ref(JOB), exec_rule=1, exec_names=("helper", *pods(0))))
    assert writes(view)[0] == ("helper", *pods(0, 1))


def test_a_name_in_the_script_alone_gives_no_right_to_exec() -> None:
    view = job(2, config=config([*pods(0, 1), "somebody-elses-pod"]), replicas=3)
    grown, _ = writes(view)
    assert grown == pods(0, 1, 2)


def test_a_job_without_workers_keeps_its_names_because_no_names_would_mean_every_pod() -> None:
    assert writes(job(3, replicas=0, workers=())) == (None, None)
