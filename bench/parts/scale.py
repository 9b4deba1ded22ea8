"""Changes of size of a job; the peer and we alternate."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from bench import drain, namespaces, scale, scale_figures, targets
from bench.drain import Drain
from bench.figures import Figure, measured
from bench.parts.context import TROUBLE, Findings, Setting, lab
from bench.scale import Round
from bench.sides import Ours, Peer
from lab.cluster import Cluster
from lab.errors import LabError
from mpijob_elastic.kube.writer import ApiWriter


@dataclass(frozen=True, kw_only=True)
class _Gathered:
    """The results of a side so far."""

    rounds: list[Round] = field(default_factory=list)
    drains: list[Drain] = field(default_factory=list)


async def run(setting: Setting) -> Findings:
    """Run all edits `repeat` times on each side, or until it fails; keep the results before. Raises LabError."""
    ours, peer = _Gathered(), _Gathered()
    sides: list[tuple[str, Ours | Peer, _Gathered]] = [("us", Ours(), ours), ("the peer", setting.peer, peer)]
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
            *scale_figures.figures(ours=ours.rounds, peer=peer.rounds),
            *_drain_figures(ours.drains, peer.drains),
        ],
        notes=_notes(setting, ours.drains),
        failures=tuple(failures.values()),
    )


async def _measure(cluster: Cluster, client: ApiWriter, side: Ours | Peer, gathered: _Gathered) -> None:
    with side.start(cluster) as running:
        with namespaces.passing(cluster, "scale") as where:
            gathered.rounds.append(await scale.run(cluster, client, running, namespace=where))
        if cluster.exec_offered:
            with namespaces.passing(cluster, "drain") as where:
                gathered.drains.append(await drain.run(cluster, client, namespace=where))


def _drain_figures(ours: Sequence[Drain], peer: Sequence[Drain]) -> list[Figure]:
    if not ours:
        return []
    group = f"{drain.BEFORE}→{drain.AFTER}, ranks end after {drain.RANK_SECONDS} s"

    figure = partial(measured, ("Drain", group), ours=ours)
    return [
        figure("ranks killed", "", lambda sample: sample.killed, peer=peer, target=targets.RANKS_KILLED),
        figure(
            "edit to last surplus deleted", "s", lambda sample: sample.after_edit, peer=peer, target=targets.DRAINED
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
    if not drains:
        notes.append("No drain was measured: this machine offers no exec into simulated pods.")
    return notes
