"""The safety rules (tests/rules.py) at our moves in a model world, and those that only such a world can show.

Nothing here asks decide: an invariant that borrowed its reasons would share its mistakes.
"""

from functools import cache

from mpijob_elastic import names
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
from mpijob_elastic.decide.parking import DeletePlaceholder
from tests import rules
from tests.builders import JOB
from tests.modelcheck import elastic_driver, views
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
    Pod,
    Seen,
    Setup,
    World,
    hosts_of,
    mask,
    members,
    numbers,
    pods_of,
)

_ORPHANS = "a launcher starts beside ranks of the launcher before"


def after_our_move(before: World, action: Action | Look, after: World, *, setup: Setup) -> str:
    """Return what is wrong with our step, "" if nothing is."""
    wrong: list[str] = []
    match action:
        case WriteConfig():
            listing = _listing(before, after, setup=setup)
            wrong = rules.published(_listed_job(before, listing, setup=setup), listing)
            if not setup.elastic_sh:
                wrong += filter(None, (_hastened(before, after), _startled(before, after)))
        case RefreshLauncher() if not (before.config.hosts or setup.elastic_sh):
            wrong = ["an empty list is shown to the launcher"]
        case DeleteWorkers():
            gone = [index for index, pod in enumerate(after.pods) if pod != before.pods[index]]
            wrong = [one for index in gone for one in _gone(before, index, setup=setup)]
        case DeleteLauncher() if before.launcher and after != before:
            started, stopping = before.launcher.phase >= STARTED, _job(before)
            wrong = rules.launcher_deleted(stopping, started=started)
            wrong += filter(None, [_stopped(before, setup=setup) if started else ""])
        case Ungate():
            wrong = rules.ungated(_job(before.seen)) + _ungated(before, after)
        case DeletePlaceholder():
            gone = [index for index, pod in enumerate(after.pods) if pod != before.pods[index]]
            wrong = [
                f"a worker is deleted for a placeholder: {index}"
                for index in gone
                if not _holds_place(before, index)
            ]
        case WriteRole():
            wrong = rules.granted(_workers(before.role), _workers(after.role))
    if not before.seen.job.elastic and isinstance(
        action, WriteRole | RefreshLauncher | DeleteLauncher
    ):
        wrong.append("a job that is not elastic is touched")
    return "; ".join(wrong)


def in_every_world(world: World) -> str:
    """Return what is wrong with this world, "" if nothing is."""
    hosts = world.config.hosts
    if pods_of(hosts) & _existing(world) & ~world.role:
        return "a worker is published that the launcher may not exec into"
    return ""


def at_others_move(before: World, after: World, *, setup: Setup) -> str:
    """Return what is wrong with a move of others that we led them to, "" if nothing is."""
    if before.launcher is None:
        starts = (
            after.launcher
            and not after.launcher.gated
            and before.faults == after.faults
            and before.job.elastic
        )
        return _ORPHANS if starts and before.orphans else ""
    if setup.elastic_sh:
        is_back = 0 < after.node.list < before.node.list
        return "the driver reads an earlier list" if is_back else ""
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
    return (
        "the driver reads a removal and an addition at once" if removed and reads & ~known else ""
    )


def _stopped(before: World, *, setup: Setup) -> str:
    """Return what is wrong if the launcher of a suspended job goes now."""
    lost = members(pods_of(before.ranks & ~before.config.hosts))
    if setup.elastic_sh:
        running = members(before.ranks | before.orphans)
        lost = [index for index in running if not _is_ending(before.pods[index])]
    if any(not _timed_out(before, index, setup=setup) for index in lost):
        return "a rank is killed before its drain-timeout"
    kept = 0 if setup.elastic_sh else 1
    if (pods_of(before.config.hosts) & _ready(before)).bit_count() > kept:
        return "a job is stopped that has yet to shrink"
    return ""


def _is_ending(pod: Pod | None) -> bool:
    """Tell whether the time is over that somebody else gave the ranks of a pod."""
    return pod is not None and pod.going and not pod.gentle


