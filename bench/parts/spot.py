"""A trace of spot machines, played to each way to train on them: what each makes of the machines that it pays for."""

from collections.abc import Mapping

from bench.figures import Figure
from bench.parts.context import Findings, Setting, lab
from bench.sides import Ours
from bench.spot.contest import contenders
from bench.spot.replay import Replay
from bench.spot.tally import Costs
from bench.spot.trace import Trace
from bench.spot.training import Training

HOUR = 3600.0
# Prices of a GPU-hour, in any currency: the promised saving is 70 %.
SPOT, ON_DEMAND = 0.30, 1.00


async def run(setting: Setting, *, trace: Trace) -> Findings:
    """Play the trace to the sides, one after the other. Raises LabError, KubeError."""
    outcomes = {}
    async with lab(setting) as (cluster, client):
        for side in contenders(peer=setting.peer, ours=Ours()):
            setting.say(f"{side.title}: starting")
            with side.start(cluster):
                replay = Replay(
                    cluster=cluster, client=client, trace=trace, contender=side, say=setting.say
                )
                outcomes[side.title] = await replay.run()
    notes = [
        f"Trace: {trace.source}; {trace.interruptions} interruptions.",
        f"A GPU-hour: {SPOT:.2f} spot, {ON_DEMAND:.2f} on demand; {trace.machine_seconds / HOUR:.1f} are paid.",
    ]
    return Findings(figures=_figures(trace, outcomes), notes=notes)


def _figures(trace: Trace, outcomes: Mapping[str, Training]) -> list[Figure]:
    """Return the figures of each side, and the saving if no second of a spot machine were lost."""
    rows: list[Figure] = []
    for side, outcome in outcomes.items():
        useful = outcome.tally.useful(trace.horizon)
        figures = {
            ("trained", "GPU-h"): outcome.tally.gpu_seconds(trace.horizon) / HOUR,
            ("useful steps", ""): useful,
            ("lost steps", ""): outcome.tally.lost,
            ("ranks killed", ""): outcome.killed,
            ("job restarts", ""): len(outcome.failures),
            ("saving", "%"): _saving(trace, useful * Costs().step),
        }
        rows += [_figure(side, name, unit, value) for (name, unit), value in figures.items()]
    best = _saving(trace, trace.machine_seconds / trace.size)
    return [*rows, _figure("spot, if no second were lost", "saving", "%", best)]


def _figure(side: str, name: str, unit: str, value: float) -> Figure:
    return Figure(topic="Spot", group=side, name=name, unit=unit, ours=(value,))


def _saving(trace: Trace, trained: float) -> float:
    """Return the saved share of what these seconds cost on demand: a GPU is paid for while it exists, used or not."""
    on_demand = trace.size * trained * ON_DEMAND
    return 100 * (1 - trace.machine_seconds * SPOT / on_demand) if on_demand else 0.0
