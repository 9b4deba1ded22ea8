"""The number of pods that a gang scheduler waits for."""

import pytest

from mpijob_elastic.decide import side_objects
from mpijob_elastic.model.job import JobView, PodGroup
from mpijob_elastic.model.policy import Policy
from tests.builders import job, ref


def grouped(size: int, member: int | None, *, least: int | None = None, elastic: bool = True) -> JobView:
    """A job of that size with a PodGroup of that minMember."""
    group = None if member is None else PodGroup(ref=ref("j"), min_member=member)
    return job(size, pod_group=group, policy=Policy(min_replicas=least), elastic=elastic)


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (grouped(4, 5, least=2), 3),
        (grouped(4, 3, least=2), None),
        (grouped(4, 2, least=2), None),
        (grouped(6, 5), None),
        (grouped(4, 5), None),
        (grouped(2, 5), 3),
        (grouped(1, 5, least=2), 2),
        (grouped(2, 5, elastic=False), None),
        (grouped(4, None, least=2), None),
    ],
)
def test_it_is_lowered_to_what_is_needed_and_never_raised(view: JobView, expected: int | None) -> None:
    action = side_objects.lower_pod_group(view)
    assert (action.after if action else None) == expected
    assert action is None or action.note.reason == "PodGroupLowered"
