"""Every order in which we, the operator, the kubelets, the driver, the user and what breaks can move.

The driver is Horovod's, or elastic.sh.
"""

import pytest

from mpijob_elastic.model.policy import Policy
from tests.lab.deaths import drawn
from tests.modelcheck import explore
from tests.modelcheck.controller import Controller
from tests.modelcheck.world import LONGEST_DRAIN, TICK, Setup

FAULTS = frozenset({"fails", "evicted", "launcher-deleted", "config-deleted", "elastic-flips"})
LOST = frozenset({"fails", "evicted"})
ENDS = frozenset({"succeeds"})
GOES = frozenset({"node-goes"})
NODE_LOST = frozenset({"node-lost"})
WEBHOOK = frozenset({"webhook-errs"})
GENTLY = frozenset({"deleted-gently"})
# What breaks in elastic.sh, or between it and us.
DRIVER = frozenset({"driver-restarts", "rank-stays", "touch-lost"})
STOPPED = frozenset({"fails", "evicted", "launcher-deleted", "elastic-flips"})
SMALL = Policy(min_replicas=1, drain_timeout=LONGEST_DRAIN * TICK)

# What may happen, and how many worlds that must give at least: a check that visits few has lost its
# moves.
QUICK = {
    "three workers, one edit": (Setup(size=3, edits=1, start=3), 1_000),
    "two workers, three edits": (Setup(size=2, edits=3, start=2), 1_000),
    "one of two workers finds no node": (
        Setup(size=2, edits=0, start=2, running=False, unplaced=0b01, policy=SMALL),
        3_000,
    ),
    "a rank dies in a pod that runs on": (
        Setup(
            size=3, edits=0, start=3, fault_budget=1, faults=frozenset({"rank-dies"}), watched=True
        ),
        100,
    ),
    "the end, workers are kept": (
        Setup(size=3, edits=1, start=2, fault_budget=1, faults=ENDS),
        300,
    ),
    "the end, workers are cleaned up": (
        Setup(size=3, edits=1, start=2, fault_budget=1, faults=ENDS, clean_pod_policy="Running"),
        800,
    ),
    "suspended, resumed, suspended": (Setup(size=1, edits=0, start=1, suspensions=3), 1_000),
    "two workers, suspended": (Setup(size=2, edits=0, start=2, suspensions=1), 1_000),
    "the first is parked, and comes back": (Setup(size=2, edits=0, start=2, parks=2), 300),
    "parked and back by caches that lag": (
        Setup(size=2, edits=0, start=2, parks=2, late_caches=True),
        2_500,
    ),
    "elastic.sh, three workers, one edit": (
        Setup(size=3, edits=1, start=3, elastic_sh=True),
        1_500,
    ),
    "elastic.sh, two workers, three edits": (
        Setup(size=2, edits=3, start=2, elastic_sh=True),
        5_000,
    ),
    "elastic.sh, caches that lag, two edits": (
        Setup(size=2, edits=2, start=2, late_caches=True, elastic_sh=True),
        4_000,
    ),
    "elastic.sh, trouble with the driver, one edit": (
        Setup(
            size=2,
            edits=1,
            start=2,
            fault_budget=1,
            faults=DRIVER | {"launcher-deleted"},
            elastic_sh=True,
        ),
        5_000,
    ),
    "elastic.sh, the list is lost, one edit": (
        Setup(
            size=2,
            edits=1,
            start=2,
            fault_budget=1,
            faults=frozenset({"config-deleted"}),
            elastic_sh=True,
        ),
        8_000,
    ),
    "elastic.sh, one loss": (
        Setup(size=2, edits=0, start=2, fault_budget=1, faults=LOST, elastic_sh=True),
        8_000,
    ),
    "elastic.sh, two workers, suspended": (
        Setup(size=2, edits=0, start=2, suspensions=1, elastic_sh=True),
        1_500,
    ),
    "elastic.sh, suspended and resumed": (
        Setup(size=1, edits=0, start=1, suspensions=2, elastic_sh=True),
        2_500,
    ),
    "elastic.sh, suspended, trouble with the driver": (
        Setup(
            size=2,
            edits=0,
            start=2,
            suspensions=1,
            fault_budget=1,
            faults=DRIVER,
            elastic_sh=True,
        ),
        6_000,
    ),
    "elastic.sh, the first is parked, and comes back": (
        Setup(size=2, edits=0, start=2, parks=2, elastic_sh=True),
        2_000,
    ),
    "elastic.sh, a node goes": (
        Setup(size=2, edits=0, start=2, fault_budget=1, faults=GOES, policy=SMALL, elastic_sh=True),
        7_000,
    ),
}
# Some fifteen minutes of CPU together: a run draws an eighth of them by date, and `make long` runs all.
LONG = {
    "three workers, two edits": (Setup(size=3, edits=2, start=2), 5_000),
    "a node goes, one edit": (
        Setup(size=2, edits=1, start=2, fault_budget=1, faults=GOES, policy=SMALL),
        5_000,
    ),
    "a node is lost, one edit": (
        Setup(size=2, edits=1, start=2, fault_budget=1, faults=NODE_LOST),
        1_000,
    ),
    "somebody deletes a worker, one edit": (
        Setup(size=2, edits=1, start=2, fault_budget=1, faults=frozenset({"deleted-gently"})),
        5_000,
    ),
    "four workers, one edit": (Setup(size=4, edits=1, start=4), 4_000),
    "from the creation on, one edit": (Setup(size=2, edits=1, start=2, running=False), 40_000),
    "caches that lag, two edits": (Setup(size=3, edits=2, start=2, late_caches=True), 15_000),
    "caches that lag, one loss": (
        Setup(size=2, edits=1, start=2, late_caches=True, fault_budget=1, faults=LOST),
        30_000,
    ),
    "any one fault, one edit": (
        Setup(size=3, edits=1, start=2, fault_budget=1, faults=FAULTS),
        40_000,
    ),
    "one of three nodes is lost": (
        Setup(size=3, edits=0, start=3, fault_budget=1, faults=NODE_LOST),
        1_000,
    ),
    "two workers, suspended and resumed": (Setup(size=2, edits=0, start=2, suspensions=2), 20_000),
    "suspended by caches that lag": (
        Setup(size=2, edits=0, start=2, suspensions=1, late_caches=True),
        5_000,
    ),
    "suspended and resumed, the webhook away": (
        Setup(size=1, edits=0, start=1, suspensions=2, fault_budget=1, faults=WEBHOOK),
        3_000,
    ),
    "suspended and resumed, one loss": (
        Setup(size=1, edits=0, start=1, suspensions=2, fault_budget=1, faults=STOPPED),
        8_000,
    ),
    "the first is parked, one loss": (
        Setup(size=2, edits=0, start=2, parks=1, fault_budget=1, faults=LOST),
        20_000,
    ),
    "two nodes go": (
        Setup(size=2, edits=0, start=2, fault_budget=2, faults=GOES, policy=SMALL),
        15_000,
    ),
    "elastic.sh, suspended, somebody deletes a worker": (
        Setup(
            size=1,
            edits=0,
            start=1,
            suspensions=1,
            fault_budget=1,
            faults=GENTLY,
            elastic_sh=True,
        ),
        12_000,
    ),
    "elastic.sh, from the creation on": (
        Setup(size=2, edits=0, start=2, running=False, elastic_sh=True),
        15_000,
    ),
    "elastic.sh, caches that lag, three workers": (
        Setup(size=3, edits=2, start=2, late_caches=True, elastic_sh=True),
        60_000,
    ),
    "elastic.sh, two troubles with the driver, one edit": (
        Setup(
            size=2,
            edits=1,
            start=2,
            fault_budget=2,
            faults=DRIVER | {"config-deleted"},
            elastic_sh=True,
        ),
        30_000,
    ),
    "elastic.sh, suspended and resumed, two workers": (
        Setup(size=2, edits=0, start=2, suspensions=2, elastic_sh=True),
        70_000,
    ),
    "elastic.sh, suspended and resumed, one loss": (
        Setup(
            size=1,
            edits=0,
            start=1,
            suspensions=2,
            fault_budget=1,
            faults=LOST | DRIVER | {"launcher-deleted"},
            elastic_sh=True,
        ),
        80_000,
    ),
    "elastic.sh, one failure, one edit": (
        Setup(
            size=2,
            edits=1,
            start=2,
            fault_budget=1,
            faults=frozenset({"fails"}),
            elastic_sh=True,
        ),
        150_000,
    ),
    "elastic.sh, a lost touch, three edits": (
        Setup(
            size=2,
            edits=3,
            start=2,
            fault_budget=1,
            faults=frozenset({"touch-lost"}),
            elastic_sh=True,
        ),
        15_000,
    ),
    "elastic.sh, a lost touch and a loss": (
        Setup(
            size=1,
            edits=0,
            start=1,
            fault_budget=2,
            faults=LOST | {"touch-lost"},
            elastic_sh=True,
        ),
        25_000,
    ),
    "elastic.sh, a node is lost": (
        Setup(size=2, edits=0, start=2, fault_budget=1, faults=NODE_LOST, elastic_sh=True),
        5_000,
    ),
}


