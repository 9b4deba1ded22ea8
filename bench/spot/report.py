"""Play a trace to the sides, and show what each made of it: `python -m bench spot`."""

import os
from collections.abc import Collection, Mapping
from pathlib import Path

from rich import box
from rich.table import Table

from bench.jobs import AGENT
from bench.report import Circumstances, line
from bench.sides import Ours, Peer
from bench.spot import replay, trace
from bench.spot.contest import SideName, contenders
from bench.spot.costs import Costs
from bench.spot.replay import Outcome
from bench.spot.trace import Trace
from bench.tables import NOTHING, number, wide_console
from lab.cluster import Cluster
from lab.display import progress
from mpijob_elastic.kube.client import connect

HOUR = 3600.0
# Prices of a GPU-hour, in any currency: the promised saving is 70 %.
SPOT, ON_DEMAND = 0.30, 1.00
HEADINGS = ("GPU-hours paid", "trained", "useful steps", "lost steps", "ranks killed", "job restarts", "saving")


async def play(wanted: Trace, *, peer: Peer, sides: Collection[SideName]) -> dict[str, Outcome]:
    """Play the trace to the sides, none means all; return what each made of it by title. Raises LabError, KubeError."""
    outcomes = {}
    with progress() as say, Cluster.start(name=f"bench-{os.getpid()}", say=say) as cluster:
        async with await connect(user_agent=AGENT, kubeconfig=cluster.kubeconfig) as client:
            for side in contenders(peer=peer, ours=Ours()):
                if not sides or side.name in sides:
                    outcomes[side.title] = await replay.play(cluster, client, wanted, side, say=say)
    return outcomes


def read(path: Path, *, size: int, hours: float) -> Trace:
    """Return the trace in a file. Raises ValueError, OSError."""
    return trace.read(path.read_bytes(), name=path.name, size=size, longest=hours * HOUR)


def show(about: Circumstances, played: Trace, outcomes: Mapping[str, Outcome]) -> None:
    """Print a row for each side, between on-demand machines and spot machines of which no second is lost."""
    step = Costs().step
    table = Table(box=box.MARKDOWN)
    table.add_column("side")
    for heading in HEADINGS:
        table.add_column(heading, justify="right")
    whole, paid = played.size * played.horizon, played.machine_seconds
    none = [NOTHING] * 3
    table.add_row("on demand, never interrupted", *_amounts(whole, whole, played.horizon / step), *none, f"{0:.1%}")
    for title, outcome in outcomes.items():
        happened = [number(outcome.lost), str(outcome.killed), str(len(outcome.failures))]
        amounts = _amounts(paid, outcome.gpu_seconds, outcome.useful)
        table.add_row(title, *amounts, *happened, _saving(played, outcome.useful, step=step))
    best = paid / played.size / step
    row = [*_amounts(paid, paid, best), *none, _saving(played, best, step=step)]
    table.add_row("spot, if no second were lost", *row)
    console = wide_console()
    console.print(line(about))
    console.print(f"Trace: {played.source}; {played.interruptions} interruptions.", markup=False)
    console.print(f"A GPU-hour: {SPOT:.2f} spot, {ON_DEMAND:.2f} on demand.", table, sep="\n")


def _amounts(paid: float, trained: float, useful: float) -> list[str]:
    return [number(paid / HOUR), number(trained / HOUR), number(useful)]


def _saving(played: Trace, useful: float, *, step: float) -> str:
    """Return the saved share of what these steps cost on demand: a GPU is paid for while it exists, used or not."""
    if not useful:
        return NOTHING
    return f"{1 - played.machine_seconds * SPOT / (played.size * useful * step * ON_DEMAND):.1%}"
