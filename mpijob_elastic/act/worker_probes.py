"""Probe workers by exec for processes beside the main process.

Leaving workers are probed often, published workers seldom.

Probes are looks (act/looks), bounded in time, number and rate; an answer with news wakes the job. A
failed probe is only counted: the next probe comes later (decide/drain), the drain-timeout decides,
and nothing follows for a published worker. A restart costs another probe, and perhaps a number in a
host name (decide/host_list).
"""

import logging
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from mpijob_elastic.act.looks import FairTurns, Job, Looks, look_into
from mpijob_elastic.act.worker_scripts import END, LONGEST_ANSWER, SCRIPT, TELL
from mpijob_elastic.decide.actions import ProbeWorkers
from mpijob_elastic.kube import envelopes, errors, resources
from mpijob_elastic.kube.meta import Identity
from mpijob_elastic.kube.reader import Timeouts
from mpijob_elastic.model import progress
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.memory import pod_fingerprint, pod_key
from mpijob_elastic.model.pod import PodFacts, Probe
from mpijob_elastic.model.progress import ProgressLine
from mpijob_elastic.telemetry.metrics import Metrics

log = logging.getLogger(__name__)

# Seconds for a look.
PROBE_TIMEOUT = 3.0
_CHECK = Timeouts(attempt=PROBE_TIMEOUT, throttled=0)
# Looks over all jobs, under way at once and begun in a second: into leaving workers, for whose GPUs
# somebody waits, and into published workers. A single job may have a third of these looks under
# way, which is enough for all looks of a second. Roll calls of launchers share the latter turns.
LEAVING_AT_ONCE, LEAVING_A_SECOND = 48, 50.0
PUBLISHED_AT_ONCE, PUBLISHED_A_SECOND = 24, 10.0
# Looks into published workers that begin together. Each look needs a connection with a TLS
# handshake, and a look that begins alone costs twice the CPU, because caches have gone cold (4.3
# ms; 2.1 ms each if ten begin together).
PUBLISHED_TOGETHER = 10
# Published workers that may be probed or wait for their turn. A single job may have a third of
# them: as many as can be probed until the job is decided on again (decide/lost_ranks). Probes of
# more workers are dropped.
MOST_WATCHED = 300


def published_turns() -> FairTurns:
    """Return new turns for the looks that a job at rest needs."""
    return FairTurns(
        at_once=PUBLISHED_AT_ONCE,
        a_second=PUBLISHED_A_SECOND,
        together=PUBLISHED_TOGETHER,
        most=MOST_WATCHED,
    )


_ANSWERS = {SCRIPT: ("idle", "busy"), TELL: ("told",), END: ("told",)}


@dataclass(frozen=True, kw_only=True)
class _Look:
    """A look into a worker."""

    job: Job
    #: The worker to look into.
    pod: Identity
    #: The containers that may hold its ranks.
    containers: tuple[str, ...]
    #: `Config.occasion`, or the end of the ranks in a container.
    occasion: str
    #: SCRIPT, TELL or END.
    script: str
    #: `Worker.runs_commands`.
    in_doubt: bool = False
    #: True for a published worker, False for a leaving worker.
    published: bool = False

    @cached_property
    def key(self) -> str:
        """The pod's `Worker.key`."""
        return pod_key(self.pod.name, pod_fingerprint(self.pod.uid))


