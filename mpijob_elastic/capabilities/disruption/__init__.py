"""Disruption: pods that are about to go, with their nodes or because somebody evicts them."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet

from mpijob_elastic.capabilities.disruption import eviction
from mpijob_elastic.capabilities.disruption import widespread as in_turn
from mpijob_elastic.capabilities.disruption.eviction import EVICTION_MARK
from mpijob_elastic.decide.actions import Note, warning
from mpijob_elastic.decide.capability import Capability
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.decide.wishes import Leave, LeaveKind, Release, Wish
from mpijob_elastic.model import history
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.pod import PodFacts, Worker


class Disruption(Capability):
    """A job with pods that are about to go."""

    name = "disruption"

    @classmethod
    def told(cls, view: JobView) -> Capability | None:
        """Return the capability if a pod is about to go."""
        return cls() if any(_concerns(pod.facts) for pod in view.pods) else None

    def wishes(self, view: JobView, *, now: float) -> Iterable[Wish]:
        """Yield a Leave for each worker that has to move, and when to look again for others.

        A worker that somebody tries to evict is not ours to delete: the evictor tries again by the
        pod's name, and if the pod were replaced meanwhile, its successor would be evicted. Once the
        worker has drained, it is released to the next try. A mark that nobody follows up ends by
        its time, and the worker is listed again.
        """
        yield from self._from_signs(view, now=now)
        for worker in view.workers:
            mark = worker.facts.marks.get(EVICTION_MARK)
            asked = eviction.parse(mark) if mark else None
            if asked and asked.is_live(drain_timeout=view.policy.drain_timeout, now=now):
                text = eviction.text(asked._replace(released=True, at=now))
                release = Release(annotation=EVICTION_MARK, mark=text, done=asked.released)
                until = asked.ends_at(drain_timeout=view.policy.drain_timeout)
                yield self._move(worker, "an eviction", until=until, release=release)

    def _from_signs(self, view: JobView, *, now: float) -> list[Wish]:
        """Return a Leave for each worker that a sign moves, and when to look again for others.

        Under a widespread sign those leave whose turn it is.
        """
        whys = _whys(view, now=now)
        held = _held(view, whys)
        times = [pod.facts.disruption_from for pod in view.pods if pod.facts.disruption_from > now]
        stay: AbstractSet[str] = frozenset()
        if held:
            turn = in_turn.turn(view, held, now=now)
            stay = {worker.name for worker in held} - turn.may_leave
            times += [] if turn.until is None else [turn.until]
        going = whys.keys() - stay
        moved = [worker for worker in view.workers if worker.name in going]
        found: list[Wish] = [self._move(worker, whys[worker.name]) for worker in moved]
        return [*found, *(Wish(by=self.name, until=at) for at in times)]

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
            cause=history.NODE,
            until=until,
            release=release,
        )

    def notes(self, state: JobState) -> Iterator[Note]:
        """Yield notices on widespread signs, and on a launcher that is about to go.

        Training stops with its launcher, and starts again.
        """
        view, launcher = state.view, state.view.launcher
        if view.elastic:
            yield from _on_widespread(state)
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


def _concerns(facts: PodFacts) -> bool:
    """Tell whether the pod is about to go, now or later."""
    return bool(facts.disruption or facts.unhealthy or EVICTION_MARK in facts.marks)


def _whys(view: JobView, *, now: float) -> Mapping[str, str]:
    """Return why workers are to leave now, apart from evictions, by the name of their pod."""
    whys = {}
    for worker in view.workers:
        facts = worker.facts
        if facts.disruption and facts.disruption_from <= now:
            whys[worker.name] = facts.disruption
        elif facts.unhealthy:
            whys[worker.name] = _of_device(facts)
    return whys


def _of_device(facts: PodFacts) -> str:
    return f"{facts.unhealthy} reported Unhealthy"


def _patient(facts: PodFacts) -> str:
    """Return why a worker is to leave, now or later, if it may leave after others; else ""."""
    if facts.disruption:
        return facts.disruption if facts.can_wait else ""
    return _of_device(facts) if facts.unhealthy else ""


def _held(view: JobView, whys: Collection[str]) -> list[Worker]:
    """Return the workers that are to leave, but leave when their turn comes.

    whys: the names of the workers that are to leave now.
    """
    found = [one for one in view.workers if one.facts.can_wait or one.facts.unhealthy]
    if len(found) < in_turn.SEVERAL:
        return []
    widespread = in_turn.signs((worker.facts, _patient(worker.facts)) for worker in view.workers)
    held = [worker for worker in found if worker.name in whys]
    return [worker for worker in held if in_turn.sign(_patient(worker.facts)) in widespread]


def _on_widespread(state: JobState) -> Iterator[Note]:
    """Yield a notice on each sign that makes workers leave one at a time."""
    held = _held(state.view, _whys(state.view, now=state.now))
    for sign in sorted({in_turn.sign(_patient(worker.facts)) for worker in held}):
        yield warning(
            "DisruptionWidespread",
            f"{sign} stands on more than a third of the nodes of {state.view.name}, so its workers "
            "leave one at a time, each once the one before trains again. If the sign is wrong, "
            "remove it from the nodes, or let the controller ignore it (--ignore-disruption-sign)",
        )
