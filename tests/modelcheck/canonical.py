"""One form for all worlds that can never behave differently from here on, so that there are finitely many.

Incarnations get the smallest numbers that tell them apart, ages stop where they have no more
effect, and what nobody will look at again is forgotten.
"""

from tests.modelcheck.world import (
    DELIVERING,
    FAILED,
    FINISHED,
    FREE,
    LONGEST_DRAIN,
    LONGEST_IDLE,
    LONGEST_PACE,
    LOWEST,
    MOST,
    NEVER,
    READY,
    SEASONED,
    SECOND_MOVE,
    STARTED,
    TEN_SECONDS,
    WAITING,
    Config,
    Launcher,
    Left,
    Name,
    Node,
    Pod,
    Probe,
    Seen,
    Tries,
    Watch,
    World,
    mask,
    members,
    pods_of,
)

# The uid of a pod that may still come.
NOBODY = -1


def canonical(world: World) -> World:
    """The form of this world."""
    late = world.late if world.late != Seen(world.job, world.pods, world.launcher) else None
    world = _with_small_numbers(_renumbered(world._replace(late=late)))
    if world.config.number or world.node.list != NEVER:
        world = _with_small_lists(world)
    config, launcher = world.config, world.launcher
    stuck_age = _stuck_age(world)
    drains = any(config.left)
    longest = _longest_ready(world, stuck_age)
    skips = world.job.skips | world.seen.job.skips
    late = late and _late(world.late, config, longest, stuck_age, drains=drains, skips=skips)
    return world._replace(
        pods=_pods(world.pods, launcher, config, longest, skips=skips),
        launcher=launcher and _launcher(launcher, stuck_age, drains=drains),
        config=_config(config, world, stuck_age),
        probes=tuple(
            left and probe and _probe(probe)
            for left, probe in zip(config.left, world.probes, strict=True)
        ),
        node=_node(launcher, world.node),
        edits=0 if world.job.over else world.edits,
        suspensions=0 if world.job.over else world.suspensions,
        faults=0 if world.job.over else world.faults,
        parks=0 if world.job.over else world.parks,
        watch=tuple(watch and _watch(watch) for watch in world.watch),
        looked=world.looked and world.looked._replace(asked_age=min(world.looked.asked_age, 1)),
        late=late,
    )


def _with_small_lists(world: World) -> World:
    """Keep only the order of the numbers of lists."""
    config, node, looked = world.config, world.node, world.looked
    lists = {left.list for left in config.left if left}
    lists |= {config.number, node.list, node.mounted_list, node.ack_list}
    lists |= {looked.number} if looked else set()
    used = sorted(number for number in lists if number > 0)
    small = {number: LOWEST + place for place, number in enumerate(used)} | {0: 0, NEVER: NEVER}
    return world._replace(
        config=config._replace(
            number=small[config.number],
            left=tuple(left and left._replace(list=small[left.list]) for left in config.left),
        ),
        node=node._replace(
            list=small[node.list],
            mounted_list=small[node.mounted_list],
            ack_list=small[node.ack_list],
        ),
        looked=looked and looked._replace(number=small[looked.number]),
    )


def _may_be_stuck(launcher: Launcher | None) -> bool:
    return launcher is not None and launcher.older and launcher.phase in (WAITING, DELIVERING)


def _stuck_age(world: World) -> int:
    """Since when a launcher may be stuck, NEVER where none is.

    That is the youngest of several ages; each of the others has no effect of its own, for whatever
    makes it count restarts an age.
    """
    launchers = (world.launcher, world.late.launcher if world.late else None)
    waiting = [launcher for launcher in launchers if launcher and _may_be_stuck(launcher)]
    if not waiting:
        return NEVER
    awaited = (pod for index, pod in enumerate(world.pods) if world.config.hostfile >> index & 1)
    ready = (pod.ready_age for pod in awaited if pod and pod.phase == READY)
    delivering = (launcher.delivering_age for launcher in waiting if launcher.phase == DELIVERING)
    return min(world.config.dropped_age, TEN_SECONDS, *ready, *delivering)


def _longest_ready(world: World, stuck_age: int) -> int:
    """Up to which age it matters how long a listed worker has been Ready, NEVER where it does not."""
    return SEASONED if _any_doomed(world) else stuck_age


