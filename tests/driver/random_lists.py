"""Random lists, ends of workers and of ranks, while elastic.sh runs, and what must always hold.

No rank of a start runs beside a rank of another, or in a worker that is not acknowledged. No start
has fewer slots than the least. Whatever happened, in the end the ranks run on the hosts of the list,
and SIGTERM ends all.
"""

import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from random import Random

from tests.driver.world import World, until

WORKERS = ("w0", "w1", "w2", "w3")
LEAST = 2
_MARK = b"MPIJOB_ELASTIC_RUN="


def start_of(rank: int) -> bytes:
    """Return the mark of the start to which a rank belongs; b"" if it has ended."""
    try:
        environment = Path(f"/proc/{rank}/environ").read_bytes()
    except OSError:
        return b""
    marks = [text for text in environment.split(b"\0") if text.startswith(_MARK)]
    return marks[0] if marks else b""


class Watch(threading.Thread):
    """Looks at the ranks all the time, and notes starts whose ranks run beside another's."""

    def __init__(self, world: World) -> None:
        """Watch the ranks of a world."""
        super().__init__(daemon=True)
        self.world = world
        self.violations: list[str] = []
        self.looks = 0
        self._done = threading.Event()

    def run(self) -> None:
        """Look until it is stopped."""
        while not self._done.is_set():
            self._look()
            self._look_at_workers()
            self.looks += 1
            self._done.wait(0.02)

    def stop(self) -> None:
        """Look no more."""
        self._done.set()
        self.join()

    def _look(self) -> None:
        starts = {rank: start_of(rank) for rank in self.world.ranks()}
        if len({*starts.values()} - {b""}) < 2:
            return
        # The earlier may have ended before the later was seen.
        still = {start_of(rank) for rank in starts} - {b""}
        if len(still) > 1:
            self.violations.append(f"ranks of {len(still)} starts at once: {sorted(still)}")

    def _look_at_workers(self) -> None:
        acknowledged = self.world.acknowledged
        unknown = {
            rank: worker
            for rank, worker in self.world.workers_of_ranks().items()
            if f"\n{worker}:" not in acknowledged and f"left {worker}\n" not in acknowledged
        }
        # The acknowledgement may have changed while the ranks were looked for.
        if unknown and self.world.acknowledged == acknowledged:
            still = {worker for rank, worker in unknown.items() if start_of(rank)}
            if still:
                self.violations.append(f"ranks in {sorted(still)}, but {acknowledged!r}")


def change(world: World, random: Random, generations: dict[str, int]) -> None:
    """Make one change of the world."""
    kind = random.choice(["list", "list", "list", "empty", "kill", "lose", "pause"])
    if kind == "list":
        there = [name for name in WORKERS if name in world.workers]
        publish(world, random.sample(there, random.randint(0, len(there))), generations)
    elif kind == "empty":
        publish(world, [], generations)
    elif kind == "kill":
        for rank in world.ranks()[:1]:
            with suppress(ProcessLookupError):
                os.kill(rank, signal.SIGKILL)
    elif kind == "lose":
        lose(world, random, generations)
    time.sleep(random.choice([0.0, 0.1, 0.4, 1.5]))


def publish(world: World, names: list[str], generations: dict[str, int]) -> None:
    """Publish hosts in their order."""
    world.publish(*sorted(names), generations={name: f"{generations[name]}" for name in names})


def lose(world: World, random: Random, generations: dict[str, int]) -> None:
    """End a worker, which may leave the list later, and start its successor."""
    name = random.choice(WORKERS)
    world.remove(name)
    time.sleep(random.choice([0.0, 0.5, 1.5]))
    generations[name] += 1
    world.add(name)


def run(world: World, *, seed: int, changes: int) -> list[str]:
    """Make so many random changes; return what went wrong."""
    random, generations = Random(seed), dict.fromkeys(WORKERS, 0)
    world.add(*WORKERS)
    publish(world, [*WORKERS], generations)
    watch = Watch(world)
    watch.start()
    world.start("--min-np", f"{LEAST}", "--retries", "1000", "--grace", "5")
    for _ in range(changes):
        change(world, random, generations)
    publish(world, [*WORKERS], generations)
    world.runs_on(*WORKERS)
    until(lambda: len(world.ranks()) == len(WORKERS), "a rank in each", shown=lambda: world.log)
    world.terminate()
    code = world.code()
    watch.stop()
    violations = [*watch.violations]
    if code != 143:
        violations.append(f"it ended with {code}")
    if world.ranks():
        violations.append(f"ranks are left: {world.ranks()}")
    small = {note for note in world.notes if note.what == "starts" and note.ranks < LEAST}
    if small:
        violations.append(f"starts below the least: {small}")
    if watch.looks < changes:
        violations.append(f"only {watch.looks} looks at the ranks")
    return violations
