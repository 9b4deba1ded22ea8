"""The memory that is written with the host list (model.memory): departures, host names, retries.

The memory is written with a change of the list, and alone only if its loss could do harm. It names
the script that it was written with. If script and memory do not belong together, another program
wrote one of them, and any worker that is not in the list may have been in it a moment ago.
"""

from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet

import msgspec

from mpijob_elastic import names
from mpijob_elastic.decide import (
    capability,
    handover,
    host_list,
    launcher_start,
    ledger,
    lost_ranks,
    reminders,
)
from mpijob_elastic.decide.actions import WriteConfig
from mpijob_elastic.decide.capability import Record
from mpijob_elastic.decide.state import FORGIVEN_AFTER, SKEW, Goal, JobState, counted, honest
from mpijob_elastic.model.bounds import MOST_WORKERS
from mpijob_elastic.model.goodput import Spent
from mpijob_elastic.model.job import Config, JobView, list_number, script_fingerprint
from mpijob_elastic.model.memory import Left, Memory, Reminded, SizeChange, Tries
from mpijob_elastic.model.pod import Worker

# Seconds for which the memory keeps the leaving of a pod that is gone: much longer than a launcher
# needs to see that the pod left.
FORGOTTEN_AFTER = 600.0
# With more elders than this the memory names no elder, so that any pod may be one: there is less to
# write, and a wait in vain is rare.
MOST_ELDERS = 100


def records(state: JobState, change: WriteConfig) -> list[Record]:
    """Return what the capabilities remember with this change."""
    if not state.view.capabilities:
        return []
    published = _published(state, change)
    return [one for each in capability.of(state.view) for one in each.remember(state, published)]


def memory(state: JobState, config: Config, change: WriteConfig, own: Iterable[Record]) -> Memory:
    """Return the memory to write with this change; `own` is what capabilities remember."""
    view, old, now = state.view, state.view.memory, state.now
    published = _published(state, change)
    unlisted = [worker for worker in state.workers if worker.name not in published]
    failed = {worker.pod.ref.uid for worker in state.workers if worker.goal is Goal.REPLACE}
    moving = {worker.pod.ref.uid for worker in unlisted if worker.going and not worker.evicted}
    rank_lost = {worker.name for worker in unlisted if worker.rank_lost}
    has_dropped = not view.driver_running and _drops_hosts(config, change)
    new = Memory(
        left=_left(state, change, published),
        added_at=_time_of(old.added_at, happens=bool(change.added), now=now),
        removed_at=_time_of(old.removed_at, happens=bool(change.removed), now=now),
        dropped_at=_time_of(old.dropped_at, happens=has_dropped, now=now),
        scale=_scale(state, change),
        replaced=_counted(old.replaced, view.workers, troubled=failed, now=now),
        moved=_counted(old.moved, view.workers, troubled=moving, now=now),
        own={record.name: record.json for record in own},
        hosts=host_list.remembered(state, published, lost=rank_lost),
        renamed=lost_ranks.tries(state, {*change.removed}),
        launchers=launcher_start.tries(state),
        elders=elders(state, added=change.added, removed=change.removed),
        mended=handover.mended(state),
        reminded=_reminded(state, change),
        spent=_spent(state, change, published),
    )
    if change.script == config.facts.script:
        return msgspec.structs.replace(new, script=config.fingerprint)
    return signed(new, script=change.script)


def _time_of(before: float, *, happens: bool, now: float) -> float:
    """Return the time of the last change of a kind, which is not ahead of this clock."""
    if happens:
        return now
    return min(before, now)


def _drops_hosts(config: Config, change: WriteConfig) -> bool:
    """Tell whether the hostfile loses a line."""
    after = set(change.hostfile.splitlines())
    return any(line not in after for line in config.facts.hostfile.splitlines())


def _spent(state: JobState, change: WriteConfig, published: Collection[str]) -> Spent | None:
    """Return what the pods have spent that are off the list; it waits for a change of the list."""
    if not (change.added or change.removed):
        return state.view.memory.spent
    return ledger.spent(state.view, published, now=state.now)


def _published(state: JobState, change: WriteConfig) -> AbstractSet[str]:
    """Return the pods that are published after this change."""
    return {*state.view.host_of, *change.added} - {*change.removed}


def _reminded(state: JobState, change: WriteConfig) -> Reminded | None:
    if not (change.reminds or state.view.memory.reminded):
        return None
    is_change = bool(change.added or change.removed)
    return reminders.remembered(state, is_change=is_change, reminds=bool(change.reminds))


