"""The commands of `python -m bench`."""

from pathlib import Path
from typing import Annotated

import typer

from bench import runner
from bench.parts import events as events_part
from bench.parts import real as real_part
from bench.parts import scale as scale_part
from bench.parts import starts as starts_part
from bench.parts import throughput as throughput_part
from bench.parts import webhook as webhook_part
from bench.runner import Wanted
from bench.sides import Ours, Peer
from bench.spot import command as spot_command
from bench.spot.contenders import SideName
from bench.spot.costs import Costs
from bench.spot.economics import Prices
from bench.spot.trace import TraceError


def _examples(*lines: str) -> str:
    # Click joins lines unless a backspace stands before them.
    return "\n".join(("\b", "Examples:", *(f"  {line}" for line in lines)))


app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Measure, and show beside each figure its target and whether it was met.",
    epilog=_examples(
        "python -m bench all",
        "python -m bench all --json figures.json",
        "python -m bench scale --repeat 1",
    )
    + "\n\n\b\nExit codes: 0 measured; 1 not all measured; 2 wrong usage; 3 a target was missed (--check).",
)

Repeat = Annotated[int, typer.Option(min=1, max=100, help="How often to measure each figure.")]
Json = Annotated[Path | None, typer.Option("--json", dir_okay=False, help="Also write all samples to this file.")]
Check = Annotated[bool, typer.Option("--check", help="Exit with 3 if a target was missed.")]
PeerOperator = Annotated[
    Path | None,
    typer.Option(exists=True, dir_okay=False, help="Binary to compare with instead of mpi-operator v0.3.0."),
]
PeerFlag = Annotated[list[str] | None, typer.Option(help="An extra flag for the peer, such as --kube-api-qps=50.")]
Qps = Annotated[
    int | None,
    typer.Option(min=0, help="Requests per second of the operator beside us; 0: no limit. Default: its own limit."),
]
Burst = Annotated[int, typer.Option(min=1, help="Burst of requests of the operator beside us, with --operator-qps.")]


@app.command(epilog=_examples("python -m bench scale --peer-flag=--kube-api-qps=50"))
def scale(
    *,
    peer_operator: PeerOperator = None,
    peer_flag: PeerFlag = None,
    operator_qps: Qps = None,
    operator_burst: Burst = 10,
    repeat: Repeat = 5,
    json: Json = None,
    check: Check = False,
) -> None:
    """Edit the size of a job: times, writes, CPU, memory; alternately with mpi-operator v0.3.0 and with us."""
    ours = Ours(qps=operator_qps, burst=operator_burst)
    peer = _peer(peer_operator, peer_flag)
    runner.measure([scale_part.run], Wanted(repeat=repeat, json=json, check=check, ours=ours, peer=peer))


@app.command(epilog=_examples("python -m bench throughput --repeat 3"))
def throughput(*, repeat: Repeat = 5, json: Json = None, check: Check = False) -> None:
    """Resize 200 jobs of 10 workers at once: how many become right per second."""
    runner.measure([throughput_part.run], Wanted(repeat=repeat, json=json, check=check))


@app.command(epilog=_examples("python -m bench webhook"))
def webhook(*, repeat: Repeat = 5, json: Json = None, check: Check = False) -> None:
    """Reviews per second, their latency, and the time that the webhook adds to requests through the API server."""
    runner.measure([webhook_part.run], Wanted(repeat=repeat, json=json, check=check))


@app.command(epilog=_examples("python -m bench events --repeat 20"))
def events(*, repeat: Repeat = 5, json: Json = None, check: Check = False) -> None:
    """Measure the cost of a pod event for the controller. Needs no lab."""
    runner.measure([events_part.run], Wanted(repeat=repeat, json=json, check=check))


@app.command(epilog=_examples("python -m bench memory"))
def memory(*, repeat: Repeat = 5, json: Json = None, check: Check = False) -> None:
    """Measure memory and start of the controller beside 1,000 and 10,000 pods."""
    runner.measure([starts_part.small, starts_part.large], Wanted(repeat=repeat, json=json, check=check))


