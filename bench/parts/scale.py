"""Changes of size of one job: a peer and us by turns."""

from __future__ import annotations

import os
from collections.abc import Sequence

from bench import draining, scale, scale_figures, targets
from bench.draining import Drain
from bench.figures import Figure
from bench.namespaces import namespace
from bench.parts.setting import Findings, Setting, lab
from bench.scale import Round
from bench.sides import OURS, PEER, Ours, Peer
from lab.cluster import Cluster
from lab.operator.process import BINARY_VARIABLE
from mpijob_elastic.kube.client import Client


class _Gathered:
    """What came of each side so far."""

    def __init__(self) -> None:
        self.rounds: dict[str, list[Round]] = {OURS: [], PEER: []}
        self.drains: dict[str, list[Drain]] = {OURS: [], PEER: []}


async def run(setting: Setting) -> Findings:
    """All edits `repeat` times on each side. Raises LabError."""
    gathered = _Gathered()
    async with lab(setting) as (cluster, client):
        for turn in range(setting.repeat):
            # Who goes first changes, so that neither always has the younger or older cluster.
            for side in _sides(setting)[:: 1 if turn % 2 else -1]:
                setting.say(f"changes of size, {turn + 1} of {setting.repeat}: {_name(side)}")
                await _measure(cluster, client, side, turn, gathered)
    drains = gathered.drains
    figures = scale_figures.figures(ours=gathered.rounds[OURS], peer=gathered.rounds[PEER])
    return Findings(
        figures=[*figures, *_drain_figures(drains[OURS], drains[PEER])],
        notes=_notes(setting, drains[OURS]),
    )


def _sides(setting: Setting) -> list[Ours | Peer]:
    return [setting.ours, *([setting.peer] if setting.peer else [])]


def _name(side: Ours | Peer) -> str:
    return OURS if isinstance(side, Ours) else PEER


async def _measure(cluster: Cluster, client: Client, side: Ours | Peer, turn: int, gathered: _Gathered) -> None:
    name = _name(side)
    with side.start(cluster) as running:
        with namespace(cluster, f"scale-{name}-{turn}") as where:
            gathered.rounds[name].append(await scale.run(cluster, client, running, namespace=where))
        if cluster.exec_offered:
            with namespace(cluster, f"drain-{name}-{turn}") as where:
                gathered.drains[name].append(await draining.run(cluster, client, namespace=where))


def _drain_figures(ours: Sequence[Drain], peer: Sequence[Drain]) -> list[Figure]:
    if not ours:
        return []
    group = f"{draining.BEFORE}→{draining.AFTER}, ranks end after {draining.RANK_SECONDS} s"
    return [
        Figure(
            topic="Drain",
            group=group,
            name="ranks killed",
            unit="",
            ours=tuple(one.killed for one in ours),
            peer=tuple(one.killed for one in peer),
            target=targets.RANKS_KILLED,
        ),
        Figure(
            topic="Drain",
            group=group,
            name="edit to last surplus deleted",
            unit="s",
            ours=tuple(one.after_edit for one in ours),
            peer=tuple(one.after_edit for one in peer),
            target=targets.DRAINED,
        ),
        Figure(
            topic="Drain",
            group=group,
            name="last rank's end to last surplus deleted",
            unit="s",
            ours=tuple(one.after_ranks for one in ours),
        ),
    ]


def _notes(setting: Setting, drains: Sequence[Drain]) -> list[str]:
    real = os.environ.get(BINARY_VARIABLE)
    limits = f"{setting.ours.qps:g} writes a second, {setting.ours.burst} at once" if setting.ours.qps else "none"
    beside = f"the real operator ({BINARY_VARIABLE})" if real else f"the stand-in operator (client limit: {limits})"
    notes = [f"Ours: controller and webhook beside {beside}."]
    if setting.peer:
        options = f" with {' '.join(setting.peer.options)}" if setting.peer.options else ""
        notes.append(f"Peer: {setting.peer.binary.name}{options}, alone.")
    if not drains:
        notes.append("No drain was measured: this machine offers no exec into pretended pods.")
    return notes
