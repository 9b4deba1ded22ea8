"""All jobs of a fleet change their size at once."""

from __future__ import annotations

from collections.abc import Sequence

from bench import fleet, namespaces, targets
from bench import throughput as bursts
from bench.audit import Tail
from bench.figures import Figure
from bench.fleet import Fleet
from bench.parts.setting import Findings, Setting, lab
from bench.settling import quiet
from bench.sides import Ours
from bench.throughput import Burst

FLEET = Fleet(count=200, workers=10)
SMALLER = 9


async def run(setting: Setting) -> Findings:
    """Shrink and grow every job by one worker, `repeat` times. Raises LabError."""
    shrunk: list[Burst] = []
    grown: list[Burst] = []
    async with lab(setting) as (cluster, client):
        where = namespaces.create(cluster, "throughput")
        await fleet.make(client, FLEET, namespace=where, nodes=cluster.options.nodes, say=setting.say)
        # The operator's limit of 5 writes a second would be all that growing shows.
        with Ours(qps=0).start(cluster):
            await quiet(Tail(cluster.audit_log), namespace=where)
            for turn in range(setting.repeat):
                setting.say(f"all jobs change their size at once, {turn + 1} of {setting.repeat}")
                for gathered, size in ((shrunk, SMALLER), (grown, FLEET.workers)):
                    gathered.append(await bursts.resize_all(cluster, client, FLEET, namespace=where, replicas=size))
    return Findings(figures=[*_figures(FLEET.workers, SMALLER, shrunk), *_figures(SMALLER, FLEET.workers, grown)])


def _figures(old: int, new: int, found: Sequence[Burst]) -> list[Figure]:
    about = f"{FLEET.count} jobs, {old}→{new} at once"
    return [
        Figure(
            topic="Throughput",
            group=about,
            name="jobs right",
            unit="1/s",
            ours=tuple(FLEET.count / one.seconds for one in found),
            target=targets.JOBS_A_SECOND,
        ),
        Figure(
            topic="Throughput",
            group=about,
            name="writes a job but Events and deletions",
            unit="",
            ours=tuple(one.writes for one in found),
            target=targets.WRITES,
        ),
        Figure(topic="Throughput", group=about, name="Events a job", unit="", ours=tuple(one.events for one in found)),
    ]
