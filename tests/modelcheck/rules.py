"""The safety rules as they look from outside: they must hold in every world and at every move.

Nothing here asks decide: an invariant that borrowed its reasons would share its mistakes.
"""

from mpijob_elastic.decide.actions import (
    Action,
    DeleteLauncher,
    DeleteWorkers,
    Look,
    RefreshLauncher,
    Ungate,
    WriteConfig,
    WriteRole,
)
from tests.modelcheck.world import (
    DELIVERING,
    FAILED,
    FINISHED,
    LONGEST_DRAIN,
    MOST,
    NEVER,
    READY,
    STARTED,
    TICK,
    Setup,
    World,
    hosts_of,
    mask,
    members,
    pods_of,
)


def after_our_move(before: World, action: Action | Look, after: World, *, setup: Setup) -> str:
    """Return what is wrong with our step, "" if nothing is."""
    wrong = ""
    match action:
        case WriteConfig():
            wrong = _published(before, after) or _moved(before, after, setup=setup)
            wrong = wrong or _hastened(before, after) or _startled(before, after)
        case RefreshLauncher() if not before.config.hosts:
            wrong = "an empty list is shown to the launcher"
        case DeleteWorkers():
            gone = [index for index, pod in enumerate(after.pods) if pod != before.pods[index]]
            wrong = next(filter(None, (_gone(before, index, setup=setup) for index in gone)), "")
        case DeleteLauncher() if before.launcher and after != before and before.launcher.phase >= STARTED:
            wrong = _stopped(before, setup=setup) if before.job.stops else "a launcher that has started is deleted"
        case Ungate():
            wrong = _ungated(before, after)
        case WriteRole() if pods_of(before.config.hosts) & _existing(before) & ~after.role:
            wrong = "the Role loses a worker that is published"
    plain = not before.seen.job.elastic and isinstance(action, WriteRole | RefreshLauncher | DeleteLauncher)
    return "a job that is not elastic is touched" if plain else wrong


def in_every_world(world: World) -> str:
    """Return what is wrong with this world, "" if nothing is."""
    hosts = world.config.hosts
    if pods_of(hosts) & _existing(world) & ~world.role:
        return "a worker is published that the launcher may not exec into"
    if pods_of(hosts).bit_count() < hosts.bit_count():
        return "two hosts stand for one pod"
    if hosts >> MOST and not world.config.maps:
        return "a numbered host is published that the launcher cannot reach"
    return ""


def at_others_move(before: World, after: World, *, setup: Setup) -> str:
    """Return what is wrong with a move of others that we led them to, "" if nothing is."""
    if before.launcher is None:
        starts = after.launcher and not after.launcher.gated and before.faults == after.faults and before.job.elastic
        return _beside_orphans(before) if starts else ""
    return "" if "config-deleted" in setup.faults else _read(before, after)


def _read(before: World, after: World) -> str:
    """Return what is wrong if the driver reads its list; whose ConfigMap was deleted may read what others put there."""
    known, reads = before.node.known, after.node.known
    if after.launcher is None or after.launcher.phase != STARTED or not known or known == reads:
        return ""
    if not reads:
        return "the driver reads an empty list"
    if reads >> MOST and not after.node.maps:
        return "the driver reads a numbered host that it cannot reach"
    if not known & reads and hosts_of(_ready(before), known & ~before.node.black):
        return "nobody stays who knows the training's state"
    removed = hosts_of(_ready(before) & ~_recreated(before), known & ~reads & ~before.node.black)
    return "the driver reads a removal and an addition at once" if removed and reads & ~known else ""


def _stopped(before: World, *, setup: Setup) -> str:
    """Return what is wrong if the launcher of a suspended job goes now."""
    lost = members(pods_of(before.ranks & ~before.config.hosts))
    if any(not _timed_out(before, index, setup=setup) for index in lost):
        return "a rank is killed before its drain-timeout"
    if (pods_of(before.config.hosts) & _ready(before)).bit_count() > 1:
        return "a job is stopped that has yet to shrink"
    return ""


