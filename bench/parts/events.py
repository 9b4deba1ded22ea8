"""A pod event through the watch cache. Needs no lab."""

from bench import events, targets
from bench.figures import Figure
from bench.parts.context import Findings, Setting


async def run(setting: Setting) -> Findings:
    """Measure `repeat` times."""
    sample = events.SAMPLE.read_bytes()
    costs = []
    for turn in range(setting.repeat):
        setting.say(f"pod events, {turn + 1} of {setting.repeat}")
        costs.append(await events.run(sample))

    def figure(name: str, values: list[float]) -> Figure:
        target = targets.POD_EVENT if name == "decoded, cached, job queued" else None
        return Figure(topic="Events", group="one pod event", name=name, unit="µs", ours=tuple(values), target=target)

    return Findings(
        figures=[
            figure("decoded, cached, job queued", [cost.event for cost in costs]),
            figure("of that, facts read from the object", [cost.decoding for cost in costs]),
            figure("the line parsed by json alone", [cost.json for cost in costs]),
        ],
        notes=[f"A pod event of a running worker has {events.size(sample):,} bytes."],
    )
