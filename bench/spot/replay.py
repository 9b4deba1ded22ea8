"""Play a trace to a side: machines come and go, the real control plane acts, the model trains on the result.

Five times a second: make the due moves of the trace, read the job, advance the model, do what the
model wants (start and end ranks, let the launcher start, create a failed job again). If all real
programs are at rest, the model goes on alone to its next wish or the next move. So they work at
their true speed beside notices and costs of true length, and nothing is scaled.
"""

import asyncio
import copy
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from bench import jobs, namespaces
from bench.audit import Tail
from bench.spot import world
from bench.spot.contest import HOLD, Contender
from bench.spot.pool import Pool
from bench.spot.tally import Costs
from bench.spot.trace import Trace
from bench.spot.training import Training
from bench.spot.world import World
from lab.cluster import Cluster
from lab.ranks import Ranks
from mpijob_elastic import names
from mpijob_elastic.kube.resources import PODS
from mpijob_elastic.kube.writer import MERGE_PATCH, ApiWriter

TICK = 0.2
# Seconds; a shorter skip is not worth it.
SHORTEST_SKIP = 1.0
# Seconds without a write after which a pod that could run is no longer waited for. Busy cores may
# need many.
OWED_PATIENCE = 60.0


@dataclass(kw_only=True)
class Replay:
    """A trace for a side that runs, with a job in its own namespace."""

    cluster: Cluster
    client: ApiWriter
    trace: Trace
    contender: Contender
    say: Callable[[str], None]

    def __post_init__(self) -> None:
        """Begin with all moves to come."""
        self._namespace = namespaces.create(self.cluster, f"spot-{self.contender.name}")
        self._moves = deque(self.trace.moves)
        self._training = Training(
            costs=Costs(), size=self.trace.size, elastic=self.contender.elastic
        )
        self._pool = Pool(
            self.cluster, self.client, name=self.contender.name, namespace=self._namespace
        )
        self._tail = Tail(self.cluster.audit_log)
        self._ranks: Ranks | None = None
        self._acted_at = time.time()
        self._skipped = 0.0

    async def run(self) -> Training:
        """Play the trace to its end, and return what was trained.

        Raises LabError, and what `ApiReader` raises.
        """
        await self._pool.prepare()
        await self._create()
        begin = time.monotonic()
        try:
            while (now := time.monotonic() - begin + self._skipped) < self.trace.horizon:
                seen = await self._turn(now)
                if self._rests(seen):
                    await self._skip(now, seen)
                await asyncio.sleep(TICK)
        finally:
            self._kill_ranks()
        self._remove()
        await self._pool.close()
        return self._training

    async def _turn(self, now: float) -> World:
        while self._moves and self._moves[0].at <= now:
            move = self._moves.popleft()
            self.say(f"{self.contender.title}: {now / 3600:.2f} h, {move.name} {move.kind}")
            await self._pool.make(move)
            self._acted()
        seen = await world.look(self.client, self._namespace, gone=self._pool.gone)
        states = self._ranks.states if self._ranks else {}
        self._training.tick(
            now, seen, lost=[host for host in self._training.ring if states.get(host) == "killed"]
        )
        if self._training.failed:
            self.say(f"{self.contender.title}: the job starts again: {self._training.failures[-1]}")
            self._remove()
            await self._create()
            self._training.again()
        elif not seen.started and self._training.delivered(seen):
            path = PODS.path(self._namespace, names.launcher(jobs.JOB))
            patch = {"metadata": {"annotations": {HOLD: None}}}
            await self.client.patch_object(path, body=patch, content_type=MERGE_PATCH)
            self._acted()
        self._follow(seen)
        return seen

    def _follow(self, seen: World) -> None:
        """Have a real rank in each host of the ring."""
        if not (self.contender.elastic and self.cluster.exec_offered and seen.started):
            return
        if self._ranks is None:
            self._ranks = Ranks(self.cluster, namespace=self._namespace, job=jobs.JOB, commit=0)
        if self._ranks.discover([*self._training.ring]):
            self._acted()
        self._ranks.commit()

    def _rests(self, seen: World) -> bool:
        """Return True if no real program is at work.

        The model may wait: what it waits for can be skipped to.
        """
        needed = self.contender.quiet if self._training.settled(seen) else self.contender.patience
        if self._training.owed(seen, machines=len(self._pool.usable)):
            needed = max(needed, OWED_PATIENCE)
        writes = [write.at for write in self._tail.writes() if write.namespace == self._namespace]
        return time.time() - max([self._acted_at, *writes]) >= needed

    async def _skip(self, now: float, seen: World) -> None:
        """Let the model go on alone until its ring changes or a machine does, unless that is very soon."""
        at, end = (
            now,
            min(self._moves[0].at if self._moves else self.trace.horizon, self.trace.horizon),
        )
        ahead = copy.deepcopy(self._training)
        ring = {*ahead.ring}
        while at < end and not ahead.failed and {*ahead.ring} == ring:
            at = min(at + TICK, end)
            ahead.tick(at, seen)
        if at - now < SHORTEST_SKIP:
            return
        if not self.contender.remembers or await world.shift(
            self.client, self._namespace, seconds=at - now
        ):
            self._training = ahead
            self._skipped += at - now

    async def _create(self) -> None:
        manifest = self.contender.manifest(size=self.trace.size, selector=self._pool.selector)
        await jobs.create(self.client, self._namespace, manifest)
        self._acted()

    def _remove(self) -> None:
        self._kill_ranks()
        namespaces.empty(self.cluster, self._namespace)

    def _kill_ranks(self) -> None:
        if self._ranks:
            self._ranks.close()
            self._ranks = None

    def _acted(self) -> None:
        self._acted_at = time.time()
