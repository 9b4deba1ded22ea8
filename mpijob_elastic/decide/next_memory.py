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
    lost_ranks,
    reminders,
)
from mpijob_elastic.decide.actions import WriteConfig
from mpijob_elastic.decide.capability import Record
from mpijob_elastic.decide.state import FORGIVEN_AFTER, SKEW, Goal, JobState, honest
from mpijob_elastic.model.bounds import MOST_WORKERS
from mpijob_elastic.model.job import Config, script_fingerprint
from mpijob_elastic.model.memory import Left, Memory, Reminded, Scale, Tries
from mpijob_elastic.model.pod import Worker

# Seconds for which the memory keeps the leaving of a pod that is gone: much longer than a launcher
# needs to see that the pod left.
FORGOTTEN_AFTER = 600.0
# With more elders than this the memory names no elder, so that any pod may be one: there is less to
# write, and a wait in vain is rare.
MOST_ELDERS = 100


def records(state: JobState, change: WriteConfig) -> list[Record]:
    """Return what the capabilities remember with this change."""
    published = _published(state, change)
    return [one for each in capability.of(state.view) for one in each.remember(state, published)]


def memory(state: JobState, config: Config, change: WriteConfig, own: Iterable[Record]) -> Memory:
    """Return the memory to write with this change; `own` is what capabilities remember."""
    view, old, now = state.view, state.view.memory, state.now
    dropped = set(config.facts.hostfile.splitlines()) - set(change.hostfile.splitlines())
    published = _published(state, change)
    failed = {worker.pod.ref.uid for worker in state.workers if worker.goal is Goal.REPLACE}
    unlisted = [worker for worker in state.workers if worker.going and worker.name not in published]
    moving = {worker.pod.ref.uid for worker in unlisted if not worker.evicted}
    rank_lost = {
        worker.name for worker in state.workers if worker.rank_lost and worker.name not in published
    }
    is_change = change.added or change.removed or not view.driver_running
    new = Memory(
        left=_left(state, change, published),
        added_at=now if change.added else min(old.added_at, now),
        removed_at=now if change.removed else min(old.removed_at, now),
        dropped_at=now if dropped and not view.driver_running else min(old.dropped_at, now),
        scale=_scale(state, change),
        replaced=_counted(old.replaced, view.workers, troubled=failed, now=now),
        moved=_counted(old.moved, view.workers, troubled=moving, now=now),
        own={record.name: record.json for record in own},
        hosts=host_list.remembered(state, published, lost=rank_lost),
        renamed=lost_ranks.tries(state, {*change.removed}) if state.idle else state.losses,
        launchers=old.launchers if view.driver_running else launcher_start.tries(state),
        elders=elders(state, added=change.added, removed=change.removed)
        if is_change
        else old.elders,
        mended=handover.mended(state) if state.edited or view.foreign or old.mended else None,
        reminded=_reminded(state, change) if change.reminds or old.reminded else None,
    )
    if change.script == config.facts.script:
        return msgspec.structs.replace(new, script=config.fingerprint)
    return signed(new, script=change.script)


def _published(state: JobState, change: WriteConfig) -> AbstractSet[str]:
    """Return the pods that are published after this change."""
    return {*state.view.host_of, *change.added} - {*change.removed}


def _reminded(state: JobState, change: WriteConfig) -> Reminded | None:
    is_change = bool(change.added or change.removed)
    return reminders.remembered(state, is_change=is_change, reminds=bool(change.reminds))


def elders(state: JobState, *, added: Collection[str], removed: Collection[str]) -> tuple[str, ...]:
    """Return the pods one of which is rank 0's host, or was before `removed` left.

    Empty if any pod may be the host. [horovod] Hosts keep the order in which the driver came to
    know them, hosts that come together are in any order (HostManager.order_available_hosts), and
    ranks are dealt in that order.
    """
    view = state.view
    if not view.driver_running:
        return ()  # a driver that starts comes to know all hosts at once
    if not (added or removed):
        return view.memory.elders
    known, published = frozenset(view.memory.elders), frozenset(view.host_of)
    oldest = known & published or published
    found = oldest | known if removed else oldest
    return tuple(sorted(found)) if len(found) <= MOST_ELDERS else ()


def signed(memory: Memory, *, script: str) -> Memory:
    """Return the memory with the fingerprint of the script that is written together with it."""
    return msgspec.structs.replace(memory, script=script_fingerprint(script))


def is_due(state: JobState, config: Config, new: Memory) -> bool:
    """Tell whether the memory must be written although the list stays."""
    view = state.view
    if not view.elastic or new == config.memory:
        return False
    if config.memory is None or not state.memory_known:
        # The list has no history: a worker that is not in it may have been in it a moment ago.
        return (
            view.driver_running
            or bool(view.host_of)
            or bool(view.surplus)
            or _has_news(Memory(), new)
        )
    return _has_news(config.memory, new)


def _has_news(old: Memory, new: Memory) -> bool:
    """Tell whether the new memory adds something; what it only drops waits for the next write."""
    counts = ((old.replaced, new.replaced), (old.moved, new.moved), (old.renamed, new.renamed))
    tried = any(
        before.get(pod) != tries for before, after in counts for pod, tries in after.items()
    )
    before, after = _times(old), _times(new)
    clock_went_back = any(before.get(what, 0.0) > at + SKEW for what, at in after.items())
    own = any(old.own.get(name) != entry for name, entry in new.own.items())
    named = any(old.hosts.get(pod) != host for pod, host in new.hosts.items() if host.pod)
    return tried or own or named or new.launchers != old.launchers or clock_went_back


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
    for worker in workers if troubled else ():
        last = kept.get(worker.name)
        if worker.ref.uid in troubled and (last is None or last.uid != worker.ref.uid):
            kept[worker.name] = Tries(
                count=last.count + 1 if last else 1, at=now, uid=worker.ref.uid
            )
    return kept


def _left(state: JobState, change: WriteConfig, published: Collection[str]) -> Mapping[str, Left]:
    view, workers = state.view, state.by_name
    found = {}
    for pod, left in view.memory.left.items():
        matters = workers[pod].drain if pod in workers else left.at > state.now - FORGOTTEN_AFTER
        if matters and pod not in published:
            found[pod] = _believed(state, left)
    # Any pod may have been in a list that is lost.
    all_pods = (*view.host_of, *workers, *(view.role.exec_names if view.role else ()))
    for pod in change.removed if state.memory_known else all_pods:
        index = names.worker_index(pod, job=view.name)
        if pod not in published and index is not None and index < MOST_WORKERS:
            fingerprint = workers[pod].pod.fingerprint if pod in workers else ""
            found[pod] = Left(pod=fingerprint, at=state.now)
    return found


def _believed(state: JobState, left: Left) -> Left:
    if left.at != honest(left.at, now=state.now):
        return Left(pod=left.pod, at=state.now)
    known_at = state.known_since(left) if state.launcher.can_be_shown else left.known_at
    return Left(pod=left.pod, at=left.at, known_at=known_at or 0.0)


def _scale(state: JobState, change: WriteConfig) -> Scale | None:
    old, replicas = state.view.memory.scale, state.view.replicas
    before = old.after if old else 0
    is_suspended = state.wishes.suspend is not None or state.stopped
    if not (change.added or change.removed) or before == replicas or is_suspended:
        return old
    return Scale(before=before, after=replicas, at=state.now)
