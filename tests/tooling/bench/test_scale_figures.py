"""Figures from the rounds of edits."""

from collections.abc import Mapping

from bench import targets
from bench.changes import Course, Writer
from bench.figures import Figure
from bench.processes import MIB
from bench.scale import EDITS, Round
from bench.scale_figures import figures

Counts = Mapping[tuple[Writer, str], int]


def course(role: float | None, writes: Counts) -> Course:
    return Course(edited_at=0.0, role=role, script=2.0, created=None, deleted=3.0, gone=4.0, writes=writes)


def a_round(role: float | None, writes: Counts, *, cpu: Mapping[str, float]) -> Round:
    peak = dict.fromkeys(cpu, 10 * MIB)
    return Round(courses=dict.fromkeys(EDITS, course(role, writes)), cpu=cpu, peak=peak)


OURS = [
    a_round(10.0, {(Writer.CONTROLLER, "patch roles"): 1}, cpu={"operator": 0.1, "controller": 0.2}),
    a_round(None, {(Writer.CONTROLLER, "delete pods"): 9}, cpu={"operator": 0.1, "controller": 0.3}),
]
PEER = [a_round(20.0, {(Writer.OPERATOR, "update roles"): 4}, cpu={"operator": 0.5})]


def of(group: str, name: str) -> Figure:
    [found] = [one for one in figures(ours=OURS, peer=PEER) if (one.group, one.name) == (group, name)]
    return found


def test_the_edits_are_a_chain() -> None:
    assert EDITS == ("3→1", "1→12", "12→2", "2→3")


def test_times_of_both_sides_stand_beside_their_target() -> None:
    grown, shrunk = of("1→12", "edit to Role right"), of("12→2", "edit to Role right")
    assert (grown.ours, grown.peer, grown.target) == ((10.0,), (20.0,), targets.ROLE)
    assert shrunk.target is None
    assert of("12→2", "edit to last surplus deleted").target == targets.SURPLUS_DELETED_12_TO_2


def test_what_never_happens_is_no_figure() -> None:
    assert not [one for one in figures(ours=OURS, peer=PEER) if one.name == "edit to last worker created"]


def test_a_kind_of_write_that_a_round_lacks_counts_as_none() -> None:
    assert of("3→1", "patch roles by mpijob-elastic").ours == (1, 0)
    assert of("3→1", "delete pods by mpijob-elastic").ours == (0, 9)
    assert of("3→1", "update roles by the operator").ours == (0, 0)


def test_the_total_is_of_who_makes_a_job_elastic() -> None:
    total = of("3→1", "all but Events and pods")
    assert (total.ours, total.peer, total.target) == ((1, 0), (4,), targets.WRITES)


def test_each_process_has_its_cost() -> None:
    assert of("these four edits", "CPU of the controller").ours == (0.2, 0.3)
    assert of("these four edits", "CPU of the controller").peer == ()
    assert of("these four edits", "CPU of the operator").peer == (0.5,)
    assert of("these four edits", "peak memory of the operator").ours == (10.0, 10.0)