def _ungated(before: World, after: World) -> str:
    if before.seen.job.stops:
        return "a pod of a suspended job may start"
    if before.launcher and after.launcher and before.launcher.gated > after.launcher.gated:
        return _beside_orphans(before) if before.job.elastic else ""
    return ""


def _beside_orphans(world: World) -> str:
    return "a launcher starts beside ranks of the launcher before" if world.orphans else ""


def _published(before: World, after: World) -> str:
    old, new = before.config.hosts, after.config.hosts
    added, seen = new & ~old, before.seen
    ready = mask([i for i, pod in enumerate(seen.pods) if pod and pod.works])
    wanted = (1 << seen.job.replicas) - 1 if seen.job.elastic else -1
    if added and old & ~new:
        return "a removal and an addition in one write"
    if old and not new and not (before.launcher is None or before.launcher.gated):
        return "the list becomes empty"
    if seen.job.elastic and added & before.node.black:
        return "a host name under which a rank died is published again"
    if pods_of(added) & ~(ready & wanted):
        return "a worker is published that is not Ready, or beyond the size"
    if not seen.job.elastic and after.config.hostfile != before.config.hostfile:
        return "the hostfile of a job that is not elastic is written"
    return ""


def _hastened(before: World, after: World) -> str:
    """Return what is wrong if a host is added while the others may still be getting over the death of a rank."""
    names, old, launcher = before.config.names, before.config.hosts, before.launcher
    if launcher is None or launcher.phase != STARTED or old.bit_count() < 2 or not after.config.hosts & ~old:
        return ""
    fresh = [index for index, pod in enumerate(before.seen.pods) if pod and pod.created_age < LONGEST_DRAIN]
    # For a node that is gone the wait was before the removal (see _startled).
    waits = {index: name for index, name in enumerate(names) if name and index in fresh and not name.reformed}
    last = mask([name.number * MOST + index for index, name in waits.items()])
    lost = last & before.node.black & ~hosts_of(pods_of(old), last)
    return "a host is added while others get over a loss" if lost else ""


def _startled(before: World, after: World) -> str:
    """Return what is wrong if the list changes while the driver may call a rank on a node that was just lost."""
    old, new, launcher = before.config.hosts, after.config.hosts, before.launcher
    if launcher is None or launcher.phase != STARTED or not pods_of(old) & _ready(before):
        return ""
    size, named = before.seen.job.replicas, zip(before.seen.pods, before.config.names, strict=True)
    trained = [(i, pod) for i, (pod, name) in enumerate(named) if pod and name and pod.uid == name.uid and i < size]
    fresh = [(i, pod) for i, pod in trained if pod.lost_age in range(LONGEST_DRAIN)]
    lost = mask([i for i, pod in fresh if pod.phase == READY and not pod.going])
    called = hosts_of(lost, old)
    return "the driver may call a node that is gone" if called and (new & ~old or called & ~new) else ""


def _moved(before: World, after: World, *, setup: Setup) -> str:
    pods, size = before.seen.pods, (1 << before.seen.job.replicas) - 1
    ready = mask([i for i, pod in enumerate(pods) if pod and pod.works]) & size
    doomed = mask([i for i, pod in enumerate(pods) if pod and pod.doomed])
    left = pods_of(before.config.hosts & ~after.config.hosts) & ready & doomed
    stay = pods_of(after.config.hosts) & ready
    least = setup.policy.min_replicas or 1
    return "a node that goes takes more workers than may leave" if left and stay.bit_count() < least else ""


def _gone(world: World, index: int, *, setup: Setup) -> str:
    pod, bit = world.pods[index], 1 << index
    if pod is None or not pod.going:
        return _deleted(world, index, setup=setup)
    if not world.job.elastic or pods_of(world.config.hosts) & bit:  # somebody else deletes it, and waits for its ranks
        return "a worker is ended early that is published, or whose job is not elastic"
    return _could_be_killed(world, bit)


