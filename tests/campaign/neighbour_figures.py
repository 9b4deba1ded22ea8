"""What a tenant's resizes took, beside one kind of load, and what is too long. Pure."""

import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from tests.campaign.neighbour_victim import ScaleIn, ScaleOut

# Times as long as alone that a resize may take.
MOST = 2.0


@dataclass(kw_only=True)
class Figures:
    """What was measured beside a load.

    pulse: seconds that the controller took for answers about its health. execs: seconds of the `kubectl exec` of a
    bystander, which the drain's probes cannot outrun. operator: seconds until the operator made new
    workers, None if not in time. cpu: share of a core, by program. load: what the neighbour did a minute. problems:
    what went wrong.
    """

    name: str
    ins: list[ScaleIn] = field(default_factory=list)
    outs: list[ScaleOut] = field(default_factory=list)
    pulse: list[float] = field(default_factory=list)
    execs: list[float] = field(default_factory=list)
    operator: list[float | None] = field(default_factory=list)
    cpu: dict[str, float] = field(default_factory=dict)
    load: dict[str, float] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


_IN: dict[str, Callable[[ScaleIn], float]] = {
    "answered": lambda one: one.answered,
    "ours": lambda one: one.ours,
    "unlisted": lambda one: one.unlisted,
    "deleted": lambda one: one.deleted,
    "gone": lambda one: one.gone,
}
_OUT: dict[str, Callable[[ScaleOut], float]] = {
    "ready": lambda one: one.ready,
    "listed": lambda one: one.listed,
    "ours": lambda one: one.ours,
}


def slower(beside: Figures, alone: Figures) -> Iterator[str]:
    """Yield in words which resizes take more than MOST times as long as alone, by their medians.

    1→3 takes as long as alone, and what our part of it takes more than alone: the rest is the API server's, the
    scheduler's and the node's.
    """
    if not (beside.ins and beside.outs and alone.ins and alone.outs):
        return
    usual = _median(one.gone for one in alone.ins)
    if (times := _median(one.gone for one in beside.ins) / usual) > MOST:
        yield f"3→1 beside {beside.name} takes {times:.1f} times as long as alone"
    usual = _median(one.listed for one in alone.outs)
    more = _median(one.ours for one in beside.outs) - _median(one.ours for one in alone.outs)
    if (times := (usual + more) / usual) > MOST:
        yield f"1→3 beside {beside.name} takes {times:.1f} times as long as alone by our part"


def _median(values: Iterable[float]) -> float:
    return statistics.median(values)


def line(figures: Figures) -> str:
    """Return the figures in words: medians in seconds, the worst in brackets."""
    ins = [f"{name} {_of([read(one) for one in figures.ins])}" for name, read in _IN.items()]
    outs = [f"{name} {_of([read(one) for one in figures.outs])}" for name, read in _OUT.items()]
    operator = ["late" if one is None else f"{one:.1f}" for one in figures.operator]
    rest = [
        f"workers by the operator {', '.join(operator)}",
        f"pulse {_of(figures.pulse)}",
        f"exec {_of(figures.execs)}",
        *(f"CPU of the {program} {share:.2f}" for program, share in figures.cpu.items()),
        *(f"{what} {rate:,.0f} a minute" for what, rate in figures.load.items()),
    ]
    return f"{figures.name} ({len(figures.ins)}): 3→1 {', '.join(ins)}; 1→3 {', '.join(outs)}; {', '.join(rest)}"


def _of(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.2f} ({max(values):.2f})" if values else "-"
