"""One form for all worlds that can never behave differently from here on, so that there are finitely many.

Incarnations get the smallest numbers that tell them apart, ages stop where they have no more effect, and what nobody
will look at again is forgotten.
"""

from __future__ import annotations

from tests.modelcheck.world import (
    DELIVERING,
    FAILED,
    FINISHED,
    LONGEST_DRAIN,
    NEVER,
    READY,
    STARTED,
    TEN_SECONDS,
    WAITING,
    Config,
    Launcher,
    Left,
    Node,
    Pod,
    Probe,
    Seen,
    Tries,
    World,
)

# The uid of a pod that may still come.
NOBODY = -1


def canonical(world: World) -> World:
    """The form of this world."""
    late = world.late if world.late != Seen(world.job, world.pods, world.launcher) else None
    world = _renumbered(world._replace(late=late))
    config, launcher = world.config, world.launcher
    stuck_age = _stuck_age(world)
    drains = any(config.left)
    late = late and _late(world.late, config, stuck_age, drains=drains)
    return world._replace(
        pods=_pods(world.pods, config, stuck_age),
        launcher=launcher and _launcher(launcher, stuck_age, drains=drains),
        config=_config(config, world.pods, stuck_age),
        probes=tuple(left and probe and _probe(probe) for left, probe in zip(config.left, world.probes, strict=True)),
        node=_node(launcher, world.node),
        edits=0 if world.job.over else world.edits,
        faults=0 if world.job.over else world.faults,
        late=late,
    )


def _may_be_stuck(launcher: Launcher | None) -> bool:
    return launcher is not None and launcher.older and launcher.phase in (WAITING, DELIVERING)


def _stuck_age(world: World) -> int:
    """Since when a launcher may be stuck, NEVER where none is.

    That is the youngest of several ages; each of the others has no effect of its own, for whatever makes it count
    starts one of them anew.
    """
    launchers = (world.launcher, world.late.launcher if world.late else None)
    waiting = [launcher for launcher in launchers if launcher and _may_be_stuck(launcher)]
    if not waiting:
        return NEVER
    awaited = (pod for index, pod in enumerate(world.pods) if world.config.hostfile >> index & 1)
    ready = (pod.ready_age for pod in awaited if pod and pod.phase == READY)
    delivering = (launcher.delivering_age for launcher in waiting if launcher.phase == DELIVERING)
    return min(world.config.dropped_age, TEN_SECONDS, *ready, *delivering)


def _late(late: Seen | None, config: Config, stuck_age: int, *, drains: bool) -> Seen | None:
    if late is None:
        return None
    launcher = late.launcher and _launcher(late.launcher, stuck_age, drains=drains)
    return Seen(late.job, _pods(late.pods, config, stuck_age), launcher)


def _pods(pods: tuple[Pod | None, ...], config: Config, stuck_age: int) -> tuple[Pod | None, ...]:
    return tuple(pod and _pod(index, pod, config, stuck_age) for index, pod in enumerate(pods))


def _pod(index: int, pod: Pod, config: Config, stuck_age: int) -> Pod:
    left, listed = config.left[index], config.hosts >> index & 1
    ready_age = 1 if listed and stuck_age == NEVER else min(pod.ready_age, max(stuck_age, 1))
    return pod._replace(
        created_age=0 if left is None or left.uid == pod.uid else min(pod.created_age, LONGEST_DRAIN),
        ready_age=ready_age if pod.phase == READY else 0,
    )


def _launcher(launcher: Launcher, stuck_age: int, *, drains: bool) -> Launcher:
    waits = _may_be_stuck(launcher)
    return launcher._replace(
        older=waits,
        delivering_age=stuck_age if waits and launcher.phase == DELIVERING else 0,
        shown_age=min(launcher.shown_age, LONGEST_DRAIN if drains else 1),
    )


def _config(config: Config, pods: tuple[Pod | None, ...], stuck_age: int) -> Config:
    return config._replace(
        changed_age=min(config.changed_age, 1),
        dropped_age=stuck_age,
        left=tuple(one and _left(one) for one in config.left),
        replaced=tuple(one and _tries(one, pod) for one, pod in zip(config.replaced, pods, strict=True)),
    )


def _left(left: Left) -> Left:
    return Left(min(left.age, LONGEST_DRAIN), left.uid, min(left.known_age, LONGEST_DRAIN))


def _tries(tries: Tries, pod: Pod | None) -> Tries:
    waits = pod is not None and pod.phase == FAILED and pod.uid == tries.uid
    return tries._replace(age=min(tries.age, TEN_SECONDS) if waits else TEN_SECONDS)


def _probe(probe: Probe) -> Probe:
    return Probe(probe.busy_seen, min(probe.idle_age, LONGEST_DRAIN), min(probe.asked_age, 1))


def _node(launcher: Launcher | None, node: Node) -> Node:
    if launcher is None or launcher.phase not in (WAITING, DELIVERING, STARTED):
        return Node(young=False)
    if launcher.phase == WAITING:
        return Node(young=node.young)
    return node._replace(young=False, unseen=0) if launcher.phase == STARTED else node


def _renumbered(world: World) -> World:
    """Small uids, and no memory of a pod for which the driver cannot take any other."""
    pods, config, late = list(world.pods), world.config, world.late
    if not (late or any(config.left) or any(config.replaced) or any(pod and pod.uid for pod in pods)):
        return world
    seen = list(late.pods if late else world.pods)
    left, replaced = list(config.left), list(config.replaced)
    for index in range(len(pods)):
        here = [pod for pod in (pods[index], seen[index]) if pod]
        small = {uid: number for number, uid in enumerate(dict.fromkeys(pod.uid for pod in here))}
        gone, tried = left[index], replaced[index]
        if gone and not any(_may_be_taken(pod, gone, world.launcher) for pod in here or [Pod(uid=NOBODY)]):
            gone = None
        pods[index] = _with_uid(pods[index], small)
        seen[index] = _with_uid(seen[index], small) if late else None
        left[index] = gone and gone._replace(uid=small.get(gone.uid, len(small)))
        replaced[index] = tried and tried._replace(uid=small.get(tried.uid, len(small)))
    config = config._replace(left=tuple(left), replaced=tuple(replaced))
    launcher = world.launcher
    if late:
        anew = launcher is not None and late.launcher is not None and launcher.uid != late.launcher.uid
        late = Seen(late.job, tuple(seen), late.launcher and late.launcher._replace(uid=0))
        launcher = launcher and launcher._replace(uid=int(anew))
    else:
        launcher = launcher and launcher._replace(uid=0)
    return world._replace(pods=tuple(pods), config=config, launcher=launcher, late=late)


def _may_be_taken(pod: Pod, left: Left, launcher: Launcher | None) -> bool:
    """Whether a driver with an old list may have taken this pod for the one that left."""
    if pod.uid == left.uid:
        return True
    known_age = left.known_age
    if known_age == NEVER:
        shows = launcher is not None and not launcher.going and launcher.phase != FINISHED
        known_age = min(left.age, launcher.shown_age) if launcher and shows else left.age
    return known_age == NEVER or known_age - pod.created_age < LONGEST_DRAIN


def _with_uid(pod: Pod | None, small: dict[int, int]) -> Pod | None:
    return pod._replace(uid=small[pod.uid]) if pod and pod.uid != small[pod.uid] else pod
