"""The ConfigMap as it should be: the next host list, the hostfile beside it, and what must be remembered of the change.

Everything is in one write, so a crash leaves either the old truth or the new one.
"""

from __future__ import annotations

from collections.abc import Iterable

from mpijob_elastic import names
from mpijob_elastic.decide import (
    disruption,
    host_list,
    host_names,
    lost_ranks,
    next_memory,
    phrases,
    renaming,
    startup_hostfile,
)
from mpijob_elastic.decide.actions import Note, WriteConfig
from mpijob_elastic.decide.next_memory import Change
from mpijob_elastic.model import durations, kubexec
from mpijob_elastic.model.job import Config, JobView


def write(view: JobView, config: Config, *, now: float) -> tuple[WriteConfig | None, float | None]:
    """The write that is due, or None; and when to look again."""
    step = host_list.following(view, now=now)
    if view.driver_running and config.published is None and not step.hosts:
        return None, step.wake_at  # a list that the driver cannot read is better than an empty one
    change = _change(view, config, step.hosts, now=now)
    memory = next_memory.memory(view, config, change, now=now)
    same = (change.script, change.hostfile, change.kubexec) == (config.script, config.hostfile, None)
    if same and not next_memory.is_due(view, config, memory):
        return None, step.wake_at
    action = WriteConfig(
        ref=config.ref,
        script=change.script,
        hostfile=change.hostfile,
        memory=memory,
        kubexec=change.kubexec,
        added=change.added,
        removed=change.removed,
        notes=tuple(_notes(view, change, now=now)),
    )
    return action, step.wake_at


def _change(view: JobView, config: Config, published: tuple[str, ...], *, now: float) -> Change:
    slots = _slots(view, config)
    host_names = [_host(view, pod, now=now) for pod in published]
    staying = set(published)
    return Change(
        script=names.discover_hosts(host_names, slots=slots),
        kubexec=_kubexec(view, config, host_names),
        hostfile=_hostfile(view, config, published, slots),
        added=tuple(pod for pod in published if pod not in view.host_of),
        removed=tuple(pod for pod in view.published_pods if pod not in staying),
    )


def _host(view: JobView, pod: str, *, now: float) -> str:
    listed, worker = view.host_of.get(pod), view.worker(pod)
    return listed or (host_names.host(view, worker, now=now) if worker else pod)


def _kubexec(view: JobView, config: Config, host_names: list[str]) -> str | None:
    """The script where it must change for these names; it stays as it is once it finds every pod."""
    if not view.elastic or all(names.incarnation_of(host) == 0 for host in host_names):
        return None
    after = kubexec.mapped(config.kubexec)
    return None if after == config.kubexec else after


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
    return names.hostfile(list(startup_hostfile.awaited(view, config)), slots=slots)


def _notes(view: JobView, change: Change, *, now: float) -> Iterable[Note]:
    if change.added:
        added = phrases.listed(_host(view, pod, now=now) for pod in change.added)
        yield Note(reason="HostsPublished", message=f"discover_hosts.sh names {added} now; {_sizes(view, change)}")
    surplus = [host for host in change.removed if (names.worker_index(host, job=view.name) or 0) >= view.replicas]
    if surplus:
        limit = durations.render(view.policy.drain_timeout)
        yield Note(
            reason="Draining",
            message=f"{phrases.listed(surplus)} left discover_hosts.sh and {'drain' if len(surplus) > 1 else 'drains'} "
            f"for at most {limit}; {_sizes(view, change)}",
        )
    left = [one for one in view.workers if one.name in change.removed and one.name not in surplus and one.disruption]
    if left:
        message = f"{disruption.each(left)} left discover_hosts.sh; {_sizes(view, change)}"
        yield Note(reason="Disruption", message=message, warning=True)
    told = {*surplus, *(one.name for one in left), *lost_ranks.lost(view, now=now)}
    lost = [host for host in change.removed if host not in told]
    if lost:
        yield Note(
            reason="HostsLost",
            message=f"{phrases.listed(lost)} left discover_hosts.sh, not Ready any more",
            warning=True,
        )
    yield from renaming.notes(view, added=change.added, removed=change.removed, now=now)


def _sizes(view: JobView, change: Change) -> str:
    before = len(view.published_pods)
    return f"{before} → {before + len(change.added) - len(change.removed)} hosts of {view.replicas} workers asked for"
