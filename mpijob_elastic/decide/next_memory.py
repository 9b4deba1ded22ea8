"""What is written down together with the host list (model.memory): who left when, what was tried how often.

It is written with a change of the list; on its own only where forgetting it could do harm.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mpijob_elastic import names
from mpijob_elastic.decide import (
    clock,
    disruption,
    failed_workers,
    handover,
    history,
    host_names,
    launcher_recreate,
    launcher_refresh,
    lost_ranks,
    rank0_loss,
    scale_timeout,
)
from mpijob_elastic.model.job import Config, JobView
from mpijob_elastic.model.memory import Left, Memory, Scale

# How long (seconds) the leaving of a pod is remembered that is gone: much longer than a launcher needs to be shown it.
FORGOTTEN_AFTER = 600.0


@dataclass(frozen=True, kw_only=True)
class Change:
    """The files as they are to be, kubexec None where it stays; and which pods come and go as hosts."""

    script: str
    hostfile: str
    kubexec: str | None
    added: tuple[str, ...]
    removed: tuple[str, ...]


def memory(view: JobView, config: Config, change: Change, *, now: float) -> Memory:
    """What is to be remembered once that change is written."""
    old = config.memory or Memory()
    lost = set(config.hostfile.splitlines()) - set(change.hostfile.splitlines())
    published = {*view.published_pods, *change.added} - {*change.removed}
    new = Memory(
        left=_left(view, config, change, now=now),
        added_at=now if change.added else min(old.added_at, now),
        removed_at=now if change.removed else min(old.removed_at, now),
        dropped_at=now if lost and not view.driver_running else min(old.dropped_at, now),
        scale=_scale(view, old, change, now=now),
        replaced=failed_workers.tries(view, now=now),
        moved=disruption.tries(view, published, now=now),
        growth=scale_timeout.growth(view, old, published, now=now),
        hosts=host_names.remembered(view, published, lost=lost_ranks.lost(view, now=now) - published, now=now),
        renamed=lost_ranks.tries(view, change.removed, now=now),
        launchers=launcher_recreate.tries(view, now=now),
        elders=rank0_loss.elders(view, added=change.added, removed=change.removed),
        mended_at=handover.mended_at(config, now=now),
    )
    return history.signed(new, script=change.script)


def is_due(view: JobView, config: Config, new: Memory) -> bool:
    """Whether it must be written although the list stays."""
    if not view.elastic:
        return False
    if config.memory is None or not history.is_known(config):
        # A list without a history: what is missing from it may have been in it a moment ago.
        return view.driver_running or bool(view.published_pods) or bool(view.surplus)
    return _has_news(config.memory, new)


def _has_news(old: Memory, new: Memory) -> bool:
    """Whether more than forgetting would be written; forgetting waits for the next write."""
    counts = ((old.replaced, new.replaced), (old.moved, new.moved), (old.renamed, new.renamed))
    tried = any(before.get(pod) != tries for before, after in counts for pod, tries in after.items())
    before, after = _times(old), _times(new)
    clock_went_back = any(before.get(what, 0.0) > at + clock.SKEW for what, at in after.items())
    grown = new.growth is not None and new.growth != old.growth
    named = any(old.hosts.get(pod) != one for pod, one in new.hosts.items() if one.pod)
    return tried or grown or named or new.launchers != old.launchers or clock_went_back


def _times(memory: Memory) -> dict[str, float]:
    left = {pod: left.at for pod, left in memory.left.items()}
    return {"added": memory.added_at, "removed": memory.removed_at, "dropped": memory.dropped_at, **left}


def _left(view: JobView, config: Config, change: Change, *, now: float) -> Mapping[str, Left]:
    published = {*view.published_pods, *change.added} - {*change.removed}
    gone = {host for host in (change.removed if history.is_known(config) else _all(view)) if _is_worker(view, host)}
    kept = {pod: left for pod, left in view.memory.left.items() if _matters(view, pod, left, now=now)}
    return {
        **{pod: _believed(view, left, now=now) for pod, left in kept.items() if pod not in published},
        **{pod: Left(pod=_fingerprint(view, pod), at=now) for pod in gone if pod not in published},
    }


def _all(view: JobView) -> Iterable[str]:
    """Whoever may have been in a list that is lost."""
    return (
        *view.published_pods,
        *(worker.name for worker in view.workers),
        *(view.role.exec_names if view.role else ()),
    )


def _is_worker(view: JobView, pod: str) -> bool:
    return names.worker_index(pod, job=view.name) is not None


def _matters(view: JobView, pod: str, left: Left, *, now: float) -> bool:
    worker = view.worker(pod)
    if worker is None:
        return left.at > now - FORGOTTEN_AFTER
    return history.left(view, worker, now=now) is not None


def _believed(view: JobView, left: Left, *, now: float) -> Left:
    if left.at != clock.honest(left.at, now=now):
        return Left(pod=left.pod, at=now)
    known_at = launcher_refresh.known_since(view, left, now=now) if launcher_refresh.can_show(view) else left.known_at
    return Left(pod=left.pod, at=left.at, known_at=known_at or 0.0)


def _fingerprint(view: JobView, pod: str) -> str:
    worker = view.worker(pod)
    return worker.ref.fingerprint if worker else ""


def _scale(view: JobView, old: Memory, change: Change, *, now: float) -> Scale | None:
    before = old.scale.after if old.scale else 0
    if not (change.added or change.removed) or before == view.replicas:
        return old.scale
    return Scale(before=before, after=view.replicas, at=now)
