"""All sides play the same trace in a row, in the same lab."""

from collections.abc import Callable, Sequence

from bench import namespaces
from bench.spot.contenders import Contender
from bench.spot.costs import Costs
from bench.spot.replay import Ground, Outcome, Replay
from bench.spot.trace import Trace
from lab.cluster import Cluster
from mpijob_elastic.kube.writer import ApiWriter


async def run(
    cluster: Cluster,
    client: ApiWriter,
    trace: Trace,
    contenders: Sequence[Contender],
    *,
    costs: Costs,
    seed: int,
    say: Callable[[str], None],
) -> dict[str, Outcome]:
    """Return the outcome of each side by title. `seed` draws the kubelet's periods. Raises LabError, KubeError."""
    outcomes = {}
    for contender in contenders:
        say(f"{contender.title}: starting")
        with contender.start(cluster):
            namespace = namespaces.create(cluster, f"spot-{contender.name}")
            ground = Ground(cluster=cluster, client=client, namespace=namespace, say=say)
            outcomes[contender.title] = await Replay(ground, trace, contender, costs=costs, seed=seed).run()
    return outcomes
