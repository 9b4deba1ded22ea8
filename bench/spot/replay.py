"""Play a trace to a side: machines come and go, the real control plane acts, the model trains on the result.

Five times a second: make the due moves of the trace, read the job, advance the model, do what the model wants (start
and end ranks, let the launcher start, create a failed job again). If all is at rest, the trace's time skips to the next
change. So the real programs work at their true speed beside notices and costs of true length, and nothing is scaled.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from bench import jobs, namespaces
from bench.audit import Tail
from bench.spot import world
from bench.spot.contest import HOLD, Contender
from bench.spot.costs import Costs
from bench.spot.pool import Pool
from bench.spot.time_shift import shift
from bench.spot.trace import Trace
from bench.spot.training import Training
from bench.spot.world import World
from lab.cluster import Cluster
from lab.errors import LabError
from lab.ranks import Ranks
from mpijob_elastic import names
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import MPI_JOBS, PODS
from mpijob_elastic.kube.writer import MERGE_PATCH, ApiWriter

TICK = 0.2
# Seconds for a deleted job to go.
PATIENCE = 60.0
# Seconds; a shorter skip is not worth it.
SHORTEST_SKIP = 1.0
# Seconds without a write after which a pod that could run is no longer waited for. Busy cores may need many.
OWED_PATIENCE = 60.0
# Draws the kubelet's periods.
SEED = 1


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The result of a side's job.

    killed: ranks that died with their machine or pod. failures: why the job ended, for each restart.
    """

    useful: float
    lost: float
    gpu_seconds: float
    killed: int
    failures: tuple[str, ...]


async def play(
    cluster: Cluster, client: ApiWriter, trace: Trace, contender: Contender, *, say: Callable[[str], None]
) -> Outcome:
    """Start a side, and play the trace to it. Raises LabError, KubeError."""
    say(f"{contender.title}: starting")
    with contender.start(cluster):
        namespace = namespaces.create(cluster, f"spot-{contender.name}")
        return await _Replay(cluster, client, trace, contender, namespace, say).run()


class _Replay:
    def __init__(
        self,
        cluster: Cluster,
        client: ApiWriter,
        trace: Trace,
        contender: Contender,
        namespace: str,
        say: Callable[[str], None],
    ) -> None:
        self._cluster = cluster
        self._client = client
        self._trace = trace
        self._contender = contender
        self._namespace = namespace
        self._say = say
        self._moves = deque(trace.moves)
        chance = Random(SEED)
        self._training = Training(costs=Costs(), size=trace.size, elastic=contender.elastic, chance=chance)
        self._pool = Pool(cluster, client, name=contender.name, namespace=namespace)
        self._tail = Tail(cluster.audit_log)
        self._ranks: Ranks | None = None
        self._acted_at = time.time()
        self._skipped = 0.0

    async def run(self) -> Outcome:
        """Play the trace to its end. Raises LabError, and what `ApiReader` raises."""
        await self._pool.prepare()
        await self._create()
        begin = time.monotonic()
        try:
            while (now := time.monotonic() - begin + self._skipped) < self._trace.horizon:
                seen = await self._turn(now)
                if self._rests(seen):
                    await self._skip(now, seen)
                await asyncio.sleep(TICK)
        finally:
            if self._ranks:
                self._ranks.kill_all()
        await self._remove()
        await self._pool.close()
        training, end = self._training, self._trace.horizon
        return Outcome(
            useful=training.tally.useful(end),
            lost=training.tally.lost,
            gpu_seconds=training.tally.gpu_seconds(end),
            killed=training.killed,
            failures=tuple(training.failures),
        )

    async def _turn(self, now: float) -> World:
        while self._moves and self._moves[0].at <= now:
            move = self._moves.popleft()
            self._say(f"{self._contender.title}: {now / 3600:.2f} h, {move.name} {move.kind}")
            await self._pool.make(move)
            self._acted()
        seen = await world.look(self._client, self._namespace, gone=self._pool.gone)
        states = self._ranks.states if self._ranks else {}
        self._training.tick(now, seen, lost=[host for host in self._training.ring if states.get(host) == "killed"])
        if self._training.failed:
            self._say(f"{self._contender.title}: the job starts again: {self._training.failures[-1]}")
            await self._remove()
            await self._create()
            self._training.again()
        elif not seen.started and self._training.delivered(seen):
            path = PODS.path(self._namespace, names.launcher(jobs.JOB))
            patch = {"metadata": {"annotations": {HOLD: None}}}
            await self._client.patch_object(path, body=patch, content_type=MERGE_PATCH)
            self._acted()
        self._follow(seen)
        return seen

    def _follow(self, seen: World) -> None:
        if not (self._contender.elastic and self._cluster.exec_offered and seen.started):
            return
        if self._ranks is None:
            self._ranks = Ranks(self._cluster, namespace=self._namespace, job=jobs.JOB, commit=0)
        if self._ranks.discover([*self._training.ring]):
            self._acted()
        self._ranks.commit()

    def _rests(self, seen: World) -> bool:
        """Return True if no real program is at work. The model may wait: its next change can be skipped to."""
        needed = self._contender.quiet if self._training.settled(seen) else self._contender.patience
        if self._training.owed(seen, machines=len(self._pool.usable)):
            needed = max(needed, OWED_PATIENCE)
        writes = [write.at for write in self._tail.writes() if write.namespace == self._namespace]
        return time.time() - max([self._acted_at, *writes]) >= needed

    async def _skip(self, now: float, seen: World) -> None:
        """Skip to the next change, unless it comes very soon."""
        move = self._moves[0].at if self._moves else self._trace.horizon
        seconds = min(move, self._trace.horizon, self._training.next_change(seen)) - now
        if seconds < SHORTEST_SKIP:
            return
        if not self._contender.remembers or await shift(self._client, self._namespace, seconds=seconds):
            self._skipped += seconds

    async def _create(self) -> None:
        manifest = self._contender.manifest(size=self._trace.size, selector=self._pool.selector)
        await jobs.create(self._client, self._namespace, manifest)
        self._acted()

    async def _remove(self) -> None:
        if self._ranks:
            self._ranks.kill_all()
            self._ranks = None
        path = MPI_JOBS.path(self._namespace, jobs.JOB)
        await self._client.delete_object(path, options={"propagationPolicy": "Background"})
        deadline = time.monotonic() + PATIENCE
        while await self._is_there():
            if time.monotonic() > deadline:
                raise LabError(f"{self._namespace}/{jobs.JOB} is not gone {PATIENCE:.0f} s after it was deleted")
            await asyncio.sleep(TICK)

    async def _is_there(self) -> bool:
        try:
            await self._client.get(MPI_JOBS.path(self._namespace, jobs.JOB))
        except errors.NotFound:
            return bool((await world.look(self._client, self._namespace, gone=())).pods)
        return True

    def _acted(self) -> None:
        self._acted_at = time.time()