def _deleted(world: World, index: int, *, setup: Setup) -> str:
    pod, bit = world.pods[index], 1 << index
    assert pod is not None
    ended = world.launcher is not None and world.launcher.phase == FINISHED
    if world.job.over or ended:
        allowed = setup.clean_pod_policy != "None" and (ended or index >= world.job.replicas)
        return "" if allowed else "a worker of a job that has ended is deleted against its cleanPodPolicy"
    if not world.job.elastic:
        return "a worker of a job that is not elastic is deleted"
    if pod.phase == FAILED or pod.lost_age != NEVER:
        published = pods_of(world.config.hosts)
        return "a dead worker is deleted that is published" if published & ~bit and published & bit else ""
    held = world.launcher is None or world.launcher.gated
    is_stopped = held and (world.job.stops or pod.before) and not pod.gated
    if index < (1 if world.job.stops else world.job.replicas) and not (pod.doomed or is_stopped):
        return "a worker that the size asks for is deleted"
    if pods_of(world.config.hosts) & bit:
        return "a worker that is published is deleted"
    return "" if is_stopped or _timed_out(world, index, setup=setup) else _could_be_killed(world, bit)


def _could_be_killed(world: World, bit: int) -> str:
    launcher = world.launcher
    if launcher is None or launcher.going:
        return ""  # ranks end with their launcher
    if pods_of(world.ranks) & bit:
        return "a rank is killed before its drain-timeout"
    if launcher.phase in (DELIVERING, STARTED) and pods_of(world.node.mounted | world.node.known) & bit:
        return "a worker is deleted in which the driver may start a rank"
    return ""


def _timed_out(world: World, index: int, *, setup: Setup) -> bool:
    left, launcher = world.config.left[index], world.launcher
    if left is None or launcher is None:
        return False
    known_age = max(left.known_age, min(left.age, launcher.shown_age))
    return known_age * TICK >= setup.policy.drain_timeout


def _existing(world: World) -> int:
    return mask([index for index, pod in enumerate(world.pods) if pod])


def _ready(world: World) -> int:
    return mask([index for index, pod in enumerate(world.pods) if pod and pod.works])


def _recreated(world: World) -> int:
    """Return workers whose pod is not the pod that left the list: that pod was lost, so its removal could not wait."""
    found = zip(world.pods, world.config.left, strict=True)
    return mask([index for index, (pod, left) in enumerate(found) if pod and left and pod.uid != left.uid])


def _doomed(world: World) -> bool:
    return any(pod and pod.doomed for pod in world.pods)


def is_goal(world: World, *, setup: Setup) -> bool:
    """Return True if the job is as its size asks: every possible worker trains, no other is left."""
    size = (1 << world.job.replicas) - 1
    placed = size & ~setup.unplaced
    there = {index for index, pod in enumerate(world.pods) if pod}
    if world.job.over or (world.launcher is not None and world.launcher.phase == FINISHED):
        return setup.clean_pod_policy == "None" or not there
    if world.job.stops:
        held = [world.launcher, *(world.pods[index] for index in there)]
        is_held = all(pod is not None and pod.gated and not pod.going for pod in held)
        return is_held and there == set(members(size)) and not (world.config.hosts or world.orphans)
    trains = world.launcher is not None and world.launcher.phase == STARTED and not world.launcher.going
    if not world.job.elastic:
        return trains  # on what it was started with
    return (
        trains
        and _ready(world) == placed == pods_of(world.config.hosts)
        and world.role & size == size
        and world.ranks == world.node.known == world.config.hosts
        and there == set(members(size))
        and (size.bit_count() <= (setup.policy.min_replicas or 1) or not _doomed(world))
    )
