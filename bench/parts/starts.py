"""The start of a controller beside fleets of several sizes."""

from collections.abc import Sequence

from bench import controller_start, fleet, namespaces, targets
from bench.controller_start import Start
from bench.figures import Figure
from bench.fleet import Fleet
from bench.parts.context import Findings, Setting, lab
from bench.processes import MIB
from lab.install import install_into

WORKERS = 9


async def small(setting: Setting) -> Findings:
    """Start a controller `repeat` times beside 1,000 pods. Raises LabError."""
    return Findings(figures=_figures(1_000, await _starts(setting, Fleet.of_pods(1_000, workers=WORKERS))))


async def large(setting: Setting) -> Findings:
    """Start a controller `repeat` times beside 10,000 pods. Raises LabError."""
    return Findings(figures=_figures(10_000, await _starts(setting, Fleet.of_pods(10_000, workers=WORKERS))))


async def _starts(setting: Setting, size: Fleet) -> list[Start]:
    async with lab(setting) as (cluster, client):
        installed = install_into(cluster)
        where = namespaces.create(cluster, "fleet")
        await fleet.make(client, size, namespace=where, nodes=cluster.options.nodes, say=setting.say)
        found = []
        for turn in range(setting.repeat):
            setting.say(f"a controller starts beside {size.pods} pods, {turn + 1} of {setting.repeat}")
            found.append(await controller_start.run(cluster, installed, namespace=where))
    return found


def _figures(pods: int, found: Sequence[Start]) -> list[Figure]:
    group = f"{pods:,} pods"
    memory, ready = targets.MEMORY.get(pods), targets.READY if pods == 1_000 else None

    def figure(topic: str, name: str, unit: str, values: Sequence[float]) -> Figure:
        target = {"start to ready": ready, "memory at most": memory}.get(name)
        return Figure(topic=topic, group=group, name=name, unit=unit, ours=tuple(values), target=target)

    return [
        figure("Start", "start to ready", "s", [start.ready for start in found]),
        figure("Start", "start to leading", "s", [start.leads for start in found]),
        figure("Start", "CPU until at rest", "s", [start.cpu for start in found]),
        figure("Memory", "memory at rest", "MiB", [start.resident / MIB for start in found]),
        figure("Memory", "memory at most", "MiB", [start.peak / MIB for start in found]),
    ]
