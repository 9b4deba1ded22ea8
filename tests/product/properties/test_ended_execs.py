"""Whatever becomes of a rank: only one that never starts again under its host name is lost without a wait."""

from hypothesis import event, given
from hypothesis import strategies as st

from mpijob_elastic.act.worker_probes import _with
from mpijob_elastic.decide import derive, ended_execs, frozen_execs
from mpijob_elastic.decide.ended_execs import ASKED_AFTER
from mpijob_elastic.decide.lost_ranks import LOOK_SELDOM, LOST_AFTER
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.kubexec import Exec, HeldExecs
from mpijob_elastic.model.pod import Probe
from tests.builders import LONG_AGO, NOW, Story, pods
from tests.rank_courses import (
    NEVER,
    Course,
    another_driver,
    killed,
    listed_again,
    training,
    training_ends,
)


class Seen:
    """The job as its looks show it."""

    def __init__(self, course: Course) -> None:
        self.course = course
        self.probe, self.held = Probe(), HeldExecs()
        self.names = pods(*range(len(course.runs)))
        self.story: Story = training(len(self.names))

    def at(self, second: int) -> JobView:
        """Look as is due, and return the job after that."""
        if second in self.course.looks:
            outcome = "busy" if self.course.has_rank(-1, second) else "idle"
            self.probe = _with(self.probe, outcome, asked_at=self._time(second))
        view = self._view(second)
        look = frozen_execs.look(derive(view, now=self._time(second))).write
        if look is None:
            return view
        ended = ended_execs.confirmed(view, self._execs(second), now=self._time(second))
        self.held = HeldExecs(asked_at=self._time(second), about=look.about, ended=ended)
        return self._view(second)

    def _view(self, second: int) -> Story:
        started_at = self._time(self.course.started)
        view = self.story.launched(started_at=started_at, held=self.held).shown()
        for index in range(len(self.names) - 1):
            busy_at = self._time(second - second % int(LOOK_SELDOM))
            seen = Probe(busy_seen=True, busy_at=busy_at, asked_at=busy_at)
            view = view.pod(index, probe=seen)
        return view.pod(len(self.names) - 1, probe=self.probe)

    def _execs(self, second: int) -> list[Exec]:
        return [
            Exec(pid=index, pod=pod, started_at=LONG_AGO)
            for index, pod in enumerate(self.names)
            if self.course.has_rank(index, second)
        ]

    def _time(self, second: int) -> float:
        return NOW + second


def lost_early(course: Course) -> int | None:
    """Return the second in which the last worker is lost before looks alone would show that; None if never."""
    seen = Seen(course)
    for second in sorted(moments(course)):
        state = derive(seen.at(second), now=NOW + second)
        probe = seen.probe
        if not state.rankless or probe.idle_at is None or probe.idle_since is None:
            continue
        if probe.idle_at - probe.idle_since < LOST_AFTER:
            return second
    return None


def moments(course: Course) -> set[int]:
    """Return the seconds at which something may be decided: at looks, and when the launcher is due."""
    due = {look + int(ASKED_AFTER) for look in course.looks}
    return {one for one in {*course.looks, *due} if one >= course.added}


@given(course=st.one_of(killed(), listed_again(), another_driver()))
def test_no_rank_that_starts_again_is_lost_early(course: Course) -> None:
    second = lost_early(course)
    event("early" if second is not None else "not early")
    assert second is None or not course.starts_after(second)


@given(course=training_ends())
def test_no_rank_is_lost_early_because_training_ends(course: Course) -> None:
    assert lost_early(course) is None


def test_a_killed_rank_is_lost_as_soon_as_the_launcher_has_answered() -> None:
    course = Course(runs=[[(0, NEVER)], [(0, NEVER)], [(0, 61)]], looks=frozenset({30, 60, 90}))
    assert lost_early(course) == 90 + int(ASKED_AFTER)
