"""The training of a side, from the objects of its job to steps: mount, driver and restarts together.

Pure: it gets the world and the time, and says what it wants. The launcher pod is held Pending by
the replay until its init container would have ended: kubectl-delivery waits until every host of its
hostfile runs [operator]. When the driver ends, the job has failed. Its owner creates it again at
once, and it starts at its last checkpoint.
"""

from collections.abc import Collection, Iterable, Mapping

from bench.jobs import hosts
from bench.spot.driver import Driver
from bench.spot.tally import Costs, Tally
from bench.spot.world import World
from mpijob_elastic.names import pod_of

# A kubelet syncs each pod every 60 to 90 s (--sync-frequency of 1 m, jittered by up to a half:
# pod_workers.go of pkg/kubelet) and updates its ConfigMap volumes then; on average 38 s after a
# change, as measured.
SYNC = 75.0
# It syncs a pod at once when the pod itself changes, for example an annotation: measured 0.3 to 0.7
# s.
AFTER_TOUCH = 0.5


class Mount:
    """A file as the launcher sees it. Times are seconds and never go back."""

    def __init__(self, *, now: float, content: str, touch: str) -> None:
        self._touch = touch
        self._sync_at = now + SYNC
        self.content = content

    def tick(self, now: float, *, content: str, touch: str) -> None:
        """Let time pass: `content` is the ConfigMap's present content; `touch` changes whenever the pod changes."""
        if touch != self._touch:
            self._touch = touch
            self._sync_at = min(self._sync_at, now + AFTER_TOUCH)
        while self._sync_at <= now:
            self.content = content
            self._sync_at += SYNC


class Training:
    """All runs of a job.

    Times are seconds and never go back; `elastic`: it follows discover_hosts.sh.
    """

    def __init__(self, *, costs: Costs, size: int, elastic: bool) -> None:
        self._costs = costs
        self._size = size
        self._elastic = elastic
        self._driver: Driver | None = None
        self._mount: Mount | None = None
        self.tally = Tally(costs=costs, size=size)
        self.killed = 0
        self.failures: list[str] = []

    @property
    def failed(self) -> bool:
        """True if the job must be created again."""
        return self._driver is not None and bool(self._driver.failed)

    @property
    def ring(self) -> Iterable[str]:
        """Hosts with ranks."""
        return self._driver.ring if self._driver else ()

    def delivered(self, world: World) -> bool:
        """Return True if the launcher's init container has ended, so that its main container may start."""
        awaited = {pod_of(host) for host in world.hostfile}
        return bool(world.launcher and awaited) and awaited <= world.running.keys()

    def owed(self, world: World, *, machines: int) -> bool:
        """Return True if a pod does not run although nothing keeps it waiting.

        `machines`: those that take pods.
        """
        launcher = not world.launcher or (self.delivered(world) and not world.started)
        return launcher or len(world.running) < min(self._size, machines)

    def tick(self, now: float, world: World, *, lost: Collection[str] = ()) -> None:
        """Let time pass. `lost`: hosts whose rank has died although their pod runs."""
        if self.failed or not world.started:
            return
        if self._driver is None:
            self._driver = Driver(
                now=now, costs=self._costs, tally=self.tally, elastic=self._elastic
            )
            self._mount = Mount(now=now, content=world.script, touch=world.touch)
        assert self._mount is not None
        self._mount.tick(now, content=world.script, touch=world.touch)
        before = self._driver.killed
        self._driver.tick(now, listed=self._listed(world), running=_reachable(world, lost))
        self.killed += self._driver.killed - before
        if self._driver.failed:
            self.failures.append(self._driver.failed)

    def again(self) -> None:
        """Forget the driver: the job was created again."""
        self._driver = self._mount = None

    def settled(self, world: World) -> bool:
        """Return True if exactly the running workers train, so that nothing waits."""
        return (
            self._driver is not None
            and {pod_of(host) for host in self._driver.ring} == world.running.keys()
        )

    def _listed(self, world: World) -> tuple[str, ...]:
        assert self._mount is not None
        return hosts(self._mount.content) if self._elastic else world.hostfile


def _reachable(world: World, lost: Collection[str]) -> Mapping[str, str]:
    unreachable = {pod_of(host) for host in lost}
    return {pod: uid for pod, uid in world.running.items() if pod not in unreachable}
