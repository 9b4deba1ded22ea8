"""Figures of the rounds of edits. Pure."""

from collections.abc import Callable, Mapping, Sequence

from bench import targets
from bench.changes import Course, Writer
from bench.figures import Figure, Target, measured
from bench.processes import MIB
from bench.scale import EDITS, Round

_TIMES: Mapping[str, Callable[[Course], float | None]] = {
    "edit to Role right": lambda course: course.role,
    "edit to last worker created": lambda course: course.created,
    "edit to discover_hosts.sh right": lambda course: course.script,
    "edit to last surplus deleted": lambda course: course.deleted,
    "edit to last surplus gone": lambda course: course.gone,
}
# A scale-out beyond all earlier sizes needs the Role first. A scale-in leaves our Role as it is.
_TARGETS: Mapping[tuple[str, str], Target] = {
    ("1→12", "edit to Role right"): targets.ROLE,
    ("2→3", "edit to Role right"): targets.ROLE,
    ("12→2", "edit to discover_hosts.sh right"): targets.SCRIPT_12_TO_2,
    ("12→2", "edit to last surplus deleted"): targets.SURPLUS_DELETED_12_TO_2,
}


def figures(*, ours: Sequence[Round], peer: Sequence[Round]) -> list[Figure]:
    """Return the figures of the rounds of both sides."""
    changes = [
        figure
        for edit in EDITS
        for figure in _change(edit, [turn.courses[edit] for turn in ours], [turn.courses[edit] for turn in peer])
    ]
    return [*changes, *(figure for name in (ours[0].cpu if ours else ()) for figure in _process(name, ours, peer))]


def _change(edit: str, ours: Sequence[Course], peer: Sequence[Course]) -> list[Figure]:
    heading = ("Change of size", edit)
    times = [
        measured(heading, name, "ms", read, ours=ours, peer=peer, target=_TARGETS.get((edit, name)))
        for name, read in _TIMES.items()
    ]
    return [*(time for time in times if time.ours), *_writes(edit, ours, peer)]


def _writes(edit: str, ours: Sequence[Course], peer: Sequence[Course]) -> list[Figure]:
    def figure(name: str, ours: Sequence[float], peer: Sequence[float], target: Target | None = None) -> Figure:
        return Figure(topic="Writes", group=edit, name=name, unit="", ours=tuple(ours), peer=tuple(peer), target=target)

    kinds = {key for one in (*ours, *peer) for key in one.writes if key[0] in (Writer.CONTROLLER, Writer.OPERATOR)}
    totals = [one.count(Writer.CONTROLLER) for one in ours], [one.count(Writer.OPERATOR) for one in peer]
    return [
        figure("all but Events and pods", *totals, targets.WRITES),
        *(
            figure(
                f"{kind} by {writer}",
                [one.writes.get((writer, kind), 0) for one in ours],
                [one.writes.get((writer, kind), 0) for one in peer if writer is Writer.OPERATOR],
            )
            for writer, kind in sorted(kinds)
        ),
    ]


def _process(process: str, ours: Sequence[Round], peer: Sequence[Round]) -> list[Figure]:
    def figure(name: str, unit: str, read: Callable[[Round], float]) -> Figure:
        having = [turn for turn in peer if process in turn.cpu]
        heading = ("Processes", "these four edits")
        return measured(heading, f"{name} of the {process}", unit, read, ours=ours, peer=having)

    return [
        figure("CPU", "s", lambda turn: turn.cpu[process]),
        figure("peak memory", "MiB", lambda turn: turn.peak[process] / MIB),
    ]
