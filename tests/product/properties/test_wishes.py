"""Wishes of two capabilities that do not exist, drawn at random: the core keeps its rules whoever wishes what.

The rules for several wishes are the whole truth about two capabilities that meet. So no real
capability takes part here, and each rule below is told from the wishes alone, as decide.wishes says
it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from mpijob_elastic import names
from mpijob_elastic.decide import capability, decide, derive, moves
from mpijob_elastic.decide.actions import (
    DeleteLauncher,
    DeleteWorkers,
    EndLauncher,
    Plan,
    ReleaseWorker,
    TellUser,
    Ungate,
    WriteConfig,
    normal,
    warning,
)
from mpijob_elastic.decide.capability import Capability
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.decide.wishes import (
    End,
    Hold,
    Leave,
    LeaveKind,
    Manage,
    Place,
    Relaunch,
    Release,
    Suspend,
    Wish,
)
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.pod import LauncherPhase
from tests.builders import NOW
from tests.product.properties.pairs import PAIRS
from tests.product.properties.pairs import drawn as met
from tests.product.properties.views import lived
from tests.simulated_writes import run

MARK = "mpijob-elastic/drawn"
AUTHOR = "drawn"


@dataclass(frozen=True)
class Drawn(Capability):
    """A capability with these wishes, whatever happens; a release that was written is not wished again."""

    wished: tuple[Wish, ...]
    name = AUTHOR

    def wishes(self, view: JobView, *, now: float) -> Iterable[Wish]:
        for wish in self.wished:
            if wish.until is not None and wish.until <= now:
                continue
            if isinstance(wish, Leave) and wish.release and (worker := view.worker(wish.pod)):
                yield replace(wish, release=replace(wish.release, done=MARK in worker.facts.marks))
            else:
                yield wish


def leave(pod: str, random: Random) -> Leave:
    how = random.choice(list(LeaveKind))
    release = (
        Release(annotation=MARK, mark="released", done=False) if random.random() < 0.7 else None
    )
    return Leave(
        by=AUTHOR,
        pod=pod,
        kind=how,
        why="it is drawn",
        after=random.choice([0.0, NOW - 1, NOW + 60]),
        release=release if how is LeaveKind.MOVE else None,
    )


def drawn(view: JobView, random: Random) -> Drawn:
    """A capability that wants some of all that one may want."""
    wished: list[Wish] = [leave(one.name, random) for one in view.workers if random.random() < 0.4]
    pods = [pod.ref.name for pod in view.pods]
    wished += [Hold(by=AUTHOR, pod=pod, why="it is drawn") for pod in pods if random.random() < 0.3]
    wished += [
        Place(by=AUTHOR, pod=pod, adds=("spot",), words="they are placed")
        for pod in pods
        if random.random() < 0.3
    ]
    if random.random() < 0.3:
        wished.append(Suspend(by=AUTHOR, why="a drawn wish"))
    if random.random() < 0.2:
        wished.append(Relaunch(by=AUTHOR, why="is drawn", after=random.choice([0.0, NOW + 60])))
    if random.random() < 0.05:
        wished.append(End(by=AUTHOR, note=warning("Drawn", "the launcher ends")))
    if random.random() < 0.05:
        wished.append(
            Manage(by=AUTHOR, why="somebody else's", note=normal("Elsewhere", "it runs elsewhere"))
        )
    random.shuffle(wished)
    return Drawn(
        tuple(replace(wish, until=random.choice([None, None, NOW + 30])) for wish in wished)
    )


def wished(seed: int) -> JobView:
    """A job that was worked on, where now two capabilities want something."""
    random = Random(seed)
    view = lived(random)
    return replace(view, capabilities=(drawn(view, random), drawn(view, random)))


seeds = st.integers(0, 2**63)


def all_of(view: JobView, kind: type[Wish]) -> list[Wish]:
    wishes = [wish for one in view.capabilities if isinstance(one, Drawn) for wish in one.wished]
    return [wish for wish in wishes if isinstance(wish, kind)]


def leaving(view: JobView, *hows: LeaveKind) -> set[str]:
    """The workers of which somebody wishes that they leave so."""
    found = [wish for wish in all_of(view, Leave) if isinstance(wish, Leave)]
    return {wish.pod for wish in found if wish.kind in hows}


def stops(view: JobView) -> bool:
    return view.facts.elastic and bool(all_of(view, Suspend))


def deleted(plan: Plan) -> dict[str, str]:
    removals = [
        one
        for action in plan.actions
        if isinstance(action, DeleteWorkers)
        for one in action.removals
    ]
    return {one.worker.name: one.outcome for one in removals}


def a_job_of_somebody_else_is_told_and_left(view: JobView, state: JobState, plan: Plan) -> None:
    if all_of(view, Manage):
        assert all(isinstance(action, TellUser | Ungate) for action in plan.actions)


def nobody_is_freed_who_is_held_or_leaves(view: JobView, state: JobState, plan: Plan) -> None:
    held = {wish.pod for wish in all_of(view, Hold) if isinstance(wish, Hold)}
    for action in plan.actions:
        if isinstance(action, Ungate):
            freed = {gated.ref.name for gated in action.pods}
            assert not freed & held
            assert not freed & deleted(plan).keys()
            assert not stops(view)
            assert all(names.GATES.isdisjoint(gated.kept) for gated in action.pods), (
                "all come off in one write"
            )


def a_worker_goes_for_a_reason(view: JobView, state: JobState, plan: Plan) -> None:
    for pod, outcome in deleted(plan).items():
        worker = view.worker(pod)
        assert worker is not None
        is_asked = (
            worker.index >= view.replicas
            or pod in leaving(view, *LeaveKind)
            or state.stopped
            or stops(view)
        )
        is_dead = worker.terminated or worker.facts.node_gone_at > 0.0
        assert is_asked or is_dead or outcome == "finished"
        if outcome not in ("finished", "lost", "failed", "suspended"):
            assert pod not in view.published_pods


def who_is_released_is_not_deleted(view: JobView, state: JobState, plan: Plan) -> None:
    released = {action.ref.name for action in plan.actions if isinstance(action, ReleaseWorker)}
    assert not released & deleted(plan).keys()
    assert not released & leaving(view, LeaveKind.END), "END beats MOVE"
    assert not released & set(view.published_pods)


def who_moves_leaves_enough_behind(view: JobView, state: JobState, plan: Plan) -> None:
    for action in plan.actions:
        if isinstance(action, WriteConfig) and view.elastic and not state.stopped:
            ready = {one.name for one in view.workers if one.ready and not one.facts.node_gone_at}
            wanted = {one.name for one in view.workers if one.index in state.view.wanted}
            before = ready & wanted & set(view.published_pods) - leaving(view, LeaveKind.END)
            moved = {pod for pod in action.removed if pod in before and state.by_name[pod].going}
            if moved and not any(state.by_name[pod].rank_lost for pod in moved):
                assert len(before - moved) >= min(moves.least(view), len(before))


def the_list_never_becomes_empty(view: JobView, state: JobState, plan: Plan) -> None:
    for action in plan.actions:
        if isinstance(action, WriteConfig) and view.published_pods and not state.stopped:
            assert "echo " in action.script


def nobody_joins_who_is_to_leave_for_good(view: JobView, state: JobState, plan: Plan) -> None:
    for action in plan.actions:
        if isinstance(action, WriteConfig) and view.elastic:
            assert not set(action.added) & leaving(view, LeaveKind.END)
            index = {one.name: one.index for one in view.workers}
            assert all(index[pod] < view.replicas for pod in action.added)


def a_launcher_that_started_goes_only_to_stop(view: JobView, state: JobState, plan: Plan) -> None:
    for action in plan.actions:
        if isinstance(action, DeleteLauncher):
            assert action.suspends == stops(view)
            assert stops(view) or action.launcher.phase is not LauncherPhase.STARTED
        if isinstance(action, EndLauncher):
            assert all_of(view, End)


def the_job_is_seen_again_when_a_wish_ends(view: JobView, state: JobState, plan: Plan) -> None:
    heeded = [*all_of(view, Hold), *(all_of(view, Suspend) if view.facts.elastic else ())]
    ends = [wish.until for wish in heeded if wish.until is not None]
    assert (
        not ends or view.facts.deleting or (plan.wake_at is not None and plan.wake_at <= min(ends))
    )


RULES = (
    the_job_is_seen_again_when_a_wish_ends,
    a_job_of_somebody_else_is_told_and_left,
    nobody_is_freed_who_is_held_or_leaves,
    a_worker_goes_for_a_reason,
    who_is_released_is_not_deleted,
    who_moves_leaves_enough_behind,
    the_list_never_becomes_empty,
    nobody_joins_who_is_to_leave_for_good,
    a_launcher_that_started_goes_only_to_stop,
)


@given(seeds)
def test_whatever_two_capabilities_wish_the_core_keeps_its_rules(seed: int) -> None:
    view = wished(seed)
    state, plan = derive(view, now=NOW), decide(view, now=NOW)
    for rule in RULES:
        rule(view, state, plan)


def shown(seed: int) -> set[str]:
    plan = decide(wished(seed), now=NOW)
    return {type(action).__name__ for action in plan.actions} | set(deleted(plan).values())


def test_what_the_rules_judge_is_among_the_plans() -> None:
    found = set[str]().union(*map(shown, range(1_500)))
    assert found >= {
        "Ungate",
        "ReleaseWorker",
        "DeleteLauncher",
        "EndLauncher",
        "WriteConfig",
        "suspended",
        "unused",
    }


def still(view: JobView) -> JobView:
    """The job at a moment when no other clock is ahead, and with wishes that last."""
    lasting = [
        Drawn(
            tuple(
                wish
                for wish in one.wished
                if not (isinstance(wish, Leave) and wish.kind is LeaveKind.REPLACE)
            )
        )
        for one in view.capabilities
        if isinstance(one, Drawn)
    ]
    return replace(view, capabilities=tuple(lasting))


@given(st.integers(0, 300))
def test_a_job_comes_to_rest_under_any_wishes(seed: int) -> None:
    """A wish that a write fulfils is read from the object, else it would be written for ever."""
    run(still(wished(seed)), now=NOW)


def ordered(first: Sequence[Wish], second: Sequence[Wish], view: JobView) -> JobView:
    return replace(view, capabilities=(Drawn(tuple(first)), Drawn(tuple(second))))


@given(seeds)
def test_the_order_of_capabilities_decides_no_more_than_who_speaks_first(seed: int) -> None:
    view = wished(seed)
    first, second = (one.wished for one in view.capabilities if isinstance(one, Drawn))
    one, other = (
        derive(ordered(*pair, view), now=NOW) for pair in ((first, second), (second, first))
    )
    assert (one.stopped, one.view.replicas, one.wishes.held.keys()) == (
        other.stopped,
        other.view.replicas,
        other.wishes.held.keys(),
    )
    assert [(worker.wanted, worker.moves_now) for worker in one.workers] == [
        (worker.wanted, worker.moves_now) for worker in other.workers
    ]


@given(st.sampled_from(PAIRS), seeds)
def test_each_wish_names_its_author(pair: tuple[str, str], seed: int) -> None:
    """The history and the queues tell by the author whose wish it is."""
    view = met(pair, seed)
    for each in capability.of(view):
        assert {wish.by for wish in each.wishes(view, now=NOW)} <= {each.name}
