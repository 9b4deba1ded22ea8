"""The command line of `python -m bench`: run parts in a row, show their results, end with the right exit code."""

import asyncio
import signal
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from bench import report
from bench.parts import cold, events, probes, real, scale, slow, spot, throughput, webhook
from bench.parts.context import TROUBLE, Findings, Setting
from bench.report import Report
from bench.sides import Peer
from bench.spot import trace as traces
from lab.display import progress

FAILED = 1

Part = Callable[[Setting], Coroutine[Any, Any, Findings]]


class What(StrEnum):
    """What can be measured."""

    ALL = "all"
    SCALE = "scale"
    THROUGHPUT = "throughput"
    WEBHOOK = "webhook"
    EVENTS = "events"
    PROBES = "probes"
    REAL = "real"
    SLOW = "slow"
    COLD = "cold"
    SPOT = "spot"


_PARTS: Mapping[What, Sequence[Part]] = {
    What.ALL: [events.run, webhook.run, scale.run, throughput.run],
    What.SCALE: [scale.run],
    What.THROUGHPUT: [throughput.run],
    What.WEBHOOK: [webhook.run],
    What.EVENTS: [events.run],
    What.PROBES: [probes.run],
    What.REAL: [real.run],
    What.SLOW: [slow.run],
    What.COLD: [cold.run],
}
_HELP = """Measure, and show beside each figure its target and whether it was met.

\b
  scale       edit the size of a job: times, writes, CPU, memory; alternately with mpi-operator v0.3.0 and with us
  throughput  resize 200 jobs of 10 workers at once: how many become right per second
  webhook     the time that the webhook adds to requests through the API server, and its CPU
  events      the cost of a pod event for the controller; needs no lab
  all         all of these
  probes      the CPU of looks into workers, by turns with the build before lines of progress; needs no lab
  real        resize a job that really trains, 2→3→1→3→4→2, on a real node (needs root)
  slow        change the size of such a job while its ranks start slowly (needs root)
  cold        add a worker to such a job on a node that reads slowly, by turns with and without a startupProbe (needs root)
  spot        play a trace of machines that are taken away to a static job, to v0.3.0 and to us
"""
_EPILOG = """\b
Examples:
  python -m bench all --json figures.json
  python -m bench scale --repeat 1 --peer-flag=--kube-api-qps=50
  python -m bench scale --repeat 1 --released docs/records/released.json
  python -m bench spot --trace us-west-2a_v100_16.json --machines 16 --hours 48

\b
Exit codes: 0 measured; 1 not all measured; 2 wrong usage.
"""
app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command(help=_HELP, epilog=_EPILOG, no_args_is_help=True)
def measure(
    what: Annotated[What, typer.Argument(show_choices=False)],
    *,
    repeat: Annotated[
        int, typer.Option(min=1, max=100, help="How often to measure each figure.")
    ] = 5,
    json: Annotated[
        Path | None,
        typer.Option("--json", dir_okay=False, help="Also write all samples to this file."),
    ] = None,
    released: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="Also show the figures of the last release, which --json wrote to this file.",
        ),
    ] = None,
    peer_flag: Annotated[list[str] | None, typer.Option(help="An extra flag for the peer.")] = None,
    trace: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="For spot: a published spot trace (JSON)."),
    ] = None,
    machines: Annotated[
        int, typer.Option(min=1, max=64, help="For spot: wanted machines, each with a GPU.")
    ] = 8,
    hours: Annotated[
        float, typer.Option(min=0.1, max=1000, help="For spot: length of the trace to play.")
    ] = 24,
) -> None:
    """Measure."""
    # SIGTERM like Ctrl-C, so that it also ends the processes that we started.
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    parts = _PARTS[what] if what is not What.SPOT else [_spot(trace, machines, hours)]
    # Told now, and not after the minutes of the measurement.
    if json and not json.parent.is_dir():
        raise typer.BadParameter(f"{json.parent} is no folder", param_hint="--json")
    then = _read(released) if released else None
    done, failures = _run(parts, repeat=repeat, peer=Peer(flags=tuple(peer_flag or ())))
    report.show(done, released=then)
    if json:
        report.save(done, json)
    for failure in failures:
        print(f"not measured: {failure}", file=sys.stderr)
    if failures:
        raise typer.Exit(FAILED)


def _read(released: Path) -> Report:
    try:
        return report.read(released)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--released") from error


def _spot(trace: Path | None, machines: int, hours: float) -> Part:
    if trace is None:
        raise typer.BadParameter(
            "spot needs a trace: see docs/records/spot-economics.md", param_hint="--trace"
        )
    try:
        wanted = traces.read(
            trace.read_bytes(), name=trace.name, size=machines, longest=hours * spot.HOUR
        )
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--trace") from error
    return partial(spot.run, trace=wanted)


def _run(parts: Sequence[Part], *, repeat: int, peer: Peer) -> tuple[Report, list[Exception]]:
    """Run all parts. A failed part does not stop the others."""
    about = report.circumstances()
    found: list[Findings] = []
    failures: list[Exception] = []
    with progress() as say:
        for part in parts:
            try:
                found.append(asyncio.run(part(Setting(repeat=repeat, say=say, peer=peer))))
                failures.extend(found[-1].failures)
            except TROUBLE as error:
                failures.append(error)
    notes = tuple(note for findings in found for note in findings.notes)
    figures = tuple(figure for findings in found for figure in findings.figures)
    return Report(circumstances=about, notes=notes, figures=figures), failures


def main() -> None:
    """Run the command line."""
    app()
