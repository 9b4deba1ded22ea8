"""Probe workers by exec for processes beside the main process: leaving workers often, published workers seldom.

Probes run beside the reconcile loop, bounded in time, number and rate, and fairly shared (act/turns), because a shell
may hang; an answer with news wakes the job. A failed probe is only counted: the next comes later (decide/retries), the
drain-timeout decides, and nothing follows for a published worker. Results are kept in memory alone: a restart costs
another probe, and perhaps a number in a host name (decide/host_names).
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from mpijob_elastic import names
from mpijob_elastic.act.exec_looks import Tasks, look_into
from mpijob_elastic.act.turns import FairTurns, Places
from mpijob_elastic.decide.actions import ProbeWorkers
from mpijob_elastic.kube import errors, resources, wire
from mpijob_elastic.kube.reader import ApiReader, Limits
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.memory import pod_fingerprint, pod_key
from mpijob_elastic.model.pod import PodFacts, Probe
from mpijob_elastic.telemetry.metrics import Metrics

log = logging.getLogger(__name__)

# Seconds for a look.
PROBE_TIMEOUT = 3.0
_CHECK = Limits(attempt=PROBE_TIMEOUT, throttled=0)
# Looks over all jobs, under way at once and begun in a second: into leaving workers, for whose GPUs somebody waits, and
# into published workers. A job alone may have a third of them under way, which is enough for all of a second's looks.
LEAVING_AT_ONCE, LEAVING_A_SECOND = 48, 50.0
PUBLISHED_AT_ONCE, PUBLISHED_A_SECOND = 24, 10.0
# Looks into published workers that begin together. Each needs a connection of its own with a TLS handshake, and a look
# that begins alone costs twice the CPU, because caches have gone cold (4.3 ms; 2.1 ms each if ten begin together).
PUBLISHED_TOGETHER = 10
# Published workers that may be asked or wait for their turn. A job alone may have a third of them: as many as can be
# asked until it decides again (decide/lost_ranks). Any more are dropped.
MOST_WATCHED = 300

# Only builtins of a POSIX shell, so it starts no process that it would count itself. It skips process 1, which is the
# container's main process, the shell itself, and zombies: `sleep` as process 1 never reaps an orphaned rank.
# And the pauses of the main process that our webhook gives (webhook/rules/worker_grace): parent, group and session 1.
# /proc/PID/stat is `PID (NAME) STATE ...`, and NAME may hold anything (proc_pid_stat(5)).
EACH_PROCESS = """\
for process in /proc/[0-9]*; do
  pid=${process#/proc/}
  [ "$pid" = 1 ] && continue
  [ "$pid" = "$$" ] && continue
  read -r stat 2>/dev/null < "$process/stat" || continue
  state=${stat##*) }
  [ "${state%% *}" = Z ] && continue
  case $stat in *" (sleep) "?" 1 1 1 "*) continue ;; esac
"""
SCRIPT = f"""\
{EACH_PROCESS}  echo busy
  exit 0
done
echo idle
"""


def _by_our_main(command: str) -> str:
    """Return a script with a command for containers whose process 1 is the one that our webhook gives."""
    return f"""\
read -r main < /proc/1/cmdline
case $main in *"{names.MAIN_BEGINS}") {command} ;; esac
echo told
"""


# The last words of that main process in a worker that has drained: it ends then. Any other keeps its own.
TELL = _by_our_main(f'echo "{names.RANKS_LEFT}" > /dev/termination-log || exit')
# Ends the ranks of a worker whose job is gone, so that the main process ends too. In a container that shares processes
# with others, or with its node, ours is not process 1, and nothing is killed.
END = _by_our_main("kill -KILL -1")
_ANSWERS = {SCRIPT: ("idle", "busy"), TELL: ("told",), END: ("told",)}


@dataclass(frozen=True, kw_only=True)
class _Look:
    """A worker to look into, the containers that may hold its ranks, and the occasion (`Config.occasion`)."""

    namespace: str
    job: str
    pod: str
    key: str
    uid: str
    containers: tuple[str, ...]
    occasion: str
    published: bool
    script: str

    @property
    def name(self) -> str:
        """Return what a single look may be under way for: a worker that leaves does not wait as a published worker."""
        return f"{self.key} {self.occasion}"


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
        self._leaving = FairTurns(at_once=LEAVING_AT_ONCE, a_second=LEAVING_A_SECOND)
        self._published = FairTurns(at_once=PUBLISHED_AT_ONCE, a_second=PUBLISHED_A_SECOND, together=PUBLISHED_TOGETHER)
        self._watched = Places(MOST_WATCHED)
        self._seen: dict[str, tuple[str, Probe]] = {}
        # The last occasion of each pod that was asked, by job. Any other answer comes too late.
        self._asked: dict[tuple[str, str], dict[str, str]] = {}
        self._asking = Tasks()
        # Looks that have an answer for their job, until they have ended.
        self._news: set[str] = set()

    def seen(self, pod: str, occasion: str) -> Probe:
        """Return the result of probing a pod (`Worker.key`) on this occasion (`Config.occasion`)."""
        since, probe = self._seen.get(pod, ("", Probe()))
        return probe if since == occasion else Probe()

    def begin(self, view: JobView, action: ProbeWorkers) -> None:
        """Probe workers, each when its turn comes, unless a probe is under way."""
        for worker in action.workers:
            # Keep no view: a look may wait for its turn, and the views of a large job would fill the memory.
            look = _Look(
                namespace=view.namespace,
                job=view.name,
                pod=worker.name,
                key=worker.key,
                uid=worker.ref.uid,
                containers=worker.containers,
                occasion=view.config.occasion(worker.name) if view.config else "",
                published=action.published,
                script=TELL if action.drained else SCRIPT,
            )
            if look.occasion and look.name not in self._asking and self._take(look):
                self._asked.setdefault((look.namespace, look.job), {})[look.key] = look.occasion
                self._begin(look)

    def end(self, namespace: str, job: str, pod: PodFacts) -> None:
        """End the ranks of a worker, unless that is under way. The main process tells which container has them."""
        for container in pod.containers:
            look = _Look(
                namespace=namespace,
                job=job,
                pod=pod.metadata.name,
                key=pod_key(pod.metadata.name, pod_fingerprint(pod.metadata.uid)),
                uid=pod.metadata.uid,
                containers=(container,),
                occasion=f"end of {container}",
                published=False,
                script=END,
            )
            if look.name not in self._asking:
                self._begin(look)

    def tidy(self, view: JobView) -> None:
        """Forget pods of a job that are gone and not in its memory, and results of past occasions."""
        job = view.namespace, view.name
        config = view.config
        occasions = {worker.key: config.occasion(worker.name) for worker in view.workers} if config else {}
        left = {pod_key(pod, left.pod) for pod, left in view.memory.left.items()}
        for key, occasion in list(self._asked.get(job, {}).items()):
            if occasions.get(key, occasion) != occasion or not (key in occasions or key in left):
                self._seen.pop(key, None)
                del self._asked[job][key]
        if not self._asked.get(job):
            self._asked.pop(job, None)

    def forget(self, namespace: str, name: str) -> None:
        """Forget a job that is gone."""
        for key in self._asked.pop((namespace, name), ()):
            self._seen.pop(key, None)

    async def close(self) -> None:
        """Stop every look that is under way."""
        await self._asking.close()

    def _begin(self, look: _Look) -> None:
        self._asking.begin(look.name, self._ask(look), ended=partial(self._end, look))

    def _take(self, look: _Look) -> bool:
        if not look.published:
            return True
        is_free = self._watched.free_for(look.namespace, look.job)
        if is_free:
            self._watched.take(look.namespace, look.job)
        return is_free

    def _end(self, look: _Look) -> None:
        if look.published:
            self._watched.take(look.namespace, look.job, count=-1)
        # Not before: the next look may be due already, and would be dropped while this look is under way.
        if look.name in self._news:
            self._news.remove(look.name)
            self._wake(look.namespace, look.job)

    async def _ask(self, look: _Look) -> None:
        async with (self._published if look.published else self._leaving).turn(look.namespace, look.job):
            asked_at = self._now()
            outcome = await self._look(look)
        self._metrics.probes.labels("published" if look.published else "draining", outcome).inc()
        if self._asked.get((look.namespace, look.job), {}).get(look.key) != look.occasion:
            return
        before = self.seen(look.key, look.occasion)
        after = _with(before, outcome, asked_at=asked_at)
        self._seen[look.key] = look.occasion, after
        if not look.published or _tells(before, after):
            self._news.add(look.name)

    async def _look(self, look: _Look) -> str:
        # What was seen can be dropped afterwards; what was said to a successor stays said.
        if look.script in (TELL, END) and not await self._is_there(look):
            return "error"
        answer = ""
        for container in look.containers:  # idle only if all of them are
            result = await look_into(
                self._client,
                look.namespace,
                look.pod,
                container=container,
                command=["/bin/sh", "-c", look.script],
                timeout=PROBE_TIMEOUT / len(look.containers),
            )
            answer = result.stdout.strip() if result and result.exit_code == 0 else ""
            if answer != _ANSWERS[look.script][0]:
                break
        if answer not in _ANSWERS[look.script]:
            return "error"
        return answer if answer != "idle" or await self._is_there(look) else "error"

    async def _is_there(self, look: _Look) -> bool:
        """Tell whether exec leads to this pod: it goes by the name, and our watch may lag behind a successor."""
        try:
            found = await self._client.find(resources.PODS.path(look.namespace, look.pod), limits=_CHECK)
        except errors.KubeError as error:
            log.debug("no second look at %s/%s: %s", look.namespace, look.pod, error)
            return False
        return found is not None and wire.read_stub(found).metadata.uid == look.uid


def _with(probe: Probe, outcome: str, *, asked_at: float) -> Probe:
    if outcome == "busy":
        return Probe(busy_seen=True, idle_at=None, asked_at=asked_at, busy_at=asked_at)
    if outcome == "idle":
        since = asked_at if probe.idle_since is None else probe.idle_since
        return replace(probe, idle_at=asked_at, asked_at=asked_at, idle_since=since, failed=0)
    if outcome == "told":
        return replace(probe, told=True, asked_at=asked_at, failed=0)
    return replace(probe, asked_at=asked_at, failed=probe.failed + 1)


def _tells(before: Probe, after: Probe) -> bool:
    """Tell whether a probe of a published worker is news: it is or was idle, or is busy for the first time."""
    return after.idle_at is not None or after.busy_seen != before.busy_seen or before.idle_at is not None
