"""`python -m bench spot`."""

import asyncio
import os
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

from bench import report as bench_report
from bench import runner
from bench.jobs import AGENT
from bench.sides import Ours, Peer
from bench.spot import chart, contenders, contest, published_trace, report, synthetic_trace
from bench.spot.contenders import Contender, SideName
from bench.spot.costs import Costs
from bench.spot.economics import Prices
from bench.spot.report import Report
from bench.spot.synthetic_trace import Rules
from bench.spot.trace import Trace
from lab.cluster import Cluster
from lab.display import progress
from lab.errors import LabError
from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.errors import KubeError

FAILED = 1
# Short and eventful, to check that everything works.
QUICK_SIZE, QUICK_HOURS = 2, 1.0
QUICK_RULES = Rules(mean_life=1800.0, shortage_share=0.0)


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The options of the command line; `trace` is a file, None for a synthetic trace; no `sides` means all."""

    trace: Path | None
    seed: int
    size: int
    hours: float
    quick: bool
    prices: Prices
    json: Path | None
    chart: Path | None
    peer: Peer = field(default_factory=Peer)
    ours: Ours = field(default_factory=Ours)
    costs: Costs = field(default_factory=Costs)
    sides: Collection[SideName] = ()


def run(wanted: Wanted) -> None:
    """Play the trace to all sides, show and write the results. Raises SystemExit, TraceError, OSError."""
    runner.end_on_sigterm()
    trace = find(wanted)
    runner.ready(wanted.peer)
    try:
        with progress() as say:
            found = asyncio.run(_play(wanted, trace, say))
    except (LabError, KubeError, OSError) as error:
        print(f"not measured: {error}", file=sys.stderr)
        raise SystemExit(FAILED) from error
    report.show(found)
    if wanted.json:
        bench_report.save(found, wanted.json)
    if wanted.chart:
        points = {title: outcome.points for title, outcome in found.outcomes.items()}
        wanted.chart.write_text(chart.draw(trace, points, costs=wanted.costs))


def find(wanted: Wanted) -> Trace:
    """Return the trace for the options. Raises TraceError, OSError."""
    horizon = wanted.hours * synthetic_trace.HOUR
    if wanted.trace is not None:
        text, name = wanted.trace.read_bytes(), wanted.trace.name
        return published_trace.read(text, name=name, size=wanted.size, notice=Rules().notice, longest=horizon)
    if wanted.quick:
        quick = QUICK_HOURS * synthetic_trace.HOUR
        return synthetic_trace.generate(wanted.seed, size=QUICK_SIZE, horizon=quick, rules=QUICK_RULES)
    return synthetic_trace.generate(wanted.seed, size=wanted.size, horizon=horizon, rules=Rules())


async def _play(wanted: Wanted, trace: Trace, say: Callable[[str], None]) -> Report:
    about = bench_report.circumstances()
    with Cluster.start(name=f"bench-{os.getpid()}", say=say) as cluster:
        async with await connect(user_agent=AGENT, kubeconfig=cluster.kubeconfig) as client:
            outcomes = await contest.run(
                cluster, client, trace, contenders_of(wanted), costs=wanted.costs, seed=wanted.seed, say=say
            )
        notes = _notes(wanted, exec_offered=cluster.exec_offered)
    return Report(
        circumstances=about,
        trace=trace,
        costs=wanted.costs,
        prices=wanted.prices,
        notes=tuple(notes),
        outcomes=outcomes,
    )


def contenders_of(wanted: Wanted) -> list[Contender]:
    """Return the sides to play, in order."""
    found = [contenders.rigid(), contenders.peer(wanted.peer), contenders.elastic(wanted.ours)]
    return [contender for contender in found if not wanted.sides or contender.name in wanted.sides]


def _notes(wanted: Wanted, *, exec_offered: bool) -> list[str]:
    notes = ["The static job and mpijob-elastic run beside mpi-operator v0.2.3."]
    if wanted.costs.cooldown:
        least, most = wanted.costs.cooldown
        notes.append(f"horovodrun has --blacklist-cooldown-range {least:g} {most:g} on both elastic sides.")
    if not exec_offered:
        notes.append("This machine offers no exec into simulated pods: drains took their whole drain-timeout.")
    return notes
