"""Disruption: pods that are about to go, with their nodes or because somebody evicts them."""

from collections.abc import Iterable, Iterator

from mpijob_elastic.capabilities.disruption import eviction
from mpijob_elastic.capabilities.disruption.eviction import EVICTION_MARK
from mpijob_elastic.decide.actions import Note, warning
from mpijob_elastic.decide.capability import Capability
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.decide.wishes import Leave, LeaveKind, Release, Wish
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.pod import Worker

# The cause in the history for which a worker trains elsewhere.
_CAUSE = "node"


class Disruption(Capability):
    """A job with pods that are about to go."""

    name = "disruption"

    @classmethod
    def told(cls, view: JobView) -> Capability | None:
        """Return the capability if a pod is about to go."""
        return (
            cls()
            if any(pod.facts.disruption or EVICTION_MARK in pod.facts.marks for pod in view.pods)
            else None
        )

    def wishes(self, view: JobView, *, now: float) -> Iterable[Wish]:
        """Yield a Leave for each worker that has to move, and when to look again for others.

        A worker that somebody tries to evict is not ours to delete: the evictor tries again by the
        pod's name, and if the pod were replaced meanwhile, its successor would be evicted. Once the
        worker has drained, it is released to the next try. A mark that nobody follows up ends by
        its time, and the worker is listed again.
        """
        yield from self._later(view, now=now)
        for worker in view.workers:
            why = worker.facts.going(now=now)
            if why:
                yield self._move(worker, why)
            mark = worker.facts.marks.get(EVICTION_MARK)
            asked = eviction.parse(mark) if mark else None
            if asked and asked.is_live(drain_timeout=view.policy.drain_timeout, now=now):
                text = eviction.text(asked._replace(released=True, at=now))
                release = Release(annotation=EVICTION_MARK, mark=text, done=asked.released)
                until = asked.ends_at(drain_timeout=view.policy.drain_timeout)
                yield self._move(worker, "an eviction", until=until, release=release)

    def _later(self, view: JobView, *, now: float) -> Iterator[Wish]:
        """Yield when to look again at pods whose sign counts later."""
        for pod in view.pods:
            if pod.facts.disruption_from > now:
                yield Wish(by=self.name, until=pod.facts.disruption_from)

    def _move(
        self,
        worker: Worker,
        why: str,
        *,
        until: float | None = None,
        release: Release | None = None,
    ) -> Leave:
        """Return the wish that a worker trains elsewhere."""
        return Leave(
            by=self.name,
            pod=worker.name,
            kind=LeaveKind.MOVE,
            why=why,
            cause=_CAUSE,
            until=until,
            release=release,
        )

    def notes(self, state: JobState) -> Iterator[Note]:
        """Yield a notice when the launcher is about to go: training will stop and start again."""
        view, launcher = state.view, state.view.launcher
        if launcher is None or launcher.facts.deleting or not view.elastic:
            return
        why = launcher.facts.going(now=state.now)
        if why:
            facts = launcher.facts
            cause = f"{why} on node {facts.node}" if facts.node else why
            yield warning(
                "LauncherDisrupted",
                f"{launcher.ref.name} ({cause}) cannot be moved: training stops with it and "
                "resumes from the last checkpoint in the next launcher. To keep the next launcher "
                "running, give the job's launcher template a nodeSelector or affinity for nodes "
                "that stay, such as on-demand nodes",
                next_step=f"kubectl -n {view.namespace} edit mpijob {view.name}",
            )