def _any_doomed(world: World) -> bool:
    return any(pod and pod.doomed for pod in (*world.pods, *world.seen.pods))


def _late(
    late: Seen | None,
    config: Config,
    longest: int,
    stuck_age: int,
    *,
    drains: bool,
    skips: frozenset[int],
) -> Seen | None:
    if late is None:
        return None
    launcher = late.launcher and _launcher(late.launcher, stuck_age, drains=drains)
    return Seen(late.job, _pods(late.pods, late.launcher, config, longest, skips=skips), launcher)


def _pods(
    pods: tuple[Pod | None, ...],
    launcher: Launcher | None,
    config: Config,
    longest: int,
    *,
    skips: frozenset[int],
) -> tuple[Pod | None, ...]:
    is_held = launcher is not None and launcher.gated
    found = enumerate(pods)
    return tuple(
        pod and _pod(at, pod, config, longest, is_held=is_held, is_parked=at in skips)
        for at, pod in found
    )


def _pod(
    index: int, pod: Pod, config: Config, longest: int, *, is_held: bool, is_parked: bool
) -> Pod:
    listed = pods_of(config.hosts) >> index & 1
    ready_age = 1 if listed and longest == NEVER else min(pod.ready_age, max(longest, 1))
    missed = is_held and not (pod.gated or pod.before)
    return pod._replace(
        created_age=min(pod.created_age, LONGEST_DRAIN)
        if missed or is_parked or _succeeds(index, pod, config)
        else 0,
        before=pod.before and is_held,
        ready_age=ready_age if pod.phase == READY else 0,
        doomed=pod.doomed and pod.works,
        lost_age=min(pod.lost_age, LONGEST_DRAIN),
    )


def _succeeds(index: int, pod: Pod, config: Config) -> bool:
    """Return True if the age of the pod matters: a step may wait until the driver knows its predecessor is gone."""
    left, name = config.left[index], config.names[index]
    is_lost = (
        name is not None
        and name.uid not in (FREE, pod.uid)
        and not pods_of(config.hosts) >> index & 1
    )
    return is_lost or (left is not None and left.uid != pod.uid)


def _launcher(launcher: Launcher, stuck_age: int, *, drains: bool) -> Launcher:
    waits = _may_be_stuck(launcher)
    return launcher._replace(
        older=waits,
        delivering_age=stuck_age if waits and launcher.phase == DELIVERING else 0,
        shown_age=min(launcher.shown_age, LONGEST_DRAIN if drains else 1),
        age=LONGEST_PACE if launcher.gated else min(launcher.age, LONGEST_PACE),
    )


def _config(config: Config, world: World, stuck_age: int) -> Config:
    may_move = world.faults or _any_doomed(world)
    return config._replace(
        changed_age=min(config.changed_age, 1),
        dropped_age=stuck_age,
        left=tuple(left and _left(left) for left in config.left),
        replaced=tuple(
            tries and _tries(tries, pod)
            for tries, pod in zip(config.replaced, world.pods, strict=True)
        ),
        moved=tuple(
            tries and _move(tries, pod) if may_move else None
            for tries, pod in zip(config.moved, world.pods, strict=True)
        ),
        renamed=tuple(tries and tries._replace(age=min(tries.age, 1)) for tries in config.renamed),
    )


def _left(left: Left) -> Left:
    return left._replace(
        age=min(left.age, LONGEST_DRAIN), known_age=min(left.known_age, LONGEST_DRAIN)
    )


def _tries(tries: Tries, pod: Pod | None) -> Tries:
    waits = pod is not None and pod.phase == FAILED and pod.uid == tries.uid
    return tries._replace(age=min(tries.age, TEN_SECONDS) if waits else TEN_SECONDS)


def _move(tries: Tries, pod: Pod | None) -> Tries:
    waits = pod is not None and pod.doomed and pod.uid == tries.uid and tries.times > 1
    return tries._replace(age=min(tries.age, SECOND_MOVE) if waits else SECOND_MOVE)


