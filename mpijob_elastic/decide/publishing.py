"""The ConfigMap as it should be: the next host list, the hostfile beside it, and what must be remembered of the change.

Everything is in one write, so a crash leaves either the old truth or the new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mpijob_elastic import names
from mpijob_elastic.decide import clock, history, hosts, launchers, replacing
from mpijob_elastic.decide.actions import Note, WriteConfig
from mpijob_elastic.model import durations
from mpijob_elastic.model.job import Config, JobView
from mpijob_elastic.model.memory import Left, Memory, Scale


def write(view: JobView, config: Config, *, now: float) -> tuple[WriteConfig | None, float | None]:
    """The write that is due, or None; and when to look again."""
    step = hosts.following(view, now=now)
    if view.driver_running and config.published is None and not step.hosts:
        return None, step.wake_at  # a list that the driver cannot read is better than an empty one
    slots = _slots(view, config)
    script = names.discover_hosts(list(step.hosts), slots=slots)
    hostfile = _hostfile(view, config, step.hosts, slots)
    added = tuple(host for host in step.hosts if host not in view.hosts)
    removed = tuple(host for host in view.hosts if host not in step.hosts)
    memory = _memory(view, config, added=added, removed=removed, hostfile=hostfile, published=step.hosts, now=now)
    memory = history.signed(memory, script=script)
    if script == config.script and hostfile == config.hostfile and not _must_remember(view, config, memory):
        return None, step.wake_at
    change = WriteConfig(
        ref=config.ref,
        script=script,
        hostfile=hostfile,
        memory=memory,
        added=added,
        removed=removed,
        notes=tuple(_notes(view, added, removed)),
    )
    return change, step.wake_at


def _slots(view: JobView, config: Config) -> int:
    # The driver mis-assigns local ranks when a listed host's slots change (horovod#1849): they hold while it runs.
    if view.driver_running and config.published and config.published.hosts:
        return config.published.slots
    return view.slots


def _hostfile(view: JobView, config: Config, published: tuple[str, ...], slots: int) -> str:
    if not view.elastic:
        return config.hostfile  # mpirun was told its -np; a list that shrinks or grows under it can only harm
    if view.driver_running:
        # A launcher that is created anew waits for each of these, so they are workers that run.
        return names.hostfile(list(published), slots=slots) if published else config.hostfile
    return names.hostfile(list(view.wanted_names()), slots=slots)


def _must_remember(view: JobView, config: Config, memory: Memory) -> bool:
    """Whether something must be written down although the host list stays."""
    if not view.elastic:
        return False
    if config.memory is None or not history.is_known(config):
        # A list without a history: what is missing from it may have been in it a moment ago.
        return view.driver_running or bool(view.hosts) or bool(view.surplus())
    return _has_news(config.memory, memory)


def _has_news(old: Memory, new: Memory) -> bool:
    """Whether more than forgetting would be written; forgetting waits for the next write."""
    tried = any(old.replaced.get(pod) != tries for pod, tries in new.replaced.items())
    before, after = _times(old), _times(new)
    clock_went_back = any(before.get(what, 0.0) > at + clock.SKEW for what, at in after.items())
    return tried or new.launchers != old.launchers or clock_went_back


def _times(memory: Memory) -> dict[str, float]:
    left = {pod: left.at for pod, left in memory.left.items()}
    return {"added": memory.added_at, "removed": memory.removed_at, "dropped": memory.dropped_at, **left}


def _memory(
    view: JobView,
    config: Config,
    *,
    added: tuple[str, ...],
    removed: tuple[str, ...],
    hostfile: str,
    published: tuple[str, ...],
    now: float,
) -> Memory:
    old = config.memory or Memory()
    dropped = not view.driver_running and bool(set(config.hostfile.splitlines()) - set(hostfile.splitlines()))
    return Memory(
        left=_left(view, config, published, now=now),
        added_at=now if added else min(old.added_at, now),
        removed_at=now if removed else min(old.removed_at, now),
        dropped_at=now if dropped else min(old.dropped_at, now),
        scale=_scale(view, old, changed=bool(added or removed), now=now),
        replaced=replacing.tries(view, now=now),
        launchers=launchers.tries(view, now=now),
    )


def _left(view: JobView, config: Config, published: tuple[str, ...], *, now: float) -> Mapping[str, Left]:
    known = history.is_known(config)
    gone = [worker for worker in view.workers if worker.name not in published]
    now_gone = {
        worker.name: Left(uid=worker.ref.uid, at=now) for worker in gone if worker.name in view.hosts or not known
    }
    before = {worker.name: history.left(view, worker) for worker in gone}
    return {pod: _believed(left, now=now) for pod, left in before.items() if left} | now_gone


def _believed(left: Left, *, now: float) -> Left:
    return left if left.at == clock.honest(left.at, now=now) else Left(uid=left.uid, at=now)


def _scale(view: JobView, old: Memory, *, changed: bool, now: float) -> Scale | None:
    before = old.scale.after if old.scale else 0
    if not changed or before == view.replicas:
        return old.scale
    return Scale(before=before, after=view.replicas, at=now)


def _notes(view: JobView, added: tuple[str, ...], removed: tuple[str, ...]) -> Iterable[Note]:
    if added:
        yield Note(
            reason="HostsPublished",
            message=f"discover_hosts.sh names {_list(added)} now; {_sizes(view, added, removed)}",
        )
    surplus = [host for host in removed if (names.worker_index(host, job=view.name) or 0) >= view.replicas]
    if surplus:
        limit = durations.render(view.policy.drain_timeout)
        yield Note(
            reason="Draining",
            message=f"{_list(surplus)} left discover_hosts.sh and {'drain' if len(surplus) > 1 else 'drains'} "
            f"for at most {limit}; {_sizes(view, added, removed)}",
        )
    lost = [host for host in removed if host not in surplus]
    if lost:
        yield Note(
            reason="HostsLost",
            message=f"{_list(lost)} left discover_hosts.sh, not Ready any more",
            warning=True,
        )


def _sizes(view: JobView, added: tuple[str, ...], removed: tuple[str, ...]) -> str:
    before = len(view.hosts)
    return f"{before} → {before + len(added) - len(removed)} hosts of {view.replicas} workers asked for"


def _list(pods: Iterable[str]) -> str:
    pods = list(pods)
    shown = ", ".join(pods[:8])
    return shown if len(pods) <= 8 else f"{shown} and {len(pods) - 8} more"