@app.command(epilog=_examples("python -m bench start"))
def start(*, repeat: Repeat = 5, json: Json = None, check: Check = False) -> None:
    """Measure start and memory of the controller beside 1,000 pods."""
    runner.measure([starts_part.small], Wanted(repeat=repeat, json=json, check=check))


@app.command(
    epilog=_examples(
        "python -m bench spot --chart spot.svg",
        "python -m bench spot --trace us-west-2a_v100_16.json --machines 16 --hours 48",
        "python -m bench spot --quick",
    )
)
def spot(  # noqa: PLR0913 - a command has as many parameters as options
    *,
    trace: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="A published spot trace (JSON). Default: synthetic."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the synthetic trace and of the kubelet's periods.")] = 1,
    machines: Annotated[int, typer.Option(min=1, max=64, help="Wanted machines, each with a GPU.")] = 8,
    hours: Annotated[float, typer.Option(min=0.1, max=1000, help="Length of the trace to play.")] = 24,
    price_spot: Annotated[float, typer.Option(min=0, help="Price of a spot GPU-hour.")] = 0.30,
    price_on_demand: Annotated[float, typer.Option(min=0.0001, help="Price of an on-demand GPU-hour.")] = 1.00,
    cooldown: Annotated[
        tuple[float, float] | None,
        typer.Option(
            "--blacklist-cooldown-range", help="horovodrun's option for every side: minimum and maximum, in seconds."
        ),
    ] = None,
    commit: Annotated[float, typer.Option(min=0.1, help="Seconds between two commits of elastic jobs.")] = Costs.commit,
    checkpoint: Annotated[float, typer.Option(min=1, help="Seconds between two checkpoints.")] = Costs.checkpoint,
    side: Annotated[list[SideName] | None, typer.Option(help="Play only this side; may be repeated.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Two machines for one eventful hour.")] = False,
    peer_operator: PeerOperator = None,
    peer_flag: PeerFlag = None,
    json: Json = None,
    chart: Annotated[Path | None, typer.Option(dir_okay=False, help="Draw a chart into this file (SVG).")] = None,
) -> None:
    """Play a spot trace to a static job, to mpi-operator v0.3.0, and to us: cost of steps, remaining saving."""
    wanted = spot_command.Wanted(
        trace=trace,
        seed=seed,
        size=machines,
        hours=hours,
        quick=quick,
        prices=Prices(spot=price_spot, on_demand=price_on_demand),
        json=json,
        chart=chart,
        peer=_peer(peer_operator, peer_flag),
        costs=Costs(cooldown=cooldown, commit=commit, checkpoint=checkpoint),
        sides=side or (),
    )
    try:
        spot_command.run(wanted)
    except TraceError as error:
        raise typer.BadParameter(str(error), param_hint="--trace") from error


@app.command(epilog=_examples("python -m bench real --repeat 1"))
def real(
    *,
    peer_operator: PeerOperator = None,
    peer_flag: PeerFlag = None,
    repeat: Repeat = 6,
    json: Json = None,
    check: Check = False,
) -> None:
    """Resize a job that really trains, 2→3→1→3→4→2, on a real node (needs root); measure the effect of a touch."""
    peer = _peer(peer_operator, peer_flag)
    runner.measure([real_part.run], Wanted(repeat=repeat, json=json, check=check, peer=peer))


@app.command("all", epilog=_examples("python -m bench all --json figures.json"))
def everything(
    *,
    peer_operator: PeerOperator = None,
    peer_flag: PeerFlag = None,
    operator_qps: Qps = None,
    operator_burst: Burst = 10,
    repeat: Repeat = 5,
    json: Json = None,
    check: Check = False,
) -> None:
    """Measure all of the above except `real` and `spot`."""
    ours = Ours(qps=operator_qps, burst=operator_burst)
    peer = _peer(peer_operator, peer_flag)
    parts = [
        events_part.run,
        webhook_part.run,
        scale_part.run,
        throughput_part.run,
        starts_part.small,
        starts_part.large,
    ]
    runner.measure(parts, Wanted(repeat=repeat, json=json, check=check, ours=ours, peer=peer))


def _peer(binary: Path | None, flags: list[str] | None) -> Peer:
    return Peer(binary=binary.resolve() if binary else None, flags=tuple(flags or ()))


def main() -> None:
    """Run the command line."""
    app()
