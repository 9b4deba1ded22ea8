"""The changes of a job in its history: what each is, when it is written, and that none is lost or doubled."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpijob_elastic import names
from mpijob_elastic.capabilities.autoscaling.facts import Autoscale, Scaling
from mpijob_elastic.capabilities.history import QUIET, changes
from mpijob_elastic.capabilities.history.changes import Sized
from mpijob_elastic.decide import decide, ledger
from mpijob_elastic.decide.actions import Note, TellUser, WriteConfig, is_late
from mpijob_elastic.model import history
from mpijob_elastic.model.history import Change
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.memory import LARGEST_OWN, Memory, SizeChange
from mpijob_elastic.model.pod import Probe
from mpijob_elastic.model.policy import Policy
from mpijob_elastic.model.progress import ProgressLine
from tests.builders import LONG_AGO, NOW, but, config, job, launcher, pending, pods, role, worker
from tests.queues import granted, preempted, queue
from tests.simulated_writes import apply

BUSY = Probe(busy_seen=True, asked_at=NOW, busy_at=NOW)
# The write before which the controller dies, once it has, and if it does not.
DIED, NEVER = -1, -2
EDITED = Sized(by="kubectl-edit", at=LONG_AGO)


@dataclass
class World:
    """A job and the time; `dies` tells before which write the controller dies once."""

    view: JobView
    now: float = NOW
    writes: list[str] = field(default_factory=list)

    def rest(self, *, dies: int = NEVER, loses: bool = False) -> None:
        """Carry out plans until nothing is due. At write `dies` the rest of the plan is dropped.

        loses: the answer to that write was lost, not the write.
        """
        for _ in range(30):
            before = len(self.writes)
            dies = self.look(dies=dies, loses=loses)
            if dies == DIED:
                dies = NEVER
            elif len(self.writes) == before:
                return
        raise AssertionError(f"not at rest: {self.writes}")

    def look(self, *, dies: int = NEVER, loses: bool = False) -> int:
        """Carry out one plan; return before which later write the controller dies."""
        wrote = False
        for action in decide(self.view, now=self.now).actions:
            if wrote and is_late(action):
                continue
            wrote = True
            dies -= 1
            if dies != DIED or loses:
                self._do(action)
            if dies == DIED:
                break
        self._hold()
        return dies

    def _do(self, action: Any) -> None:
        self.writes.append(type(action).__name__)
        if isinstance(action, WriteConfig):
            assert len(action.memory.own.get(changes.NAME, b"")) <= LARGEST_OWN
        self.view = apply(self.view, action, now=self.now)

    def edit(
        self, size: int, *, by: str = "kubectl-edit", after: float = 10.0, is_hpa: bool = False
    ) -> None:
        """Somebody sets the size, the operator creates its pods, and has no more to do."""
        self.now += after
        sized = self.view.facts.of(Sized) or EDITED
        sized = replace(sized, by=by, at=self.now, is_hpa=is_hpa)
        facts = msgspec.structs.replace(self.view.facts, replicas=size)
        self.view = but(self.view, facts=facts, replicas=size, sized=sized)
        self._create(range(size))
        self.later(QUIET)

    def ready(self, *indices: int, after: float = 20.0) -> None:
        """These workers get Ready."""
        self.now += after
        self.pods(indices, running=True, ready_at=self.now)

    def pods(self, indices: tuple[int, ...], **facts: Any) -> None:
        """What is otherwise about these workers."""
        chosen = pods(*indices)
        self.view = but(
            self.view,
            workers=tuple(
                but(one, **facts) if one.name in chosen else one for one in self.view.workers
            ),
        )

    def park(self, *indices: int, by: str) -> None:
        """Somebody sets the annotation that parks these workers."""
        self._parks(indices, parks=True, edited_by=by, edited_at=self.now)

    def unpark(self, *, edited: tuple[str, float] | None) -> None:
        """Somebody removes the annotation; edited: which last edit shows yet, and how long ago."""
        shown = {"edited_by": edited[0], "edited_at": self.now - edited[1]} if edited else {}
        before = {"edited_by": "helm", "edited_at": LONG_AGO}
        self._parks((), parks=False, **{**before, **shown})

    def resize(self, replicas: int, parked: tuple[int, ...]) -> None:
        """Somebody sets the size and the annotation in one request."""
        self.later(10)
        self.view = asking(self.view, replicas)
        shown = {"by": "mpijob-elastic-cli", "at": self.now, "edited_at": self.now}
        self._parks(parked, parks=bool(parked), **shown)
        self.later(QUIET)

    def _parks(self, indices: tuple[int, ...], **sized: Any) -> None:
        size = self.view.facts.replicas - len(indices)
        known = replace(self.view.facts.of(Sized) or EDITED, **sized)
        self.view = but(self.view, parked=indices, replicas=size, sized=known)
        self._create(index for index in range(self.view.facts.replicas) if index not in indices)
        self._hold()

    def _create(self, indices: Iterable[int]) -> None:
        """The operator creates the pods that are missing."""
        new = [
            pending(index, created_at=self.now)
            for index in indices
            if not self.view.worker(pods(index)[0])
        ]
        workers = tuple(sorted((*self.view.workers, *new), key=lambda one: one.index))
        self.view = but(self.view, workers=workers)

    def _hold(self) -> None:
        """The operator creates the placeholders of parked workers that have no pod any more."""
        indices = sorted(self.view.policy.parked or ())
        old = {one.index: one for one in self.view.placeholders}
        gone = [index for index in indices if not self.view.worker(pods(index)[0])]
        held = (
            old.get(index) or pending(index, created_at=self.now, gates=(names.GATE_PARKED,))
            for index in gone
        )
        self.view = replace(self.view, placeholders=tuple(held))

    def later(self, seconds: float) -> None:
        self.now += seconds

    @property
    def last(self) -> Change:
        """The newest change."""
        return history.entries(self.text)[-1]

    @property
    def text(self) -> str:
        """The history as written."""
        return self.view.config.facts.history.decode() if self.view.config else ""

    @property
    def told(self) -> list[str]:
        """The history in words."""
        return [_words(change) for change in history.entries(self.text)]


def _words(change: Change) -> str:
    after = ["-" if found is None else f"{found:g}" for found in (change.listed, change.trained)]
    cut = f" cut {change.cut}" if change.cut else ""
    return (
        f"{change.cause} {change.by or '-'} {change.before}→{change.after} {' '.join(after)}{cut}"
    )


def trains(size: int, **facts: Any) -> World:
    """A job that has trained on so many workers for long."""
    memory = Memory(added_at=LONG_AGO, scale=SizeChange(before=0, after=size, at=LONG_AGO))
    known = {
        "config": config(pods(*range(size)), memory=memory),
        "role": role(*range(9)),
        "sized": EDITED,
    }
    workers = tuple(worker(index, probe=BUSY) for index in range(size))
    return World(asking(job(size, **{"workers": workers, **known, **facts}), size))


def starts(size: int) -> World:
    """A job whose workers are Ready, and whose list names none yet."""
    workers = tuple(worker(index, probe=BUSY) for index in range(size))
    view = job(size, workers=workers, config=config([]), role=role(*range(9)), sized=EDITED)
    return World(asking(view, size))


def asking(view: JobView, replicas: int) -> JobView:
    """The same job, of which Worker.replicas is so many."""
    return but(view, facts=msgspec.structs.replace(view.facts, replicas=replicas))


def mark(world: World, name: str = names.PHASE) -> str:
    sized = world.view.facts.of(Sized)
    assert sized is not None
    return sized.phase if name == names.PHASE else sized.change


def test_a_job_at_rest_has_no_history_and_nothing_is_written() -> None:
    world = trains(3)
    world.rest()
    assert (world.text, world.writes) == ("", [])


def test_a_scale_out_costs_one_write_more_than_its_list_and_its_phase() -> None:
    world = trains(2)
    world.edit(3)
    world.rest()
    assert (world.told, mark(world), world.writes) == ([], "Scaling", ["TellUser"])
    world.ready(2)
    world.rest()
    world.later(5)
    world.rest()
    assert world.told == ["user kubectl-edit 2→3 25 -"]
    assert (mark(world), mark(world, names.CHANGE)) == ("", "")
    world.later(3)
    world.pods((2,), probe=BUSY)
    world.rest()
    assert world.told == ["user kubectl-edit 2→3 25 33"]
    assert world.writes == ["TellUser", "WriteConfig", "RefreshLauncher", "TellUser", "WriteConfig"]


def test_nothing_is_marked_while_the_operator_writes_its_status() -> None:
    """A conflict makes it put the job off."""
    world = trains(2)
    world.edit(3)
    world.later(-QUIET)
    world.rest()
    assert world.writes == []
    assert decide(world.view, now=world.now).wake_at == world.now + QUIET
    world.view = but(world.view, workers=world.view.workers[:2])
    world.later(60)
    world.rest()
    assert mark(world) == ""


def test_a_scale_in_is_written_with_its_list() -> None:
    world = trains(3)
    world.edit(1)
    world.rest()
    assert world.told == ["user kubectl-edit 3→1 5 -"]
    assert (mark(world), mark(world, names.CHANGE)) == ("Draining", "")
    assert world.writes == ["WriteConfig", "RefreshLauncher", "TellUser"]
    world.later(700)
    world.rest()
    assert world.told == ["user kubectl-edit 3→1 5 - cut 2"]
    assert world.writes[3:] == ["WriteConfig", "DeleteWorkers", "TellUser"]
    assert mark(world) == ""


def test_a_worker_that_ended_by_itself_is_none_that_the_timeout_cut() -> None:
    world = trains(3)
    world.edit(1)
    world.rest()
    world.later(700)
    world.pods((1,), running=False, ready_at=None, terminated=True)
    world.rest()
    assert world.writes[3:] == ["WriteConfig", "DeleteWorkers", "TellUser"]
    assert world.told == ["user kubectl-edit 3→1 5 - cut 1"]


AT_ONCE = Policy(drain_timeout=0.0)


@pytest.mark.parametrize(
    ("looks", "cut"),
    [
        pytest.param({"probe": BUSY}, " cut 2", id="ranks were seen"),
        pytest.param({"probe": Probe()}, "", id="nobody has looked"),
        pytest.param({"probe": replace(BUSY, idle_at=NOW, idle_since=NOW)}, "", id="none last"),
        pytest.param({"probe": Probe(), "opaque": True}, " cut 2", id="nobody can look"),
    ],
)
def test_ranks_that_have_no_time_to_leave_are_told_in_the_write_of_the_list(
    looks: dict[str, Any], cut: str
) -> None:
    """Another write would hold up the deletion."""
    world = trains(3, policy=AT_ONCE)
    world.pods((1, 2), **looks)
    world.edit(1)
    world.rest()
    assert world.told == [f"user kubectl-edit 3→1 5 -{cut}"]
    assert world.writes == ["WriteConfig", "RefreshLauncher", "DeleteWorkers"]


def test_a_notice_brings_a_mark_along_beside_a_deletion() -> None:
    """Alone the mark waits for the deletion, which changes it."""
    world = trains(3)
    world.edit(1)
    world.look()
    world.look()
    world.view = but(world.view, policy=AT_ONCE, problems=("a bad value",))
    [told] = [one for one in decide(world.view, now=world.now).actions if isinstance(one, TellUser)]
    assert (told.only_marks, told.marks[names.PHASE]) == (False, "Draining")


def test_a_drain_that_somebody_cuts_short_is_told_as_after_its_time() -> None:
    world = trains(3)
    world.edit(1)
    world.rest()
    world.pods((1, 2), probe=replace(BUSY, asked_at=world.now))
    world.view = but(world.view, policy=AT_ONCE)
    world.rest()
    assert world.told == ["user kubectl-edit 3→1 5 - cut 2"]


def test_a_worker_that_moves_without_a_time_to_drain_has_its_ranks_cut() -> None:
    world = trains(3, policy=AT_ONCE)
    world.pods((2,), disruption="taint spot")
    world.rest()
    assert world.told == ["node - 3→2 - - cut 1"]


def test_a_size_that_was_never_reached_is_in_the_history_too() -> None:
    world = trains(2)
    world.edit(3, by="kubectl", after=10)
    world.rest()
    world.edit(1, by="kube-controller-manager", is_hpa=True, after=10)
    world.rest()
    assert world.told == ["user kubectl 2→3 - -", "HPA kube-controller-manager 3→1 5 -"]


def test_back_to_the_size_before_costs_a_write_and_is_two_changes() -> None:
    world = trains(1)
    world.edit(2)
    world.ready(1)
    world.rest()
    for size in (3, 2):
        world.edit(size)
        world.rest()
    assert world.told[1:] == ["user kubectl-edit 2→3 - -", "user kubectl-edit 3→2 5 -"]
    assert mark(world, names.CHANGE) == ""


@pytest.mark.parametrize(
    ("facts", "sized", "cause"),
    [
        ({}, Sized(by="argocd-controller", at=NOW), "user"),
        ({}, Sized(by="kube-controller-manager", at=NOW, is_hpa=True), "HPA"),
        ({}, Sized(by=names.PROGRAM, at=NOW), "user"),
        ({"scaling": Scaling(scale_timeout=60.0)}, Sized(by=names.PROGRAM, at=NOW), "timeout"),
        ({"scaling": Scaling(scale_timeout=60.0)}, Sized(by="kubectl", at=NOW), "user"),
        (
            {"scaling": Scaling(autoscale=Autoscale(fill=True))},
            Sized(by=names.PROGRAM, at=NOW),
            "fill",
        ),
    ],
)
def test_the_cause_of_a_size_is_told_by_who_set_it(
    facts: dict[str, Any], sized: Sized, cause: str
) -> None:
    world = trains(2, **facts)
    world.edit(1, by=sized.by, is_hpa=sized.is_hpa, after=1)
    world.rest()
    assert world.told == [f"{cause} {sized.by} 2→1 5 -"]


def test_workers_that_are_parked_are_a_change_of_who_set_the_annotation() -> None:
    world = trains(4)
    world.edit(3)
    world.rest()
    world.later(1000)
    world.rest()
    world.park(1, by="kubectl-annotate")
    world.rest()
    assert world.told == ["user kubectl-edit 4→3 5 - cut 1", "user kubectl-annotate 3→2 0 -"]
    assert (world.last.at, world.last.note) == (world.now, "by parking")


@pytest.mark.parametrize("recorded", [False, True])
def test_a_first_change_that_is_a_parking_is_told_as_one(recorded: bool) -> None:
    """A job whose list was there before the controller kept a record of its size has none yet."""
    world = trains(4)
    if recorded:
        world = starts(4)
        world.rest()
        assert world.writes[0] == "WriteConfig"
    world.later(118)
    world.park(1, 3, by="kubectl-annotate")
    world.rest()
    assert world.told == ["user kubectl-annotate 4→2 0 -"]
    assert (world.last.at, world.last.note) == (world.now, "by parking")


def test_a_first_change_that_is_a_size_is_no_parking() -> None:
    for world in (trains(4), starts(4)):
        world.rest()
        world.park(3, by="kubectl-annotate")
        world.edit(3)
        world.view = but(world.view, parked=(), replicas=3)
        world.rest()
        assert world.told == ["user kubectl-edit 4→3 5 -"]


@pytest.mark.parametrize(
    ("before", "after", "told", "note"),
    [
        ((3, ()), (2, (0,)), "3→1", "partly by parking"),
        ((2, (0,)), (3, ()), "1→3", "partly by parked workers that came back"),
        ((4, (1, 2)), (3, (1,)), "2→2", ""),
        ((4, (1, 3)), (3, (1,)), "2→2", ""),
        ((4, (2, 3)), (2, ()), "2→2", ""),
        ((5, (3,)), (2, ()), "4→2", ""),
        ((2, ()), (4, (1,)), "2→3", ""),
        ((6, (1, 2, 3)), (4, ()), "3→4", "partly by parked workers that came back"),
    ],
)
def test_a_change_that_partly_parks_says_so(
    before: tuple[int, tuple[int, ...]],
    after: tuple[int, tuple[int, ...]],
    told: str,
    note: str,
) -> None:
    world = starts(before[0])
    world.rest()
    if before[1]:
        world.later(10)
        world.park(*before[1], by="kubectl-annotate")
        world.rest()
    known = len(world.told)
    world.resize(*after)
    world.rest()
    found = history.entries(world.text, history.read_change(mark(world, names.CHANGE)))[known:]
    sizes = [f"{one.before}→{one.after}" for one in found]
    assert sizes == ([] if told == "2→2" else [told])
    assert [one.note for one in found] == [note for _ in sizes]


def test_a_change_before_which_nobody_knows_who_was_parked_has_no_note() -> None:
    """A record of an earlier version has no Worker.replicas."""
    world = trains(3)
    world.rest()
    world.resize(2, (0,))
    world.rest()
    assert world.last.note == ""


@pytest.mark.parametrize(
    ("edited", "told", "ago"),
    [
        pytest.param(None, "unknown", 0, id="its only field went"),
        pytest.param(("kubectl-edit", 1), "kubectl-edit", 1, id="it has others"),
        pytest.param(("kubectl-label", 100), "unknown", 0, id="an earlier edit of something else"),
    ],
)
def test_who_removes_the_annotation_is_told_only_if_a_trace_is_left(
    edited: tuple[str, float] | None, told: str, ago: float
) -> None:
    world = trains(4, sized=replace(EDITED, edited_by="helm", edited_at=LONG_AGO))
    world.park(1, by="kubectl-annotate")
    world.rest()
    world.later(200)
    world.unpark(edited=edited)
    world.rest()
    assert world.told[1:] == [f"user {told} 3→4 {ago} -"]
    assert (world.last.at, world.last.note) == (world.now - ago, "parked workers came back")


def test_a_lost_worker_is_a_change_that_ends_when_all_train_again() -> None:
    world = trains(3)
    world.pods(
        (1,),
        running=False,
        terminated=True,
        ready_at=None,
        probe=Probe(),
        last_state="Failed; OOMKilled",
    )
    world.rest()
    assert world.told == ["failure - 3→2 - -"]
    assert history.entries(world.text)[0].note == "j-worker-1: Failed; OOMKilled"


def test_a_node_and_a_queue_are_causes_too() -> None:
    world = trains(3)
    world.pods((2,), disruption="taint spot")
    world.rest()
    assert world.told == ["node - 3→2 - -"]
    wanted = queue(granted(), granted(pods(1)[0]), preempted(*pods(2)))
    world = trains(3, queue=wanted)
    world.look()
    assert world.told == ["Kueue - 3→2 - -"]


def test_a_loss_while_a_size_is_on_its_way_keeps_both_open() -> None:
    world = trains(2)
    world.edit(3)
    world.pods((1,), running=False, ready_at=None)
    world.rest()
    assert world.told == ["user kubectl-edit 2→3 - -", "failure - 2→1 - -"]
    world.later(60)
    world.ready(1, 2)
    for _ in range(4):
        world.rest()
        world.later(40)
    assert [line.split()[3] != "-" for line in world.told] == [True, True]


def test_what_stands_on_the_mpijob_yet_is_not_recorded_again() -> None:
    world = trains(2)
    world.edit(3)
    world.rest()
    world.edit(2)
    world.look()
    assert mark(world, names.CHANGE)
    for _ in range(2):  # the second change of the list would find nothing of the first
        world.pods((1,), running=False, ready_at=None)
        world.look()
        world.later(60)
        world.ready(1)
        world.look()
    asked = [line for line in world.told if line.startswith("user")]
    assert asked == ["user kubectl-edit 2→3 - -", "user kubectl-edit 3→2 5 -"]


@pytest.mark.parametrize("size", [2, 3])
def test_a_mark_of_somebody_else_that_is_too_long_to_remember_is_over_at_once(size: int) -> None:
    """Each text is short enough, and together they are not: such a record was read as none, and written for ever."""
    long = "\N{GRINNING FACE}" * history.LONGEST_NOTE
    marked = changes.rendered(
        Change(at=NOW, cause=long, by=long, before=2, after=size, note=long)
    ).decode()
    world = trains(2, sized=replace(EDITED, change=marked))
    world.rest()
    world.rest()
    assert (mark(world, names.CHANGE), world.writes.count("WriteConfig")) == ("", 1)


def test_a_mark_of_somebody_else_that_changes_nothing_awaits_no_training() -> None:
    same = changes.rendered(Change(at=NOW, cause="user", by="x", before=2, after=2)).decode()
    world = trains(2, sized=replace(EDITED, change=same))
    world.rest()
    world.later(60)
    world.rest()
    assert world.told == ["user x 2→2 0 -"]


def test_a_suspended_job_records_nothing_until_it_runs_again() -> None:
    world = trains(2)
    world.view = but(world.view, suspended_by="annotation x")
    world.edit(1)
    world.rest()
    assert (world.told, mark(world)) == ([], "Suspended")


@pytest.mark.parametrize("comes", [True, False])
def test_a_change_during_which_training_was_stopped_is_followed_no_more(comes: bool) -> None:
    """What the suspension took is no time of the change; a worker that never came is unlisted still."""
    world = trains(2)
    world.edit(3)
    if comes:
        world.ready(2)
        world.rest()
    told = world.told
    world.later(20)
    world.view = but(world.view, launcher=launcher(created_at=world.now))
    world.ready(2)
    for _ in range(3):
        world.rest()
        world.later(10)
        world.pods((0, 1, 2), probe=BUSY)
    found = history.entries(world.text, history.read_change(mark(world, names.CHANGE)))
    assert [_words(one) for one in found] == (told or ["user kubectl-edit 2→3 - -"])
    world.edit(2)
    world.rest()
    assert world.told[1:] == ["user kubectl-edit 3→2 5 -"]


def test_a_job_that_tells_its_progress_counts_no_suspension_either() -> None:
    world = telling(2)
    world.edit(3, after=0.0)
    world.ready(2, after=20.0 - QUIET)
    world.rest()
    world.later(5)
    world.view = but(world.view, launcher=launcher(created_at=world.now))
    world.later(30)
    world.tell(0, 1, 2, since=7.0, ranks=3, kept=7.0, first=world.now - 7.0)
    world.rest()
    assert (world.told, world.costs) == (["user kubectl-edit 2→3 20 -"], [])


def test_more_lost_workers_are_counted_in_words() -> None:
    for lost, more in ((2, "1 more worker left"), (3, "2 more workers left")):
        world = trains(4)
        world.pods(tuple(range(4))[-lost:], disruption="taint spot")
        world.rest()
        assert history.entries(world.text)[0].note.endswith(f": taint spot; {more}")


STEPS = st.lists(
    st.tuples(st.integers(1, 5), st.booleans(), st.integers(0, 12), st.booleans()),
    min_size=1,
    max_size=6,
)


@given(STEPS)
def test_whenever_the_controller_dies_no_size_that_it_saw_is_lost_or_doubled(
    steps: list[tuple[int, bool, int, bool]],
) -> None:
    world, sizes = trains(2), [2]
    for size, comes, dies, loses in steps:
        world.edit(size)
        world.rest(dies=dies, loses=loses)
        sizes += [size] if size != sizes[-1] else []
        if comes:
            world.ready(*range(size))
            world.rest(dies=dies, loses=loses)
            world.later(10)
            world.rest()
    found = history.entries(world.text, history.read_change(mark(world, names.CHANGE)))
    assert [(one.before, one.after) for one in found if one.by] == list(pairwise(sizes))
    assert len({one.key for one in found}) == len(found)


def test_a_parking_that_follows_an_unseen_return_is_by_its_own_author() -> None:
    """The return waits on the MPIJob for the list; the size itself was edited long before both."""
    world = trains(4)
    world.park(0, by="kubectl-annotate")
    world.rest()
    world.ready(*range(4), after=60)  # the drain is over, and worker 0 is deleted
    world.rest()
    world.later(30)
    world.unpark(edited=None)
    world.rest()
    world.later(QUIET)
    world.rest()
    world.later(30)
    world.park(0, by="kubectl-annotate")
    world.rest()
    found = history.entries(world.text, history.read_change(mark(world, names.CHANGE)))
    assert [(one.before, one.after, one.by) for one in found] == [
        (4, 3, "kubectl-annotate"),
        (3, 4, history.UNKNOWN),
        (4, 3, "kubectl-annotate"),
    ]


PARKINGS = st.lists(
    st.tuples(st.sets(st.integers(0, 3), max_size=3), st.booleans(), st.integers(0, 12)),
    min_size=1,
    max_size=6,
)


@given(steps=PARKINGS, is_new=st.booleans())
def test_whenever_the_controller_dies_no_parking_that_it_saw_is_lost_or_doubled(
    *, steps: list[tuple[set[int], bool, int]], is_new: bool
) -> None:
    world, sizes = starts(4) if is_new else trains(4), [4]
    world.rest()
    for parked, comes, dies in steps:
        world.later(30)
        if parked:
            world.park(*sorted(parked), by="kubectl-annotate")
        else:
            world.unpark(edited=None)
        world.rest(dies=dies)
        sizes += [4 - len(parked)] if 4 - len(parked) != sizes[-1] else []
        world.later(QUIET)
        world.rest()
        if comes:
            world.ready(*range(4))
            world.rest()
    found = history.entries(world.text, history.read_change(mark(world, names.CHANGE)))
    assert [(one.before, one.after) for one in found if one.by] == list(pairwise(sizes))
    assert {one.by for one in found if one.by} <= {"kubectl-annotate", history.UNKNOWN}


@dataclass
class Telling(World):
    """A job whose ranks tell their progress, and the ledger that follows it."""

    def tell(self, *indices: int, since: float, ranks: int, kept: float, **facts: Any) -> None:
        """These workers were looked at, and step in a ring that began so many seconds ago."""
        usual = {"alive": True, "process": 1, "step": 9, "samples": 8, "total": 0}
        sums = {"repeated": 0.0, "again": 0, "open": 0.0, "step_ms": 500.0, "own_ms": 400.0}
        begun = self.now - since
        first = facts.pop("first", LONG_AGO + 100)
        times = {"asked_at": self.now, "at": self.now, "since": begun, "first": first}
        line = ProgressLine(**{**usual, **sums, **times, "ranks": ranks, "kept": kept, **facts})
        self.pods(indices, node="n", bound_at=LONG_AGO, probe=replace(BUSY, progress=line))
        self.follow()

    def follow(self) -> None:
        found = ledger.following(self.view.ledger, self.view, now=self.now)
        self.view = replace(self.view, ledger=found)

    @property
    def costs(self) -> list[str]:
        """What the Events said."""
        return [note.message for note in self.notes if note.reason == "TrainsAgain"]

    notes: list[Note] = field(default_factory=list)

    def _do(self, action: Any) -> None:
        super()._do(action)
        self.notes += action.notes
        self.follow()


def telling(size: int) -> Telling:
    found = Telling(trains(size).view)
    found.tell(*range(size), since=3500.0, ranks=size, kept=3500.0)
    return found


def test_the_message_says_what_a_scale_out_has_cost() -> None:
    """The old ring trains on for 24 s after the edit, and the new one takes its first step 9 s later."""
    world = telling(2)
    world.edit(3, after=0.0)
    edited = world.now - QUIET
    world.ready(2, after=20.0 - QUIET)
    world.rest()
    assert world.costs == []
    world.later(edited + 40.0 - world.now)
    world.tell(0, 1, since=7.0, ranks=3, kept=3500.0 + 24.0 + 7.0)
    world.rest()
    assert world.told == ["user kubectl-edit 2→3 20 -"]
    world.tell(2, since=7.0, ranks=3, kept=7.0, first=world.now - 7.0)
    world.rest()
    assert world.told == ["user kubectl-edit 2→3 20 33"]
    assert (world.last.repeated, world.last.lost) == (0, 2 * 9.0 + 33.0)
    message = "2→3 workers: trains again after 33s, 51 worker-seconds lost, no steps repeated"
    assert world.costs == [message]
    world.later(60)
    world.rest()
    assert world.costs == [message]


def test_a_scale_in_has_a_cost_too() -> None:
    world = telling(3)
    world.edit(2, after=0.0)
    edited = world.now - QUIET
    world.rest()
    world.later(edited + 30.0 - world.now)
    world.tell(0, 1, since=21.0, ranks=2, kept=3500.0 + 6.0 + 21.0, again=4)
    world.rest()
    assert world.told == ["user kubectl-edit 3→2 5 9"]
    assert world.last.repeated == 4
    assert world.costs[0].endswith("4 steps repeated")


def test_a_controller_that_saw_nothing_before_the_change_tells_no_cost() -> None:
    world = telling(3)
    world.edit(2, after=0.0)
    world.rest()
    world.view = replace(world.view, ledger=None)
    world.later(20.0)
    world.tell(0, 1, since=11.0, ranks=2, kept=3500.0)
    world.rest()
    assert (world.last.trained, world.last.lost) == (14.0, None)
    assert world.costs == []
