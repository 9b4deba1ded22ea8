"""What may become of the ranks of a job, and a job that is looked into as its decisions ask for.

A small driver starts and ends ranks; the job sees only looks, each answered at once.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from mpijob_elastic.act.worker_probes import _tells, _with
from mpijob_elastic.decide import derive, ended_execs, frozen_execs, lost_ranks
from mpijob_elastic.decide.actions import LookIntoLauncher, ProbeWorkers
from mpijob_elastic.decide.ended_execs import ASKED_AFTER, SETTLED
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.decide.step import Step, earliest
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.kubexec import Exec, HeldExecs, RollCall
from mpijob_elastic.model.launch_command import Launch
from mpijob_elastic.model.pod import Probe
from tests.builders import LONG_AGO, NOW, Story, job, pods

LAST = 200  # seconds of a course
MOST_ENDS = int(SETTLED) - 5
NEVER = 10 * LAST
SECONDS = st.integers(0, LAST)
# Seconds from a look that has news to the next decision: no two are at the same time.
MOMENT = 0.25


@dataclass(frozen=True, kw_only=True)
class Course:
    """What happens to the ranks of a job, in whole seconds.

    A rank runs in its worker in each of `runs`: from a second until before another.
    """

    #: Of each worker.
    runs: Sequence[Sequence[tuple[int, int]]]
    #: When the last worker was listed again, and when the driver started.
    added: int = 0
    started: int = 0
    #: When somebody looks into the last worker.
    looks: frozenset[int] = frozenset()
    #: When the execs of the first workers end although their ranks run on, and of how many.
    cut: int = NEVER
    cuts: int = 0

    def has_rank(self, index: int, at: float) -> bool:
        return any(begin <= at < end for begin, end in self.runs[index])

    def has_exec(self, index: int, at: float) -> bool:
        if index < self.cuts and at >= self.cut:
            return False
        return self.has_rank(index, at)

    def starts_after(self, at: float) -> bool:
        """Tell whether the driver starts a rank in the last worker after that second."""
        return any(begin > at for begin, _ in self.runs[-1])


SIZES = st.integers(2, 4)
LOOKS = st.builds(
    lambda first, pause: frozenset(range(first, LAST, pause)),
    st.integers(0, 30),
    st.sampled_from([5, 10, 30]),
)


@st.composite
def killed(draw: st.DrawFn) -> Course:
    """The rank is killed, and nothing comes after it."""
    others = [[(0, NEVER)]] * draw(SIZES)
    return Course(runs=[*others, [(0, draw(SECONDS))]], looks=draw(LOOKS))


@st.composite
def listed_again(draw: st.DrawFn) -> Course:
    """The worker leaves the list and is listed again while its rank leaves; the next ring has a rank in it."""
    others = [[(0, NEVER)]] * draw(SIZES)
    added = draw(SECONDS)
    ends = added + draw(st.integers(0, MOST_ENDS))
    begins = ends + draw(SECONDS)
    return Course(runs=[*others, [(0, ends), (begins, NEVER)]], added=added, looks=draw(LOOKS))


@st.composite
def another_driver(draw: st.DrawFn) -> Course:
    """The driver ends, and another one starts ranks, one after the other."""
    ended, started = draw(SECONDS), draw(SECONDS)
    size = draw(SIZES) + 1
    runs = [[(0, ended), (ended + started + draw(SECONDS), NEVER)] for _ in range(size)]
    return Course(runs=runs, started=ended + started, looks=draw(LOOKS))


@st.composite
def training_ends(draw: st.DrawFn) -> Course:
    """The ranks end one after the other; half of the others and more before the launcher is asked."""
    size, ends = draw(SIZES), draw(SECONDS)
    soon = [[(0, ends + draw(st.integers(0, int(ASKED_AFTER))))] for _ in range((size + 1) // 2)]
    late = [[(0, ends + draw(SECONDS))] for _ in range(size // 2)]
    return Course(runs=[*soon, *late, [(0, ends)]], looks=draw(LOOKS))


@st.composite
def execs_are_cut(draw: st.DrawFn) -> Course:
    """An API server ends, and with it some of the execs; the ranks run on."""
    size = draw(SIZES) + 1
    runs = [[(0, NEVER)]] * size
    return Course(runs=runs, cut=draw(SECONDS), cuts=draw(st.integers(1, size)), looks=draw(LOOKS))


@dataclass
class Followed:
    """A job of which all that decisions ask for is looked at, at the time they ask for it."""

    course: Course
    story: Story | None = None
    #: Whether the launcher answers.
    answers: bool = True
    #: The number of looks, by their kind.
    counts: Counter[str] = field(default_factory=Counter)
    #: When the roll calls and the looks into each worker were made, in seconds from the start.
    looked: list[tuple[str, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.names = pods(*range(len(self.course.runs)))
        self.probes, self.held = dict.fromkeys(self.names, Probe()), HeldExecs()
        if self.story is None:
            self.story = training(len(self.names))

    def states(self, until: float) -> Iterator[tuple[float, JobState]]:
        """Yield the job at each decision until so many seconds have passed."""
        second = float(self.course.added)
        while second <= until:
            state = derive(self._view(second), now=NOW + second)
            yield second, state
            again_at, has_news = self._look(state, second)
            wait = again_at - NOW - second
            second += MOMENT if has_news else max(MOMENT, wait)

    def _look(self, state: JobState, second: float) -> tuple[float, bool]:
        steps: list[Step[Any]] = [
            lost_ranks.probe(state),
            lost_ranks.call(state),
            frozen_execs.look(state),
        ]
        has_news = False
        for step in steps:
            match step.write:
                case ProbeWorkers():
                    has_news |= self._look_into_workers(step.write, second)
                case LookIntoLauncher():
                    has_news |= self._look_into_launcher(state.view, step.write, second)
        return earliest(steps) or NOW + second + 60, has_news

    def _look_into_workers(self, look: ProbeWorkers, second: float) -> bool:
        has_news = False
        for worker in look.workers:
            self._count(worker.name, second)
            outcome = "busy" if self.course.has_rank(worker.index, second) else "idle"
            before = self.probes[worker.name]
            self.probes[worker.name] = _with(before, outcome, asked_at=NOW + second)
            has_news |= _tells(before, self.probes[worker.name])
        return has_news

    def _look_into_launcher(self, view: JobView, look: LookIntoLauncher, second: float) -> bool:
        now, before = NOW + second, self.held
        self._count("call" if look.is_roll_call else "launcher", second)
        if not self.answers:
            failed = RollCall(asked_at=now, hosts=look.called)
            self.held = replace(before, asked_at=now, about=look.about, roll_call=failed)
            return False
        execs = [
            Exec(pid=index, pod=pod, started_at=LONG_AGO)
            for index, pod in enumerate(self.names)
            if self.course.has_exec(index, second)
        ]
        if not look.is_roll_call:
            ended = ended_execs.confirmed(view, execs, now=now)
            self.held = replace(before, asked_at=now, about=look.about, ended=ended)
            return True
        missing = frozenset(look.called).difference(found.pod for found in execs)
        self.held = replace(
            before,
            roll_call=RollCall(asked_at=now, answered=True, hosts=look.called, missing=missing),
        )
        return not missing <= before.roll_call.missing

    def _count(self, kind: str, second: float) -> None:
        self.counts["looks"] += 1
        self.counts[kind] += 1
        self.looked.append((kind, second))

    def _view(self, second: float) -> JobView:
        assert self.story
        view = self.story.launched(started_at=NOW + self.course.started, held=self.held)
        for index, pod in enumerate(self.names):
            view = view.pod(index, probe=self.probes[pod])
        return view


def training(size: int) -> Story:
    """A job at rest, whose driver is a horovodrun that spends host names."""
    horovodrun = Launch(program="horovodrun", np=1)
    return job(size, launch=horovodrun).launched(started_at=LONG_AGO).shown()
