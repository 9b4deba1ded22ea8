"""Figures of the rounds of edits. Pure."""

from collections.abc import Callable, Mapping, Sequence

from bench import targets
from bench.changes import Course, Writer
from bench.figures import Figure, Target
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
    return [
        *(_time(edit, name, ours, peer) for edit in EDITS for name in _TIMES if _applies(edit, name, ours)),
        *(figure for edit in EDITS for figure in _writes(edit, ours, peer)),
        *_processes(ours, peer),
    ]


def _applies(edit: str, name: str, rounds: Sequence[Round]) -> bool:
    return any(_TIMES[name](turn.courses[edit]) is not None for turn in rounds)


def _time(edit: str, name: str, ours: Sequence[Round], peer: Sequence[Round]) -> Figure:
    def read(rounds: Sequence[Round]) -> tuple[float, ...]:
        found = (_TIMES[name](turn.courses[edit]) for turn in rounds)
        return tuple(value for value in found if value is not None)

    return Figure(
        topic="Change of size",
        group=edit,
        name=name,
        unit="ms",
        ours=read(ours),
        peer=read(peer),
        target=_TARGETS.get((edit, name)),
    )


def _writes(edit: str, ours: Sequence[Round], peer: Sequence[Round]) -> list[Figure]:
    total = Figure(
        topic="Writes",
        group=edit,
        name="all but Events and pods",
        unit="",
        ours=tuple(turn.courses[edit].count(Writer.CONTROLLER) for turn in ours),
        peer=tuple(turn.courses[edit].count(Writer.OPERATOR) for turn in peer),
        target=targets.WRITES,
    )
    kinds = {
        (writer, kind)
        for turn in (*ours, *peer)
        for writer, kind in turn.courses[edit].writes
        if writer in (Writer.CONTROLLER, Writer.OPERATOR)
    }
    return [total, *(_kind(edit, writer, kind, ours, peer) for writer, kind in sorted(kinds))]


def _kind(edit: str, writer: Writer, kind: str, ours: Sequence[Round], peer: Sequence[Round]) -> Figure:
    def count(rounds: Sequence[Round]) -> tuple[float, ...]:
        return tuple(turn.courses[edit].writes.get((writer, kind), 0) for turn in rounds)

    return Figure(
        topic="Writes",
        group=edit,
        name=f"{kind} by {writer}",
        unit="",
        ours=count(ours),
        peer=count(peer) if writer is Writer.OPERATOR else (),
    )


def _processes(ours: Sequence[Round], peer: Sequence[Round]) -> list[Figure]:
    names = [name for turn in ours[:1] for name in turn.cpu]
    return [figure for name in names for figure in _process(name, ours, peer)]


def _process(process: str, ours: Sequence[Round], peer: Sequence[Round]) -> list[Figure]:
    def figure(name: str, unit: str, read: Callable[[Round], float]) -> Figure:
        return Figure(
            topic="Processes",
            group="these four edits",
            name=f"{name} of the {process}",
            unit=unit,
            ours=tuple(read(turn) for turn in ours),
            peer=tuple(read(turn) for turn in peer if process in turn.cpu),
        )

    return [
        figure("CPU", "s", lambda turn: turn.cpu[process]),
        figure("peak memory", "MiB", lambda turn: turn.peak[process] / MIB),
    ]