def elders(state: JobState, *, added: Collection[str], removed: Collection[str]) -> tuple[str, ...]:
    """Return the pods one of which is rank 0's host, or was before `removed` left.

    Empty if any pod may be the host. [horovod] Hosts keep the order in which the driver came to
    know them, hosts that come together are in any order (HostManager.order_available_hosts), and
    ranks are dealt in that order.
    """
    view = state.view
    if not view.driver_running or not view.driver.keeps_ranks:
        return ()  # a driver that starts comes to know all hosts at once
    if not (added or removed):
        return view.memory.elders
    known, published = frozenset(view.memory.elders), frozenset(view.host_of)
    found = known & published
    if not found:
        found = published
    if removed:
        found |= known
    if len(found) <= MOST_ELDERS:
        return tuple(sorted(found))
    return ()


def signed(memory: Memory, *, script: str) -> Memory:
    """Return the memory with the fingerprint of the script that is written together with it."""
    return msgspec.structs.replace(memory, script=script_fingerprint(script))


def is_due(state: JobState, config: Config, new: Memory) -> bool:
    """Tell whether the memory must be written although the list stays."""
    view, old = state.view, config.memory
    if not view.elastic or new == old:
        return False
    if old is not None and state.memory_known:
        return _has_news(old, new)
    # Nothing is known of the list before: a worker that is not in it may have been a moment ago.
    if view.driver_running or view.host_of or view.surplus:
        return True
    return _has_news(Memory(), new)


def _has_news(old: Memory, new: Memory) -> bool:
    """Tell whether the new memory adds something; what it only drops waits for the next write."""
    named = {pod: host for pod, host in new.hosts.items() if host.pod}
    entries: tuple[tuple[Mapping[str, object], Mapping[str, object]], ...] = (
        (old.replaced, new.replaced),
        (old.moved, new.moved),
        (old.renamed, new.renamed),
        (old.own, new.own),
        (old.hosts, named),
    )
    if any(_adds(before, after) for before, after in entries):
        return True
    return new.launchers != old.launchers or _clock_went_back(old, new)


def _adds(before: Mapping[str, object], after: Mapping[str, object]) -> bool:
    """Tell whether an entry is new or another."""
    return any(before.get(name) != entry for name, entry in after.items())


def _clock_went_back(old: Memory, new: Memory) -> bool:
    before = _times(old)
    return any(before.get(what, 0.0) > at + SKEW for what, at in _times(new).items())


def _times(memory: Memory) -> dict[str, float]:
    left = {pod: left.at for pod, left in memory.left.items()}
    return {
        "added": memory.added_at,
        "removed": memory.removed_at,
        "dropped": memory.dropped_at,
        **left,
    }


def _counted(
    before: Mapping[str, Tries],
    workers: Collection[Worker],
    *,
    troubled: Collection[str],
    now: float,
) -> Mapping[str, Tries]:
    """Return the counts of failures by pod name; each pod with a uid in `troubled` counts once."""
    kept = {
        pod: last
        for pod, last in before.items()
        if last.uid in troubled or now - last.at < FORGIVEN_AFTER
    }
    if not troubled:
        return kept
    for worker in workers:
        if worker.ref.uid in troubled:
            kept[worker.name] = counted(kept.get(worker.name), worker.ref.uid, now=now)
    return kept


def _left(state: JobState, change: WriteConfig, published: Collection[str]) -> Mapping[str, Left]:
    view, workers = state.view, state.by_name
    found = {
        pod: _believed(state, left)
        for pod, left in view.memory.left.items()
        if pod not in published and _matters(state, pod, left)
    }
    number = list_number(change.script)
    for pod in change.removed if state.memory_known else _ever_listed(view):
        index = names.worker_index(pod, job=view.name)
        if pod in published or index is None or index >= MOST_WORKERS:
            continue
        fingerprint = workers[pod].pod.fingerprint if pod in workers else ""
        found[pod] = Left(pod=fingerprint, at=state.now, list=number)
    return found


def _matters(state: JobState, pod: str, left: Left) -> bool:
    """Tell whether it still matters that a pod left: it drains, or is not long gone."""
    worker = state.by_name.get(pod)
    if worker is None:
        return left.at > state.now - FORGOTTEN_AFTER
    return worker.drain is not None


def _ever_listed(view: JobView) -> Iterable[str]:
    """Yield the pods that may have been in a list that is lost: any pod."""
    yield from view.host_of
    yield from (worker.name for worker in view.workers)
    if view.role:
        yield from view.role.exec_names


def _believed(state: JobState, left: Left) -> Left:
    if left.at != honest(left.at, now=state.now):
        return msgspec.structs.replace(left, at=state.now, known_at=0.0)
    if not state.launcher.can_be_shown:
        return left
    return msgspec.structs.replace(left, known_at=state.known_since(left) or 0.0)


def _scale(state: JobState, change: WriteConfig) -> SizeChange | None:
    old, replicas = state.view.memory.scale, state.view.replicas
    before = old.after if old else 0
    if before == replicas or not (change.added or change.removed):
        return old
    if state.wishes.suspend or state.stopped:
        return old
    return SizeChange(before=before, after=replicas, at=state.now)