@dataclass(eq=False, kw_only=True)
class Prober(Looks[dict[str, tuple[str, Probe]]]):
    """Probes workers; remembers by job and pod the occasion of the last probe, and its result.

    An answer for any other occasion comes too late.
    """

    metrics: Metrics
    #: The turns of looks into published workers.
    published: FairTurns = field(default_factory=published_turns)

    def __post_init__(self) -> None:
        """Make the turns of its looks."""
        self._leaving = FairTurns(at_once=LEAVING_AT_ONCE, a_second=LEAVING_A_SECOND)

    def seen(self, job: Job, pod: str, occasion: str) -> Probe:
        """Return the result of probing a pod (`Worker.key`) on an occasion (`Config.occasion`)."""
        since, probe = self.jobs.get(job, {}).get(pod, ("", Probe()))
        return probe if since == occasion else Probe()

    def begin(self, view: JobView, action: ProbeWorkers) -> None:
        """Probe workers, each when its turn comes, unless a probe is under way."""
        for worker in action.workers:
            # Keep no view: a look may wait for its turn, and the views of a large job would fill
            # the memory.
            look = _Look(
                job=(view.namespace, view.name),
                pod=worker.ref,
                containers=worker.containers,
                occasion=view.config.occasion(worker.name) if view.config else "",
                script=TELL if action.drained else SCRIPT,
                in_doubt=worker.runs_commands,
                published=action.published,
            )
            if look.occasion:
                before = self.seen(look.job, look.key, look.occasion)
                self.jobs.setdefault(look.job, {})[look.key] = look.occasion, before
                self._look(look)

    def end(self, job: Job, pod: PodFacts) -> None:
        """End the ranks of a worker, unless an attempt is under way.

        The script finds the container with the ranks by its main process.
        """
        for container in pod.containers:
            occasion = f"end of {container}"
            self._look(
                _Look(
                    job=job,
                    pod=pod.metadata,
                    containers=(container,),
                    occasion=occasion,
                    script=END,
                )
            )

    def tidy(self, view: JobView) -> None:
        """Forget pods that are gone and not in the job's memory, and results of past occasions."""
        config = view.config
        occasions = (
            {worker.key: config.occasion(worker.name) for worker in view.workers} if config else {}
        )
        left = {pod_key(pod, left.pod) for pod, left in view.memory.left.items()}
        known = self.jobs.pop((view.namespace, view.name), {})
        kept = {
            key: (occasion, probe)
            for key, (occasion, probe) in known.items()
            if occasions.get(key, occasion if key in left else "") == occasion
        }
        if kept:
            self.jobs[view.namespace, view.name] = kept

    def _look(self, look: _Look) -> None:
        turns = self.published if look.published else self._leaving
        # A leaving worker does not wait for its look as a published worker: the occasions differ.
        self._begin(f"{look.key} {look.occasion}", look.job, turns, partial(self._ask, look))

    async def _ask(self, look: _Look) -> bool:
        if look.script != END and self._occasion(look) != look.occasion:
            return False  # the worker has left or is gone, while the look waited for its turn
        asked_at = self.now()
        outcome, line = await self._answer(look, asked_at)
        self.metrics.probes.labels("published" if look.published else "draining", outcome).inc()
        pods = self.jobs.get(look.job, {})
        occasion, before = pods.get(look.key, ("", Probe()))
        if occasion != look.occasion:
            return False
        after = replace(_with(before, outcome, asked_at=asked_at), in_doubt=look.in_doubt)
        if line:
            after = replace(after, progress=line)
        pods[look.key] = occasion, after
        return not look.published or _tells(before, after)

    def _occasion(self, look: _Look) -> str:
        occasion, _ = self.jobs.get(look.job, {}).get(look.key, ("", Probe()))
        return occasion

    async def _answer(self, look: _Look, asked_at: float) -> tuple[str, ProgressLine | None]:
        """Return the answer in a word, and the newest line of progress."""
        # An observation can be dropped afterwards, but the effect of TELL or END on a successor of
        # the pod cannot be undone.
        if look.script in (TELL, END) and not await self._is_there(look):
            return "error", None
        answer, lines = "", list[ProgressLine]()
        for container in look.containers:  # idle only if all containers are idle
            result = await look_into(
                self.client,
                look.job[0],
                look.pod.name,
                container=container,
                command=["/bin/sh", "-c", look.script],
                timeout=PROBE_TIMEOUT / len(look.containers),
                limit=LONGEST_ANSWER,
            )
            said = result.stdout if result and result.exit_code == 0 else ""
            answer, _, more = said.strip().partition("\n")
            if found := progress.parse(more, asked_at=asked_at):
                lines.append(found)
            if answer != _ANSWERS[look.script][0]:
                break
        if answer not in _ANSWERS[look.script]:
            return "error", None
        if answer == "idle" and not await self._is_there(look):
            return "error", None
        return answer, progress.newest(lines)

    async def _is_there(self, look: _Look) -> bool:
        """Tell whether exec leads to this pod.

        Exec finds a pod by its name, and our watch may lag behind a successor of that name.
        """
        try:
            found = await self.client.find(
                resources.PODS.path(look.job[0], look.pod.name), limits=_CHECK
            )
        except errors.KubeError as error:
            log.debug("no second look at %s/%s: %s", look.job[0], look.pod.name, error)
            return False
        return found is not None and envelopes.read_stub(found).metadata.uid == look.pod.uid


def _with(probe: Probe, outcome: str, *, asked_at: float) -> Probe:
    if outcome == "busy":
        since = probe.busy_since if probe.idle_at is None else None
        return Probe(
            busy_seen=True,
            asked_at=asked_at,
            busy_at=asked_at,
            busy_since=asked_at if since is None else since,
            progress=probe.progress,
        )
    if outcome == "idle":
        since = asked_at if probe.idle_since is None else probe.idle_since
        return replace(probe, idle_at=asked_at, asked_at=asked_at, idle_since=since, failed=0)
    if outcome == "told":
        return replace(probe, told=True, asked_at=asked_at, failed=0)
    return replace(probe, asked_at=asked_at, failed=probe.failed + 1)


def _tells(before: Probe, after: Probe) -> bool:
    """Tell whether a probe of a published worker is news.

    The worker is or was idle, or is busy for the first time, or a ring has formed again.
    """
    return (
        after.idle_at is not None
        or after.busy_seen != before.busy_seen
        or before.idle_at is not None
        or _is_of_new_ring(before.progress, after.progress)
    )


def _is_of_new_ring(before: ProgressLine | None, after: ProgressLine | None) -> bool:
    if before is None or after is None:
        return False
    return before.since != after.since
