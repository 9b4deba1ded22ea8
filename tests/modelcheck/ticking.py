"""Time, which passes in ticks: everything that has an age becomes older."""

from tests.modelcheck.world import (
    NEVER,
    NOTHING,
    READY,
    Pod,
    Probe,
    Setup,
    Tries,
    Watch,
    World,
    hosts_of,
)


def may_pass(world: World) -> bool:
    """Watches, a touched kubelet and the driver are faster than a tick."""
    dying = world.launcher is None or world.launcher.going
    return world.late is None and (dying or world.node.owes == NOTHING)


def passed(world: World, setup: Setup) -> World:
    """The world a tick later."""
    launcher, config = world.launcher, world.config
    older = config._replace(
        changed_age=_older(config.changed_age),
        dropped_age=_older(config.dropped_age),
        left=tuple(
            left and left._replace(age=left.age + 1, known_age=_older(left.known_age))
            for left in config.left
        ),
        replaced=tuple(
            tries and Tries(tries.times, tries.age + 1, tries.uid) for tries in config.replaced
        ),
        moved=tuple(
            tries and Tries(tries.times, tries.age + 1, tries.uid) for tries in config.moved
        ),
        renamed=tuple(
            tries and Tries(tries.times, tries.age + 1, tries.uid) for tries in config.renamed
        ),
    )
    if launcher:
        shown_age = _older(launcher.shown_age)
        age = launcher.age + bool(setup.suspensions)
        launcher = launcher._replace(
            delivering_age=launcher.delivering_age + 1, shown_age=shown_age, age=age
        )
    return world._replace(
        config=older,
        launcher=launcher,
        pods=tuple(pod and _older_pod(pod) for pod in world.pods),
        probes=tuple(probe and _older_probe(probe) for probe in world.probes),
        node=world.node._replace(young=False),
        looked=world.looked and world.looked._replace(asked_age=world.looked.asked_age + 1),
        watch=tuple(
            _looked(world, index) if setup.watched else None for index in range(setup.size)
        ),
    )


def _looked(world: World, index: int) -> Watch | None:
    """Published workers are looked into seldom; here it is at each tick, for what counts is how they are for long."""
    pod, before = world.pods[index], world.watch[index] or Watch()
    if (
        pod is None
        or pod.phase != READY
        or pod.going
        or not hosts_of(1 << index, world.config.hosts)
    ):
        return None
    if hosts_of(1 << index, world.ranks):
        return Watch(busy_seen=True)
    return Watch(busy_seen=before.busy_seen, idle_age=before.idle_age + 1)


def _older(age: int) -> int:
    return age if age == NEVER else age + 1


def _older_pod(pod: Pod) -> Pod:
    return pod._replace(
        created_age=pod.created_age + 1,
        ready_age=pod.ready_age + 1,
        lost_age=_older(pod.lost_age),
        gentle=max(0, pod.gentle - 1),
    )


def _older_probe(probe: Probe) -> Probe:
    return Probe(probe.busy_seen, _older(probe.idle_age), _older(probe.asked_age))