def _ungated(before: World, after: World) -> list[str]:
    starts = before.launcher and after.launcher and before.launcher.gated > after.launcher.gated
    return [_ORPHANS] if starts and before.orphans and before.job.elastic else []


@cache
def _workers(indices: int) -> frozenset[str]:
    return frozenset(names.worker(JOB, index) for index in members(indices))


@cache
def _hosts(hosts: int) -> frozenset[str]:
    return frozenset(
        names.host(names.worker(JOB, index), number)
        for index, number in map(numbers, members(hosts))
    )


def _job(world: World | Seen) -> rules.Job:
    """What our writes other than of the list depend on."""
    return rules.Job(
        elastic=world.job.elastic,
        hosts=frozenset(),
        size=world.job.replicas,
        suspended=world.job.stops,
    )


def _listed_job(world: World, listing: rules.Listing, *, setup: Setup) -> rules.Job:
    """The job as we saw it; what the API server itself guards is as it is."""
    seen, launcher, node = world.seen, world.launcher, world.node
    number = world.config.number
    if not listing.is_same:
        number = max(number, node.list, node.mounted_list, node.ack_list)
    return rules.Job(
        elastic=seen.job.elastic,
        hosts=_hosts(world.config.hosts),
        size=seen.job.wanted.bit_count(),
        skips=seen.job.skips,
        runs=launcher is not None and not launcher.gated,
        ready=_workers(mask([i for i, pod in enumerate(seen.pods) if pod and pod.works])),
        role=_workers(world.role),
        restarts=setup.elastic_sh,
        number=number,
    )


def _listing(before: World, after: World, *, setup: Setup) -> rules.Listing:
    return rules.Listing(
        hosts=_hosts(after.config.hosts),
        blacklisted=_hosts(before.node.black),
        finds_numbered=after.config.maps,
        writes_hostfile=before.config.hostfile != after.config.hostfile,
        threatened=_workers(
            mask([i for i, pod in enumerate(before.seen.pods) if pod and pod.doomed])
        ),
        least=setup.policy.min_replicas or 1,
        number=after.config.number,
        is_same=before.config.number == after.config.number and _text(before) == _text(after),
        told={
            left.list
            for index, left in enumerate(after.config.left)
            if left and (before.config.hosts & ~after.config.hosts) >> index & 1
        },
    )


def _text(world: World) -> str | None:
    return views.config_map_of(world.config).facts.script


def _hastened(before: World, after: World) -> str:
    """Return what is wrong if a host is added while the others may still be getting over the death of a rank."""
    names, old, launcher = before.config.names, before.config.hosts, before.launcher
    if (
        launcher is None
        or launcher.phase != STARTED
        or old.bit_count() < 2
        or not after.config.hosts & ~old
    ):
        return ""
    fresh = [
        index
        for index, pod in enumerate(before.seen.pods)
        if pod and pod.created_age < LONGEST_DRAIN
    ]
    # For a node that is gone the wait was before the removal (see _startled).
    waits = {
        index: name
        for index, name in enumerate(names)
        if name and index in fresh and not name.reformed
    }
    last = mask([name.number * MOST + index for index, name in waits.items()])
    lost = last & before.node.black & ~hosts_of(pods_of(old), last)
    return "a host is added while others get over a loss" if lost else ""


def _startled(before: World, after: World) -> str:
    """Return what is wrong if the list changes while the driver may call a rank on a node that was just lost."""
    old, new, launcher = before.config.hosts, after.config.hosts, before.launcher
    if launcher is None or launcher.phase != STARTED or not pods_of(old) & _ready(before):
        return ""
    wanted, named = before.seen.job.wanted, zip(before.seen.pods, before.config.names, strict=True)
    trained = [
        (i, pod)
        for i, (pod, name) in enumerate(named)
        if pod and name and pod.uid == name.uid and wanted >> i & 1
    ]
    fresh = [(i, pod) for i, pod in trained if pod.lost_age in range(LONGEST_DRAIN)]
    lost = mask([i for i, pod in fresh if pod.phase == READY and not pod.going])
    called = hosts_of(lost, old)
    return (
        "the driver may call a node that is gone"
        if called and (new & ~old or called & ~new)
        else ""
    )


