"""Ranks that step together, and tell their progress with the module that users copy.

Each rank is a process of its pod. What MPI would tell it stands in a file: how many ranks there are
in which ring. A new ring takes FORMING seconds to form, and a file that is empty stops all ranks.
"""

import asyncio
import shlex
import sys
from dataclasses import dataclass, field
from pathlib import Path

from lab.cluster import Cluster
from tests.lab.job import Job
from tests.lab.ranks import in_pod

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "docs" / "examples"
STEP, FORMING = 0.2, 2.0
# As in a pod: no other pod sees it.
_OWN_MEMORY = "mount --make-rprivate / && mount -t tmpfs tmpfs /dev/shm"
_RANK = """\
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from progress import Progress
ring, progress, known, step = Path(sys.argv[2]), Progress(total=100000), "", 0
while True:
    now = ring.read_text()
    if now != known:
        known = now
        time.sleep(float(sys.argv[4]))
        progress.begin()
        continue
    if not now:
        time.sleep(0.05)
        continue
    began, step, ranks = time.time(), step + 1, int(now.split()[0])
    time.sleep(float(sys.argv[3]))
    progress.step(step, samples=8 * ranks, ranks=ranks, began=began, own=0.1)
    progress.saved()
"""


@dataclass(kw_only=True)
class Ring:
    """The ranks of a job."""

    cluster: Cluster
    job: Job
    folder: Path
    #: The pods in which a rank runs.
    pods: set[str] = field(default_factory=set)
    #: The number of the ring.
    number: int = 0

    async def form(self, *indices: int) -> None:
        """Let the ranks of these workers form a ring; ranks are started where there are none."""
        self.number += 1
        new = self.folder / "ring.new"
        new.write_text(f"{len(indices)} {self.number}")
        new.rename(self.folder / "ring")
        for pod in self.job.workers(*indices):
            if pod not in self.pods:
                await asyncio.to_thread(self._start, pod)
                self.pods.add(pod)

    async def end(self, *indices: int) -> None:
        """The ranks of these workers end."""
        for pod in self.job.workers(*indices):
            self.pods.discard(pod)
            kill = "kill -KILL $(cat /dev/shm/rank)"
            await asyncio.to_thread(in_pod, self.cluster, self.job, pod, kill)

    def _start(self, pod: str) -> None:
        words = [sys.executable, "-c", _RANK, f"{EXAMPLES}", f"{self.folder}/ring"]
        rank = shlex.join([*words, f"{STEP}", f"{FORMING}"])
        script = f"{_OWN_MEMORY}; {rank} >{self.folder}/{pod}.log 2>&1 & echo $! >/dev/shm/rank"
        in_pod(self.cluster, self.job, pod, script)