def _watch(watch: Watch) -> Watch:
    return watch._replace(idle_age=min(watch.idle_age, LONGEST_IDLE))


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
    known = any(config.names) or any(config.renamed) or any(config.moved)
    if not (
        late
        or known
        or any(config.left)
        or any(config.replaced)
        or any(pod and pod.uid for pod in pods)
    ):
        return world
    seen = list(late.pods if late else world.pods)
    left, names = list(config.left), list(config.names)
    replaced, moved, renamed = list(config.replaced), list(config.moved), list(config.renamed)
    drained = world.drained
    for index in range(len(pods)):
        here = [pod for pod in (pods[index], seen[index]) if pod]
        gone, name = left[index], names[index]
        if name and name == Name(FREE, 0):
            names[index] = name = None
        tells = gone is not None and name is not None and gone.uid == name.uid
        if (
            gone
            and not tells
            and not any(_may_be_taken(pod, gone, world) for pod in here or [Pod(uid=NOBODY)])
        ):
            left[index] = gone = None
        if not tells:
            drained &= ~(1 << index)
        others = [known.uid for known in (gone, name) if known and known.uid != FREE]
        small = {
            uid: number
            for number, uid in enumerate(dict.fromkeys([*(pod.uid for pod in here), *others]))
        }
        pods[index] = _with_uid(pods[index], small)
        seen[index] = _with_uid(seen[index], small) if late else None
        left[index] = gone and gone._replace(uid=small[gone.uid])
        names[index] = name and name._replace(uid=FREE if name.uid == FREE else small[name.uid])
        for tries in (replaced, moved, renamed):
            tried = tries[index]
            tries[index] = tried and tried._replace(uid=small.get(tried.uid, len(small)))
    config = config._replace(left=tuple(left), names=tuple(names))
    config = config._replace(replaced=tuple(replaced), moved=tuple(moved), renamed=tuple(renamed))
    launcher = world.launcher
    if late:
        is_new = (
            launcher is not None and late.launcher is not None and launcher.uid != late.launcher.uid
        )
        late = Seen(late.job, tuple(seen), late.launcher and late.launcher._replace(uid=0))
        launcher = launcher and launcher._replace(uid=int(is_new))
    else:
        launcher = launcher and launcher._replace(uid=0)
    return world._replace(
        pods=tuple(pods), config=config, launcher=launcher, late=late, drained=drained
    )


def _with_small_numbers(world: World) -> World:
    """Keep only the order of the host names of each worker; forget names that cannot come back."""
    if not (world.config.maps and world.node.maps):
        return world
    for index, name in enumerate(world.config.names):
        node, config = world.node, world.config
        in_use = config.hosts | node.mounted | node.known | world.ranks
        if name:
            past = [
                host
                for host in members(node.black & ~in_use)
                if host % MOST == index and host // MOST < name.number
            ]
            world = world._replace(node=node._replace(black=node.black & ~mask(past)))
        used = [host // MOST for host in members(in_use | world.node.black) if host % MOST == index]
        least = min([*used, *([name.number] if name else [])], default=0)
        world = _lowered(world, index, least) if least else world
    return world


def _lowered(world: World, index: int, by: int) -> World:
    def lower(hosts: int) -> int:
        return mask([host - by * MOST if host % MOST == index else host for host in members(hosts)])

    config, node, names = world.config, world.node, list(world.config.names)
    name = names[index]
    names[index] = name and name._replace(number=name.number - by)
    return world._replace(
        config=config._replace(hosts=lower(config.hosts), names=tuple(names)),
        node=node._replace(
            mounted=lower(node.mounted), known=lower(node.known), black=lower(node.black)
        ),
        ranks=lower(world.ranks),
    )


def _may_be_taken(pod: Pod, left: Left, world: World) -> bool:
    """Return True if a driver with an old list may have taken this pod for the pod that left."""
    launcher, looked = world.launcher, world.looked
    if pod.uid == left.uid:
        return True
    is_read = looked is not None and looked.number >= left.list
    if left.list and launcher and launcher.phase == STARTED and not is_read:
        return True  # elastic.sh says when it has read the list
    known_age = left.known_age
    if known_age == NEVER:
        shows = launcher is not None and not launcher.going and launcher.phase != FINISHED
        known_age = min(left.age, launcher.shown_age) if launcher and shows else left.age
    return known_age == NEVER or known_age - pod.created_age < LONGEST_DRAIN


def _with_uid(pod: Pod | None, small: dict[int, int]) -> Pod | None:
    return pod._replace(uid=small[pod.uid]) if pod and pod.uid != small[pod.uid] else pod
