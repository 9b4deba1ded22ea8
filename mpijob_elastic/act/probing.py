"""Looks by exec into leaving workers, for anything but the main process.

Beside the reconcile loop, bounded in time and number; an answer wakes the job. Whatever goes wrong is only counted:
then the drain-timeout decides. What was seen is kept in memory alone, for a restart costs no more than another look.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace

from mpijob_elastic.kube import errors
from mpijob_elastic.kube.client import Client
from mpijob_elastic.kube.exec import exec_in_pod
from mpijob_elastic.model.job import JobView, Probe, Worker
from mpijob_elastic.telemetry.metrics import Metrics

log = logging.getLogger(__name__)

# Seconds for one look, and how many may be under way at once over all jobs.
PROBE_TIMEOUT = 3.0
MOST_AT_ONCE = 16

# Only builtins of a POSIX shell, so it starts no process that it would count itself. Skips process 1, which is the
# container's main one, the shell itself, and zombies: `sleep` as process 1 never reaps a rank that was orphaned to it.
# /proc/PID/stat is `PID (NAME) STATE ...`, and NAME may hold anything (proc_pid_stat(5)).
SCRIPT = """\
for process in /proc/[0-9]*; do
  pid=${process#/proc/}
  [ "$pid" = 1 ] && continue
  [ "$pid" = "$$" ] && continue
  read -r stat 2>/dev/null < "$process/stat" || continue
  state=${stat##*) }
  [ "${state%% *}" = Z ] && continue
  echo busy
  exit 0
done
echo idle
"""


class Prober:
    """Asks and remembers. `wake` is called with the job's view when an answer is there."""

    def __init__(
        self, client: Client, *, metrics: Metrics, now: Callable[[], float], wake: Callable[[JobView], None]
    ) -> None:
        self._client = client
        self._metrics = metrics
        self._now = now
        self._wake = wake
        self._slots = asyncio.Semaphore(MOST_AT_ONCE)
        self._seen: dict[str, tuple[float, Probe]] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}

    def seen(self, uid: str, left_at: float) -> Probe:
        """What was seen of a pod since it left the host list at that time."""
        since, probe = self._seen.get(uid, (0.0, Probe()))
        return probe if since == left_at else Probe()

    def ask(self, view: JobView, worker: Worker) -> None:
        """Look into a worker, unless that is under way."""
        left = view.memory.left.get(worker.name)
        if left is None or worker.ref.uid in self._asking:
            return
        task = asyncio.create_task(self._ask(view, worker, left.at))
        self._asking[worker.ref.uid] = task
        task.add_done_callback(lambda _: self._asking.pop(worker.ref.uid, None))

    def forget(self, uid: str) -> None:
        """A pod is gone."""
        self._seen.pop(uid, None)

    async def close(self) -> None:
        """Stop every look that is under way."""
        tasks = list(self._asking.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask(self, view: JobView, worker: Worker, left_at: float) -> None:
        async with self._slots:
            asked_at = self._now()
            outcome = await self._look(view.namespace, worker)
        before = self.seen(worker.ref.uid, left_at)
        self._seen[worker.ref.uid] = (left_at, _with(before, outcome, asked_at=asked_at))
        self._metrics.probed(outcome)
        self._wake(view)

    async def _look(self, namespace: str, worker: Worker) -> str:
        try:
            result = await exec_in_pod(
                self._client,
                namespace,
                worker.name,
                container=worker.container,
                command=["/bin/sh", "-c", SCRIPT],
                timeout=PROBE_TIMEOUT,
            )
        except errors.KubeError as error:
            log.debug("no look into %s/%s: %s", namespace, worker.name, error)
            return "error"
        answer = result.stdout.strip()
        return answer if result.exit_code == 0 and answer in ("idle", "busy") else "error"


def _with(probe: Probe, outcome: str, *, asked_at: float) -> Probe:
    if outcome == "busy":
        return Probe(busy_seen=True, idle_at=None, asked_at=asked_at)
    if outcome == "idle":
        return replace(probe, idle_at=asked_at, asked_at=asked_at)
    return replace(probe, asked_at=asked_at)
