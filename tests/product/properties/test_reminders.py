"""No change of the list is lost for good: with a driver that loses words, every rank comes and goes."""

from collections.abc import Mapping

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.doubles.horovod_driver import Driver
from tests.product.properties.courses import MOST, Course, followed


@pytest.mark.parametrize("start", [6.0, 8.0, 20.0, 40.0])
@pytest.mark.parametrize("then", [{10.0: 1, 14.0: 2}, {0.0: 1, 2.0: 2}, {0.0: 1, 5.0: 2, 9.0: 4}])
def test_a_worker_that_is_added_while_ranks_start_is_used(
    start: float, then: Mapping[float, int]
) -> None:
    course = followed(Course(driver=Driver(start=start, commit=1.0), sizes=then))
    assert course.driver.lost > 0 or start + 4.0 < 10.0


@pytest.mark.parametrize("start", [6.0, 8.0, 20.0, 40.0])
def test_a_worker_that_is_removed_while_ranks_start_leaves_by_itself(start: float) -> None:
    sizes = {0.0: 3, 100.0: 4, 104.0: 2}
    course = followed(Course(driver=Driver(start=start, commit=1.0), sizes=sizes))
    assert course.driver.lost > 0


def test_where_ranks_start_fast_no_reminder_is_written() -> None:
    sizes = {0.0: 1, 60.0: 3, 120.0: 1, 180.0: 2}
    course = followed(Course(driver=Driver(start=1.0, commit=1.0), sizes=sizes))
    assert (course.reminders, course.driver.lost) == (0, 0)


@given(
    start=st.sampled_from([0.5, 3.0, 6.0, 12.0]),
    commit=st.sampled_from([0.5, 1.0, 4.0]),
    changes=st.lists(
        st.tuples(st.sampled_from([1.0, 3.5, 4.0, 5.0, 9.0, 15.0, 40.0]), st.integers(1, MOST)),
        max_size=3,
    ),
)
@example(start=6.0, commit=1.0, changes=[(4.0, 2), (4.0, 3)])
@example(start=6.0, commit=1.0, changes=[(4.0, 3), (5.0, 2), (4.0, 1)])
@settings(max_examples=60)
def test_every_change_is_followed(
    start: float, commit: float, changes: list[tuple[float, int]]
) -> None:
    sizes, at = {0.0: 1}, 0.0
    for pause, size in changes:
        at += pause
        sizes[at] = size
    followed(Course(driver=Driver(start=start, commit=commit), sizes=sizes))