def _gone(world: World, index: int, *, setup: Setup) -> list[str]:
    pod, bit = world.pods[index], 1 << index
    assert pod is not None
    if pod.going:
        if (
            not world.job.elastic or pods_of(world.config.hosts) & bit
        ):  # somebody else deletes it, and waits
            return ["a worker is ended early that is published, or whose job is not elastic"]
        return [wrong for wrong in [_could_be_killed(world, bit, setup=setup)] if wrong]
    launcher_ended = world.launcher is not None and world.launcher.phase == FINISHED
    stopped = 0 if setup.elastic_sh else 1
    dead = pod.phase == FAILED or pod.lost_age != NEVER
    held = (
        (world.launcher is None or world.launcher.gated)
        and (world.job.stops or pod.before)
        and not pod.gated
    )
    job = rules.Job(
        elastic=world.job.elastic,
        hosts=_hosts(world.config.hosts),
        size=stopped if world.job.stops else world.job.wanted.bit_count(),
        skips=world.job.skips,
        ended=world.job.over or launcher_ended,
        cleans=setup.clean_pod_policy != "None" and (launcher_ended or index >= world.job.replicas),
    )
    spared = dead or held or _timed_out(world, index, setup=setup)
    in_use = "" if spared else _could_be_killed(world, bit, setup=setup)
    pod_name = names.worker(JOB, index)
    return rules.deleted(
        job,
        rules.Deletion(
            pod=pod_name, dead=dead, replaced=dead or pod.doomed, held=held, in_use=in_use
        ),
    )


def _holds_place(world: World, index: int) -> bool:
    pod = world.pods[index]
    return pod is not None and pod.placeholder


def _could_be_killed(world: World, bit: int, *, setup: Setup) -> str:
    launcher = world.launcher
    if launcher is None or launcher.going:
        return ""  # ranks end with their launcher
    if setup.elastic_sh:
        ranks, starts = world.ranks | world.orphans, elastic_driver.may_start_in(world)
    else:
        ranks, starts = pods_of(world.ranks), pods_of(world.node.mounted | world.node.known)
    if ranks & bit:
        return "a rank is killed before its drain-timeout"
    if launcher.phase in (DELIVERING, STARTED) and starts & bit:
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
    return mask(
        [index for index, (pod, left) in enumerate(found) if pod and left and pod.uid != left.uid]
    )


def _doomed(world: World) -> bool:
    return any(pod and pod.doomed for pod in world.pods)


def is_goal(world: World, *, setup: Setup) -> bool:
    """Return True if the job is as its size asks: every possible worker trains, no other is left."""
    every, size = (1 << world.job.replicas) - 1, world.job.wanted
    placed = size & ~setup.unplaced
    there = {index for index, pod in enumerate(world.pods) if pod}
    if world.job.over or (world.launcher is not None and world.launcher.phase == FINISHED):
        return setup.clean_pod_policy == "None" or not there
    if world.job.stops:
        held = [world.launcher, *(world.pods[index] for index in there)]
        is_held = all(pod is not None and pod.gated and not pod.going for pod in held)
        return (
            is_held and there == set(members(every)) and not (world.config.hosts or world.orphans)
        )
    trains = (
        world.launcher is not None and world.launcher.phase == STARTED and not world.launcher.going
    )
    if not world.job.elastic:
        return trains  # on what it was started with
    return (
        trains
        and _ready(world) == placed == pods_of(world.config.hosts)
        and world.role & size == size
        and world.ranks == world.node.known == world.config.hosts
        and (not setup.elastic_sh or world.node.ack_list == world.config.number)
        and there == set(members(every))
        and {index for index, pod in enumerate(world.pods) if pod and pod.placeholder}
        == {*members(every & ~size)}
        and (size.bit_count() <= (setup.policy.min_replicas or 1) or not _doomed(world))
    )
