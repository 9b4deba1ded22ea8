"""The command line of `python -m bench`."""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from bench import report, runner
from bench.parts import events, real, scale, throughput, webhook
from bench.parts.context import TROUBLE
from bench.runner import Part, Wanted
from bench.sides import Peer
from bench.spot import report as spot
from bench.spot.contest import SideName


class What(StrEnum):
    """What can be measured."""

    ALL = "all"
    SCALE = "scale"
    THROUGHPUT = "throughput"
    WEBHOOK = "webhook"
    EVENTS = "events"
    REAL = "real"
    SPOT = "spot"


_PARTS: Mapping[What, Sequence[Part]] = {
    What.ALL: [events.run, webhook.run, scale.run, throughput.run],
    What.SCALE: [scale.run],
    What.THROUGHPUT: [throughput.run],
    What.WEBHOOK: [webhook.run],
    What.EVENTS: [events.run],
    What.REAL: [real.run],
}
_HELP = """Measure, and show beside each figure its target and whether it was met.

\b
  scale       edit the size of a job: times, writes, CPU, memory; alternately with mpi-operator v0.3.0 and with us
  throughput  resize 200 jobs of 10 workers at once: how many become right per second
  webhook     the time that the webhook adds to requests through the API server, and its CPU
  events      the cost of a pod event for the controller; needs no lab
  all         all of these
  real        resize a job that really trains, 2→3→1→3→4→2, on a real node (needs root)
  spot        play a trace of machines that are taken away to a static job, to v0.3.0 and to us
"""
_EPILOG = """\b
Examples:
  python -m bench all --json figures.json
  python -m bench scale --repeat 1 --peer-flag=--kube-api-qps=50
  python -m bench spot --trace us-west-2a_v100_16.json --machines 16 --hours 48

\b
Exit codes: 0 measured; 1 not all measured; 2 wrong usage; 3 a target was missed (--check).
"""
app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command(help=_HELP, epilog=_EPILOG, no_args_is_help=True)
def measure(  # noqa: PLR0913 - a command has as many parameters as options
    what: Annotated[What, typer.Argument(show_choices=False)],
    *,
    repeat: Annotated[int, typer.Option(min=1, max=100, help="How often to measure each figure.")] = 5,
    json: Annotated[
        Path | None, typer.Option("--json", dir_okay=False, help="Also write all samples to this file; not for spot.")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Exit with 3 if a target was missed.")] = False,
    peer_flag: Annotated[list[str] | None, typer.Option(help="An extra flag for the peer.")] = None,
    trace: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="For spot: a published spot trace (JSON).")
    ] = None,
    machines: Annotated[int, typer.Option(min=1, max=64, help="For spot: wanted machines, each with a GPU.")] = 8,
    hours: Annotated[float, typer.Option(min=0.1, max=1000, help="For spot: length of the trace to play.")] = 24,
    side: Annotated[list[SideName] | None, typer.Option(help="For spot: play only this; may be repeated.")] = None,
) -> None:
    """Measure."""
    peer = Peer(flags=tuple(peer_flag or ()))
    if what is not What.SPOT:
        runner.measure(_PARTS[what], Wanted(repeat=repeat, json=json, check=check, peer=peer))
        return
    if trace is None:
        raise typer.BadParameter("spot needs a trace: see docs/spot-economics.md", param_hint="--trace")
    try:
        wanted = spot.read(trace, size=machines, hours=hours)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--trace") from error
    runner.end_on_sigterm()
    about = report.circumstances()
    try:
        found = asyncio.run(spot.play(wanted, peer=peer, sides=side or ()))
    except TROUBLE as error:
        print(f"not measured: {error}", file=sys.stderr)
        raise SystemExit(runner.FAILED) from error
    spot.show(about, wanted, found)


def main() -> None:
    """Run the command line."""
    app()
