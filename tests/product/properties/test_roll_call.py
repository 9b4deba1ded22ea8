"""Roll calls bring a look forward, and nothing else: no rank is lost that lives, comes again, or ends as planned."""

from collections.abc import Iterator

from hypothesis import event, given
from hypothesis import strategies as st

from mpijob_elastic.decide import roll_call
from mpijob_elastic.decide.ended_execs import ASKED_AFTER
from mpijob_elastic.decide.lost_ranks import LOOK_SELDOM, LOST_AFTER
from mpijob_elastic.model.pod import Probe
from tests.builders import NOW
from tests.rank_courses import (
    LAST,
    MOMENT,
    NEVER,
    SIZES,
    Course,
    Followed,
    another_driver,
    execs_are_cut,
    killed,
    listed_again,
    training,
    training_ends,
)

# Seconds from the first look to the second, when a rank counts as seen for a while.
SEEN_BY = LOOK_SELDOM + MOMENT


def verdicts(course: Course, *, until: float = 2 * LAST) -> Iterator[tuple[float, str, Probe]]:
    """Yield each second in which a worker counts as lost, its name, and what looks into it have shown.

    A job whose worker was not listed again is at rest from the first second.
    """
    story = training(len(course.runs))
    if course.added:
        story = story.remembering(added_at=NOW + course.added)
    for second, state in Followed(course, story=story).states(until):
        for pod in state.rankless:
            yield second, pod, state.by_name[pod].pod.probe


def early(course: Course) -> list[tuple[float, str]]:
    """Return the verdicts that looks into workers alone would not have given yet."""
    return [
        (second, pod)
        for second, pod, probe in verdicts(course)
        if (probe.idle_at or 0.0) - (probe.idle_since or 0.0) < LOST_AFTER
    ]


@given(course=st.one_of(killed(), listed_again(), another_driver()))
def test_no_rank_that_starts_again_is_lost_early(course: Course) -> None:
    found = early(course)
    event("early" if found else "not early")
    assert not any(course.starts_after(second) for second, _ in found)


@given(course=training_ends())
def test_no_rank_is_lost_early_because_training_ends(course: Course) -> None:
    assert early(course) == []


@given(course=execs_are_cut())
def test_no_rank_is_lost_that_runs_on_without_its_exec(course: Course) -> None:
    assert list(verdicts(course)) == []


@given(size=SIZES, second=st.integers(int(SEEN_BY) + 1, LAST))
def test_a_killed_rank_is_lost_soon(size: int, second: int) -> None:
    course = Course(runs=[*[[(0, NEVER)]] * size, [(0, second)]])
    first = next(second for second, _, _ in verdicts(course))
    assert first - second <= roll_call.APART + ASKED_AFTER + 2 * MOMENT
