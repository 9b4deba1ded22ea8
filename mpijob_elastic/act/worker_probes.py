"""Probe workers by exec for processes beside the main process: leaving workers often, published workers seldom.

Probes run beside the reconcile loop, bounded in time, number and rate; an answer with news wakes the job. A failed
probe is only counted: then the drain-timeout decides, and nothing follows for a published worker. Results are kept in
memory alone: a restart costs another probe, and perhaps a number in a host name (decide/host_names).
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

from mpijob_elastic.act.exec_looks import Tasks, look_into
from mpijob_elastic.act.rates import Rate
from mpijob_elastic.decide.actions import ProbeWorkers
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.model.job import JobView, Probe, Worker
from mpijob_elastic.model.memory import pod_key
from mpijob_elastic.telemetry.metrics import Metrics

# Seconds for a look, and the number of looks under way at once over all jobs.
PROBE_TIMEOUT = 3.0
MOST_AT_ONCE = 16
# Looks a second over all jobs: into leaving workers, for whose GPUs somebody waits, and into published workers.
LEAVING_A_SECOND = 50.0
PUBLISHED_A_SECOND = 10.0
# Looks into published workers that begin together. Each needs a connection of its own with a TLS handshake, and a look
# that begins alone costs twice the CPU, because caches have gone cold (4.3 ms; 2.1 ms each if ten begin together).
PUBLISHED_TOGETHER = 10
# Published workers that may wait for their turn; any more are dropped, and decided on again later.
MOST_WAITING = 100

# Only builtins of a POSIX shell, so it starts no process that it would count itself. It skips process 1, which is the
# container's main process, the shell itself, and zombies: `sleep` as process 1 never reaps an orphaned rank.
# /proc/PID/stat is `PID (NAME) STATE ...`, and NAME may hold anything (proc_pid_stat(5)).
EACH_PROCESS = """\
for process in /proc/[0-9]*; do
  pid=${process#/proc/}
  [ "$pid" = 1 ] && continue
  [ "$pid" = "$$" ] && continue
  read -r stat 2>/dev/null < "$process/stat" || continue
  state=${stat##*) }
  [ "${state%% *}" = Z ] && continue
"""
SCRIPT = f"""\
{EACH_PROCESS}  echo busy
  exit 0
done
echo idle
"""


@dataclass(frozen=True, kw_only=True)
class _Look:
    """A container to look into, and the occasion (`Config.occasion`)."""

    namespace: str
    job: str
    pod: str
    key: str
    container: str
    occasion: str


class Prober:
    """Probes and remembers; calls `wake` with the namespace and name of a job when there is news."""

    def __init__(
        self,
        client: ApiReader,
        *,
        metrics: Metrics,
        now: Callable[[], float],
        wake: Callable[[str, str], None],
    ) -> None:
        self._client = client
        self._metrics = metrics
        self._now = now
        self._wake = wake
        self._slots = asyncio.Semaphore(MOST_AT_ONCE)
        self._leaving = Rate(LEAVING_A_SECOND)
        self._published = Rate(PUBLISHED_A_SECOND, together=PUBLISHED_TOGETHER)
        self._seen: dict[str, tuple[str, Probe]] = {}
        self._pods: dict[tuple[str, str], set[str]] = {}
        self._asking = Tasks()
        self._watching: set[str] = set()

    def seen(self, pod: str, occasion: str) -> Probe:
        """Return the result of probing a pod (`Ref.key`) on this occasion (`Config.occasion`)."""
        since, probe = self._seen.get(pod, ("", Probe()))
        return probe if since == occasion else Probe()

    def begin(self, view: JobView, action: ProbeWorkers) -> None:
        """Probe workers, each when its turn comes, unless a probe is under way."""
        for worker in action.workers:
            if not action.published:
                self._begin(view, worker, self._leaving)
            elif len(self._watching) < MOST_WAITING and self._begin(view, worker, self._published):
                self._watching.add(worker.ref.key)

    def tidy(self, view: JobView) -> None:
        """Forget pods of a job that are gone and not in its memory, and results of past occasions."""
        job = view.namespace, view.name
        config = view.config
        occasions = {worker.ref.key: config.occasion(worker.name) for worker in view.workers} if config else {}
        left = {pod_key(pod, left.pod) for pod, left in view.memory.left.items()}
        known = self._pods.get(job, set())
        past = {key for key in known & occasions.keys() if self._seen[key][0] != occasions[key]}
        self._forget(job, (known - occasions.keys() - left) | past)

    def forget(self, namespace: str, name: str) -> None:
        """Forget a job that is gone."""
        self._forget((namespace, name), self._pods.get((namespace, name), set()))

    async def close(self) -> None:
        """Stop every look that is under way."""
        await self._asking.close()

    def _forget(self, job: tuple[str, str], keys: set[str]) -> None:
        for key in keys:
            self._seen.pop(key, None)
        rest = self._pods.pop(job, set()) - keys
        if rest:
            self._pods[job] = rest

    def _begin(self, view: JobView, worker: Worker, rate: Rate) -> bool:
        key = worker.ref.key
        occasion = view.config.occasion(worker.name) if view.config else ""
        if not occasion or key in self._asking:
            return False
        # Keep no view: a look may wait for its turn, and the views of a large job would fill the memory.
        look = _Look(
            namespace=view.namespace,
            job=view.name,
            pod=worker.name,
            key=key,
            container=worker.container,
            occasion=occasion,
        )
        self._asking.begin(key, self._ask(look, rate), ended=lambda: self._watching.discard(key))
        return True

    async def _ask(self, look: _Look, rate: Rate) -> None:
        await rate.turn()
        async with self._slots:
            asked_at = self._now()
            outcome = await self._look(look)
        before = self.seen(look.key, look.occasion)
        after = _with(before, outcome, asked_at=asked_at)
        self._seen[look.key] = look.occasion, after
        self._pods.setdefault((look.namespace, look.job), set()).add(look.key)
        probes = self._metrics.drain_probes if rate is self._leaving else self._metrics.rank_probes
        probes.labels(outcome).inc()
        if rate is self._leaving or _tells(before, after):
            self._wake(look.namespace, look.job)

    async def _look(self, look: _Look) -> str:
        result = await look_into(
            self._client,
            look.namespace,
            look.pod,
            container=look.container,
            command=["/bin/sh", "-c", SCRIPT],
            timeout=PROBE_TIMEOUT,
        )
        answer = result.stdout.strip() if result and result.exit_code == 0 else ""
        return answer if answer in ("idle", "busy") else "error"


def _with(probe: Probe, outcome: str, *, asked_at: float) -> Probe:
    if outcome == "busy":
        return Probe(busy_seen=True, idle_at=None, asked_at=asked_at, busy_at=asked_at)
    if outcome == "idle":
        since = asked_at if probe.idle_since is None else probe.idle_since
        return replace(probe, idle_at=asked_at, asked_at=asked_at, idle_since=since)
    return replace(probe, asked_at=asked_at)


def _tells(before: Probe, after: Probe) -> bool:
    """Tell whether a probe of a published worker is news: it is or was idle, or is busy for the first time."""
    return after.idle_at is not None or after.busy_seen != before.busy_seen or before.idle_at is not None
