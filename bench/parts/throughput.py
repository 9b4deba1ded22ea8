"""Resize all jobs of a fleet at once."""

from collections.abc import Mapping, Sequence

from bench import fleet, namespaces, targets
from bench import throughput as bursts
from bench.audit import Tail
from bench.figures import Figure, Target
from bench.fleet import Fleet
from bench.parts.context import Findings, Setting, lab
from bench.rest import quiet
from bench.sides import Ours, Side
from bench.throughput import Burst
from lab.cluster import Cluster
from lab.layout import Layout
from lab.state import read_state

# Growing comes first. A host that was there from the start may have had rank 0. Its drain is not seen, because kwok
# serves no exec, so after a scale-in decide/rank0_loss would delay the next addition.
FLEET = Fleet(count=200, workers=10)


async def run(setting: Setting) -> Findings:
    """Take a worker from every job at once, `repeat` times. Raises LabError.

    Jobs do not grow here: v0.2.3 puts each event of a pod through client-go's default rate limiter (10 keys a second
    after the first 100), so with 200 jobs it creates a worker many minutes after the edit.
    """
    found: list[Burst] = []
    async with lab(setting) as (cluster, client):
        where = namespaces.create(cluster, "throughput")
        await fleet.make(client, FLEET, namespace=where, nodes=cluster.options.nodes, say=setting.say)
        with Ours(qps=0).start(cluster) as side:
            await quiet(Tail(cluster.audit_log), namespace=where)
            pids = _processes(cluster, side)
            for turn in range(min(setting.repeat, FLEET.workers - 1)):
                setting.say(f"all jobs lose a worker at once, {turn + 1} of {setting.repeat}")
                size = FLEET.workers - turn - 1
                burst = bursts.resize_all(cluster, client, FLEET, namespace=where, replicas=size, pids=pids)
                found.append(await burst)
    return Findings(figures=_figures(found))


def _processes(cluster: Cluster, side: Side) -> Mapping[str, int]:
    """Return the processes of the side and the API server, because our requests cost its time too."""
    state = read_state(Layout(cluster.state_dir))
    assert state is not None, "a lab that runs has a state"
    return {**side.pids, "API server": state.components["kube-apiserver"].pid}


def _figures(found: Sequence[Burst]) -> list[Figure]:
    def figure(name: str, unit: str, values: Sequence[float], target: Target | None = None) -> Figure:
        group = f"{FLEET.count} jobs, a worker fewer at once"
        return Figure(topic="Throughput", group=group, name=name, unit=unit, ours=tuple(values), target=target)

    return [
        figure("jobs right", "1/s", [FLEET.count / burst.seconds for burst in found], targets.JOBS_A_SECOND),
        figure("writes a job but Events and deletions", "", [burst.writes for burst in found], targets.WRITES),
        figure("Events a job", "", [burst.events for burst in found]),
        *(
            figure(f"CPU a job of the {name}", "ms", [burst.cpu[name] / FLEET.count * 1000 for burst in found])
            for name in found[0].cpu
        ),
    ]