def setups(
    long: pytest.MarkDecorator, quick: tuple[pytest.MarkDecorator, ...] = (), every: int = 1
) -> pytest.MarkDecorator:
    """All setups as parameters of a test, with marks; of the long ones one of `every`."""
    return pytest.mark.parametrize(
        ("setup", "floor"),
        [
            *(pytest.param(*setup, id=name, marks=quick) for name, setup in QUICK.items()),
            *(
                pytest.param(*setup, id=name, marks=long)
                for name, setup in drawn([*LONG.items()], every=every)
            ),
        ],
    )


@setups(long=pytest.mark.thorough, every=8)
def test_nothing_unsafe_happens_and_the_goal_is_reached(setup: Setup, floor: int) -> None:
    controller = Controller(setup=setup)
    graph = explore.explore(setup, controller)
    goals = explore.check_goal(graph, controller)
    explore.check_rest(graph)
    print(f"{len(graph.worlds)} worlds, {goals} of them the goal")  # noqa: T201 - the count belongs to the result
    assert len(graph.worlds) >= floor


@setups(long=pytest.mark.campaign, quick=(pytest.mark.thorough,))
def test_nothing_unsafe_happens_whatever_is_refused(setup: Setup, floor: int) -> None:
    """Any write of a plan may be the only one that comes true, and any two without a new decision."""
    assert len(explore.explore(setup, refuses=True).worlds) >= floor


def test_a_launcher_that_goes_without_its_notice_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explore, "needs_notice", lambda _: False)
    with pytest.raises(
        explore.Mistake, match="a launcher starts beside ranks of the launcher before"
    ):
        explore.explore(Setup(size=1, edits=0, start=1, suspensions=3), refuses=True)
