"""Every order in which we, the operator, the kubelets, Horovod's driver, the user and a fault can move."""

from __future__ import annotations

import pytest

from mpijob_elastic.decide import leaving
from mpijob_elastic.decide.actions import DeleteWorkers, Note, Plan, Removal
from mpijob_elastic.model.job import JobView
from tests.modelcheck import explore
from tests.modelcheck.controller import Controller, really_decide
from tests.modelcheck.world import Setup

FAULTS = ("fails", "evicted", "launcher-deleted", "succeeds", "config-deleted", "elastic-flips")


def one_fault(fault: str) -> Setup:
    return Setup(size=2, edits=1, start=2, fault_budget=1, faults=frozenset([fault]))


# What may happen, and how many worlds that must give at least: a check that visits few has lost its moves.
SETUPS = {
    "two workers, two edits": (Setup(size=2, edits=2, start=2), 300),
    "three workers, two edits": (Setup(size=3, edits=2, start=2), 3_000),
    "four workers, one edit": (Setup(size=4, edits=1, start=4), 4_000),
    "caches that lag behind": (Setup(size=3, edits=1, start=3, late_caches=True), 1_500),
    **{f"a fault: {fault}": (one_fault(fault), 150) for fault in FAULTS},
}


@pytest.mark.parametrize(("setup", "floor"), SETUPS.values(), ids=SETUPS.keys())
def test_nothing_unsafe_happens_and_the_goal_is_reached(setup: Setup, floor: int) -> None:
    controller = Controller(setup=setup)
    graph = explore.explore(setup, controller)
    goals = explore.check_goal(graph, controller)
    explore.check_rest(graph)
    print(f"{len(graph.worlds)} worlds, {goals} of them the goal")  # noqa: T201 - the count belongs to the result
    assert len(graph.worlds) >= floor


def hasty_removals(view: JobView) -> leaving.Leaving:
    """A policy that deletes surplus workers at once, published or not."""
    note = Note(reason="Hasty", message="")
    surplus = [worker for worker in view.surplus() if not worker.deleting]
    return leaving.Leaving(removals=tuple(Removal(worker=one, outcome="hasty", note=note) for one in surplus))


def hasty(view: JobView) -> Plan:
    removals = hasty_removals(view).removals
    return Plan(actions=(DeleteWorkers(removals=removals),)) if removals else really_decide(view)


def idle(_: JobView) -> Plan:
    """A policy that never does anything."""
    return Plan()


def test_a_policy_that_deletes_what_is_published_is_caught() -> None:
    setup = Setup(size=2, edits=1, start=2)
    with pytest.raises(explore.Mistake):
        explore.explore(setup, Controller(setup=setup, decide=hasty, removals=hasty_removals))


def test_a_policy_that_never_comes_to_the_goal_is_caught() -> None:
    setup = Setup(size=2, edits=1, start=2)
    controller = Controller(setup=setup, decide=idle)
    graph = explore.explore(setup, controller)
    with pytest.raises(explore.Mistake, match="goal cannot be reached"):
        explore.check_goal(graph, controller)
