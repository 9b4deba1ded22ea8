"""Changes of size of a job; the peer and we alternate."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from bench import drain, namespaces, scale, targets
from bench.changes import Course, Span, Writer
from bench.drain import Drain
from bench.figures import Figure, Target, measured
from bench.parts.context import TROUBLE, Findings, Setting, lab
from bench.processes import MIB
from bench.scale import EDITS, Round
from bench.sides import Ours, Peer
from lab.cluster import Cluster
from lab.errors import LabError
from lab.pod_access import pods_work
from mpijob_elastic.kube.writer import ApiWriter

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


@dataclass(frozen=True, kw_only=True)
class _Gathered:
    """The results of a side so far."""

    rounds: list[Round] = field(default_factory=list)
    drains: list[Drain] = field(default_factory=list)


async def run(setting: Setting) -> Findings:
    """Run all edits `repeat` times on each side, or until it fails; keep the results before.

    Raises LabError.
    """
    ours, peer = _Gathered(), _Gathered()
    sides: list[tuple[str, Ours | Peer, _Gathered]] = [
        ("us", Ours(), ours),
        ("the peer", setting.peer, peer),
    ]
    failures: dict[str, Exception] = {}
    async with lab(setting) as (cluster, client):
        for turn in range(setting.repeat):
            # The first side alternates, so that neither always has the younger cluster.
            for name, side, gathered in sides[:: 1 if turn % 2 else -1]:
                if name in failures:
                    continue
                title = f"changes of size with {name}, {turn + 1} of {setting.repeat}"
                setting.say(title)
                try:
                    await _measure(cluster, client, side, gathered)
                except TROUBLE as error:
                    failures[name] = LabError(f"{title}: {error}")
    return Findings(
        figures=[
            *_figures(ours=ours.rounds, peer=peer.rounds),
            *_drain_figures(ours.drains, peer.drains),
        ],
        notes=_notes(setting, ours.drains),
        failures=tuple(failures.values()),
    )


async def _measure(
    cluster: Cluster, client: ApiWriter, side: Ours | Peer, gathered: _Gathered
) -> None:
    with side.start(cluster) as running:
        with namespaces.passing(cluster, "scale") as where:
            gathered.rounds.append(await scale.run(cluster, client, running, namespace=where))
        if cluster.exec_offered:
            with namespaces.passing(cluster, "drain") as where:
                gathered.drains.append(await drain.run(cluster, client, namespace=where))


def _figures(*, ours: Sequence[Round], peer: Sequence[Round]) -> list[Figure]:
    changes = [
        figure
        for edit in EDITS
        for figure in _change(
            edit, [turn.courses[edit] for turn in ours], [turn.courses[edit] for turn in peer]
        )
    ]
    steps = [
        figure
        for edit in EDITS
        for figure in _steps(
            edit, [turn.courses[edit] for turn in ours], [turn.courses[edit] for turn in peer]
        )
    ]
    return [
        *changes,
        *steps,
        *(
            figure
            for name in (ours[0].cpu if ours else ())
            for figure in _process(name, ours, peer)
        ),
    ]


def _change(edit: str, ours: Sequence[Course], peer: Sequence[Course]) -> list[Figure]:
    heading = ("Change of size", edit)
    times = [
        measured(heading, name, "ms", read, ours=ours, peer=peer, target=_TARGETS.get((edit, name)))
        for name, read in _TIMES.items()
    ]
    return [*(time for time in times if time.ours), *_writes(edit, ours, peer)]


def _writes(edit: str, ours: Sequence[Course], peer: Sequence[Course]) -> list[Figure]:
    def figure(
        name: str, ours: Sequence[float], peer: Sequence[float], target: Target | None = None
    ) -> Figure:
        return Figure(
            topic="Writes",
            group=edit,
            name=name,
            unit="",
            ours=tuple(ours),
            peer=tuple(peer),
            target=target,
        )

    kinds = {
        key
        for one in (*ours, *peer)
        for key in one.writes
        if key[0] in (Writer.CONTROLLER, Writer.OPERATOR)
    }
    totals = (
        [one.count(Writer.CONTROLLER) for one in ours],
        [one.count(Writer.OPERATOR) for one in peer],
    )
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


def _steps(edit: str, ours: Sequence[Course], peer: Sequence[Course]) -> list[Figure]:
    """Return when each kind of write was first received and last answered, in their order."""
    begun: dict[tuple[Writer, str], float] = {}
    for one in (*ours, *peer):
        for key, span in one.steps.items():
            begun[key] = min(span.received, begun.get(key, span.received))
    figures = []
    for key in sorted(begun, key=begun.__getitem__):
        writer, kind = key
        figures += [
            _step(edit, f"{kind} by {writer}, first received", key, _received, ours, peer),
            _step(edit, f"{kind} by {writer}, last answered", key, _answered, ours, peer),
        ]
    return figures


def _received(span: Span) -> float:
    return span.received


def _answered(span: Span) -> float:
    return span.answered


def _step(
    edit: str,
    name: str,
    key: tuple[Writer, str],
    read: Callable[[Span], float],
    ours: Sequence[Course],
    peer: Sequence[Course],
) -> Figure:
    def samples(courses: Sequence[Course]) -> tuple[float, ...]:
        return tuple(read(one.steps[key]) for one in courses if key in one.steps)

    return Figure(
        topic="Steps", group=edit, name=name, unit="ms", ours=samples(ours), peer=samples(peer)
    )


def _process(process: str, ours: Sequence[Round], peer: Sequence[Round]) -> list[Figure]:
    def figure(name: str, unit: str, read: Callable[[Round], float]) -> Figure:
        having = [turn for turn in peer if process in turn.cpu]
        heading = ("Processes", "these four edits")
        return measured(heading, f"{name} of the {process}", unit, read, ours=ours, peer=having)

    return [
        figure("CPU", "s", lambda turn: turn.cpu[process]),
        figure("peak memory", "MiB", lambda turn: turn.peak[process] / MIB),
    ]


def _drain_figures(ours: Sequence[Drain], peer: Sequence[Drain]) -> list[Figure]:
    if not ours:
        return []
    group = f"{drain.BEFORE}→{drain.AFTER}, ranks end after {drain.RANK_SECONDS} s"

    figure = partial(measured, ("Drain", group), ours=ours)
    return [
        figure(
            "ranks killed", "", lambda sample: sample.killed, peer=peer, target=targets.RANKS_KILLED
        ),
        figure(
            "edit to last surplus deleted",
            "s",
            lambda sample: sample.after_edit,
            peer=peer,
            target=targets.DRAINED,
        ),
        # In the peer's rounds the deletion ends the ranks, so nothing counts from their end.
        figure("last rank's end to last surplus deleted", "s", lambda sample: sample.after_ranks),
    ]


def _notes(setting: Setting, drains: Sequence[Drain]) -> list[str]:
    flags = f" with {' '.join(setting.peer.flags)}" if setting.peer.flags else ""
    notes = [
        "Ours: controller and webhook beside mpi-operator v0.2.3, which has its own client limit.",
        f"Peer: {setting.peer.name}{flags}, alone.",
    ]
    if not pods_work():
        notes.append(
            "Ours started with kubeconfigs, whose library takes memory: no mount is allowed."
        )
    if not drains:
        notes.append("No drain was measured: this machine offers no exec into simulated pods.")
    return notes
