"""Whatever worker is lost, back, listed or not: none is added beside hosts that may get over the loss of rank 0."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from hypothesis import event, given
from hypothesis import strategies as st

from mpijob_elastic.decide import decide, ledger, lost_ranks
from mpijob_elastic.decide.actions import WriteConfig
from mpijob_elastic.decide.state import SKEW
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.memory import Host, Memory
from mpijob_elastic.model.pod import Probe
from mpijob_elastic.model.progress import ProgressLine
from tests.builders import NOW, config, job, named, pods, role, worker
from tests.product.decide.test_ledger import told

SIZE = 4
# Of each worker: since when it is there, whether it is listed, and to which pod its host name was
# given last.
AGES = st.sampled_from([0.0, 5.0, lost_ranks.REFORM - 1, lost_ranks.REFORM, 3600.0])
ELDERS = st.sets(st.sampled_from(pods(*range(SIZE))))
LAST = st.sampled_from([None, "", "this", "another"])
WORKERS = st.lists(st.tuples(AGES, st.booleans(), LAST), min_size=SIZE, max_size=SIZE)


def host(pod: str, last: str) -> Host:
    return Host(pod="") if not last else named(pod, uid=None if last == "this" else last)


@st.composite
def views(draw: st.DrawFn) -> JobView:
    drawn = draw(WORKERS)
    names = pods(*range(SIZE))
    memory = Memory(
        hosts={
            pod: host(pod, last)
            for pod, (_, _, last) in zip(names, drawn, strict=True)
            if last is not None
        }
    )
    memory = msgspec.structs.replace(memory, elders=tuple(draw(ELDERS)))
    return job(
        SIZE,
        workers=tuple(
            worker(index, created_at=NOW - age) for index, (age, _, _) in enumerate(drawn)
        ),
        config=config(
            [pod for pod, (_, listed, _) in zip(names, drawn, strict=True) if listed], memory=memory
        ),
        role=role(*range(SIZE)),
        min_np_workers=draw(st.integers(0, SIZE)),
    )


@given(view=views())
def test_nobody_is_added_while_others_get_over_a_loss(view: JobView) -> None:
    another = {
        one.name
        for one in view.workers
        if view.memory.hosts.get(one.name) == host(one.name, "another")
    }
    fresh = {one.name for one in view.workers if NOW - one.facts.created_at < lost_ranks.REFORM}
    lost = (another & fresh & {*(view.memory.elders or pods(*range(SIZE)))}) - {
        *view.published_pods
    }
    added = [
        pod
        for one in decide(view, now=NOW).actions
        if isinstance(one, WriteConfig)
        for pod in one.added
    ]
    assert not (added and lost and len(view.published_pods) >= max(2, view.facts.min_np_workers))


@dataclass(frozen=True, kw_only=True)
class Ring:
    """A ring that steps from one time to another; seconds from the first look."""

    members: Sequence[int]
    began: float
    ends: float


@dataclass(frozen=True, kw_only=True)
class Rings:
    """The rings of a job, of which the last worker is lost, and the lines that its ranks write."""

    size: int
    rings: Sequence[Ring]
    step: float
    #: When the loss is known. The lost rank has died by then, or is in a ring with all others.
    lost: float
    #: By how much the clock of each worker is ahead.
    ahead: Sequence[float]
    #: Seconds between two lines of a rank.
    pause: float
    looks: Sequence[float]

    def line(self, index: int, at: float) -> ProgressLine | None:
        """Return the line that a look finds."""
        found, written = None, -math.inf
        for ring in self.rings:
            if index not in ring.members:
                continue
            for number in range(1, int((min(ring.ends, at) - ring.began) / self.step) + 1):
                ended = ring.began + number * self.step
                if ended - written < self.pause:
                    continue
                written, clock = ended, NOW + self.ahead[index]
                found = told(
                    clock + ended,
                    asked_at=NOW + at,
                    since=clock + ring.began,
                    ranks=len(ring.members),
                )
        return found

    def has_formed(self, at: float) -> bool:
        """Tell whether a ring of exactly the others has done a step since the loss."""
        last = self.rings[-1]
        return at >= max(last.began, self.lost) + self.step


@st.composite
def rings(draw: st.DrawFn) -> Rings:
    size = draw(st.integers(3, 4))
    others, everybody = [*range(size - 1)], [*range(size)]
    lost = draw(st.floats(5, 60))
    # The ring before has all of them, or lacks one that was listed a moment ago: then it is as
    # large as the ring that follows.
    first = draw(st.sampled_from([everybody, everybody[1:]]))
    died = lost - draw(st.floats(0, 5))
    if first == everybody:
        died += draw(st.floats(0, 30))
    again = died + draw(st.floats(0, 40))
    # Clocks may differ by any time, or a rank may write its lines by any other rule.
    clocks, pause = draw(
        st.sampled_from([(st.floats(-500, 500), 0.1), (st.floats(-SKEW, SKEW), 20.0)])
    )
    return Rings(
        size=size,
        rings=[
            Ring(members=first, began=-300.0, ends=died),
            Ring(members=others, began=again, ends=math.inf),
        ],
        step=draw(st.sampled_from([0.02, 0.5, 7.0])),
        lost=lost,
        ahead=[draw(clocks) for _ in range(size)],
        pause=pause,
        looks=sorted(draw(st.lists(st.floats(0, 120), min_size=2, max_size=12))),
    )


@given(course=rings())
def test_ranks_are_said_to_train_again_only_once_they_do(course: Rings) -> None:
    known, uids = None, [f"uid-of-{pod}" for pod in pods(*range(course.size - 1))]
    for at in course.looks:
        known = ledger.following(known, looked(course, at), now=NOW + at)
        said = known.have_stepped(uids, ranks=len(uids), since=NOW + course.lost, skew=SKEW)
        event(f"said: {said}, true: {course.has_formed(at)}")
        assert not said or course.has_formed(at)


def looked(course: Rings, at: float) -> JobView:
    """The job after a look into each worker."""
    workers = []
    for index in range(course.size):
        line = course.line(index, at)
        probe = Probe(busy_seen=True, busy_at=NOW + at, asked_at=NOW + at, progress=line)
        workers.append(worker(index, node="n", bound_at=NOW - 1000, probe=probe))
    return job(course.size, workers=tuple(workers))
