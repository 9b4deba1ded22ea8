"""Everybody else's moves: the operator's, the kubelets', Horovod's driver's, the user's, time's, and what breaks.

[operator] is what lab/operator does too; what kubelet and driver do was measured on a real kubelet
and driver.
"""

from collections.abc import Iterator
from typing import NamedTuple

from tests.modelcheck import elastic_driver, ticking, views
from tests.modelcheck.world import (
    DELIVERING,
    FAILED,
    FINISHED,
    LONGEST_DRAIN,
    NEVER,
    NOTHING,
    PENDING,
    READING,
    READY,
    STARTED,
    SYNC,
    WAITING,
    Config,
    Launcher,
    Node,
    Pod,
    Setup,
    World,
    hosts_of,
    mask,
    members,
    numbers,
)


class Move(NamedTuple):
    """One step of somebody. fair: it happens in the end, if it stays possible."""

    name: str
    world: World
    fair: bool = True


def moves(world: World, setup: Setup) -> Iterator[Move]:
    """All that may happen next."""
    yield from _operator(world, setup)
    yield from _kubelets(world, setup)
    yield from _launchers_kubelet(world, setup)
    if setup.elastic_sh:
        yield from (Move(name, then) for name, then in elastic_driver.moves(world))
    else:
        yield from _driver(world)
    yield from _user(world, setup)
    yield from _parks(world)
    yield from _faults(world, setup)
    if world.late:
        yield Move("caches catch up", world._replace(late=None))
    if any(world.probes) or any(world.watch) or world.drained or world.looked:
        nothing = (None,) * setup.size
        yield Move(
            "controller restarts",
            world._replace(probes=nothing, watch=nothing, drained=0, looked=None),
            fair=False,
        )
    if ticking.may_pass(world):
        yield Move("time passes", ticking.passed(world, setup))


def set_pod(world: World, index: int, pod: Pod | None) -> World:
    """The world with another pod under that name."""
    return world._replace(pods=(*world.pods[:index], pod, *world.pods[index + 1 :]))


def _next_uid(world: World, index: int) -> int:
    taken = [pods[index] for pods in (world.pods, world.seen.pods)]
    config = world.config
    tries = (config.replaced[index], config.moved[index], config.renamed[index])
    memory = (config.left[index], config.names[index], *tries)
    return 1 + max((known.uid for known in (*taken, *memory) if known), default=0)


def _operator(world: World, setup: Setup) -> Iterator[Move]:
    if world.job.over:
        for index in range(world.job.replicas):
            pod = world.pods[index]
            if pod and not pod.going and setup.clean_pod_policy != "None":
                yield Move(
                    f"operator cleans up {index}", set_pod(world, index, pod._replace(going=True))
                )
        return
    if world.launcher and world.launcher.phase == FINISHED:
        # After refusals it may come too late for anybody to wait for it.
        yield Move(
            "operator reports the end",
            world._replace(job=world.job._replace(over=True)),
            fair=False,
        )
        return
    missing = [index for index in range(world.job.replicas) if world.pods[index] is None]
    for gated, which, then in _gates(world, setup):
        for index in missing[:1]:  # it goes through them in order
            pod = Pod(
                uid=_next_uid(world, index), gated=gated, placeholder=index in world.job.skips
            )
            yield Move(
                f"operator creates {index}{which}", set_pod(then, index, pod), fair=not which
            )
        if world.launcher is None:
            seen = world.seen.launcher
            launcher = Launcher(uid=seen.uid + 1 if seen else 0, gated=gated)
            pods = tuple(pod and pod._replace(before=True) for pod in world.pods)
            made = then._replace(launcher=launcher, node=Node(), pods=pods)
            yield Move(f"operator creates the launcher{which}", made, fair=not which)


def _gates(world: World, setup: Setup) -> Iterator[tuple[bool, str, World]]:
    """Whether the webhook gives a new pod the gate. It may be away, or know the job as it was."""
    gated = world.job.elastic and (world.job.suspended or world.job.told)
    yield gated, "", world
    if world.faults and "webhook-errs" in setup.faults:
        yield not gated, " and the webhook errs", world._replace(faults=world.faults - 1)


def _killed(world: World, hosts: int, setup: Setup) -> World:
    """The world after the ranks in these hosts died: Horovod's driver never uses a host again in which a rank died."""
    lost = world.ranks & hosts
    if setup.elastic_sh:
        fails = hosts & (lost | world.node.started)
        return elastic_driver.without_ranks(world, lost) if fails else world
    return (
        _ended(world._replace(node=world.node._replace(black=world.node.black | lost)), lost)
        if lost
        else world
    )


def _hosts(world: World, index: int) -> int:
    """Return the hosts of a worker in which a rank runs, or is to run."""
    return hosts_of(1 << index, world.ranks | world.node.started)


def _ended(world: World, hosts: int) -> World:
    """The world without these ranks.

    [horovod] Where none is left training ends; if the launcher's container starts again, it begins
    with no blacklist.
    """
    rest = world.ranks & ~hosts
    return world._replace(ranks=rest, node=world.node if rest else world.node._replace(black=0))


def _kubelets(world: World, setup: Setup) -> Iterator[Move]:
    for index, pod in enumerate(world.pods):
        if (
            pod and pod.lost_age != NEVER
        ):  # the garbage collector of pods, which we need not wait for
            yield Move(f"{index} is collected", gone(world, index, setup), fair=False)
        elif pod and pod.going:
            yield Move(f"{index} is gone", gone(world, index, setup))
        elif (
            pod
            and pod.phase == PENDING
            and not (pod.gated or pod.placeholder or setup.unplaced >> index & 1)
        ):
            yield Move(
                f"{index} becomes Ready",
                set_pod(world, index, pod._replace(phase=READY, ready_age=0)),
            )


def gone(world: World, index: int, setup: Setup) -> World:
    """The world without that pod."""
    left, pod = world.config.left[index], world.pods[index]
    drained = world.drained
    if left and pod and left.uid == pod.uid:
        drained = drained & ~(1 << index) | views.has_drained(world, index, setup=setup) << index
    lost = _killed(world, _hosts(world, index), setup)
    probes = (*world.probes[:index], None, *world.probes[index + 1 :])
    watch = (*world.watch[:index], None, *world.watch[index + 1 :])
    orphans = lost.orphans & ~hosts_of(1 << index, lost.orphans)
    return set_pod(
        lost._replace(drained=drained, probes=probes, watch=watch, orphans=orphans), index, None
    )


def _launchers_kubelet(world: World, setup: Setup) -> Iterator[Move]:
    launcher, node = world.launcher, world.node
    if world.orphans:
        yield Move("the launcher that was deleted ends", world._replace(orphans=0))
    if launcher is None:
        return
    if launcher.going:
        yield Move(
            "launcher is gone", world._replace(launcher=None, node=Node(), ranks=0, looked=None)
        )
    elif launcher.gated:
        return
    elif launcher.phase == WAITING:
        reads = node._replace(
            unseen=world.config.hostfile,
            mounted=world.config.hosts,
            mounted_list=world.config.number,
            maps=world.config.maps,
        )
        begun = launcher._replace(phase=DELIVERING, delivering_age=0)
        yield Move("launcher waits for its hostfile", world._replace(launcher=begun, node=reads))
    elif launcher.phase == DELIVERING:
        yield from _delivery(world, launcher)
    is_old = (node.mounted, node.mounted_list) != (world.config.hosts, world.config.number)
    if launcher.phase in (DELIVERING, STARTED) and (node.owes == SYNC or is_old):
        owes = NOTHING if launcher.phase == DELIVERING or node.owes == NOTHING else READING
        if setup.elastic_sh:
            owes = NOTHING  # it says when it has read the list
        synced = node._replace(
            mounted=world.config.hosts,
            mounted_list=world.config.number,
            owes=owes,
            maps=world.config.maps,
        )
        yield Move("launcher's file is synced", world._replace(node=synced))


def _delivery(world: World, launcher: Launcher) -> Iterator[Move]:
    running = mask([index for index, pod in enumerate(world.pods) if pod and pod.phase == READY])
    unseen = world.node.unseen & ~running
    if unseen != world.node.unseen:
        yield Move(
            "kubectl-delivery sees workers", world._replace(node=world.node._replace(unseen=unseen))
        )
    elif unseen == 0 and not world.node.young:
        yield Move("launcher starts", world._replace(launcher=launcher._replace(phase=STARTED)))


def _driver(world: World) -> Iterator[Move]:
    launcher, node = world.launcher, world.node
    if launcher is None or launcher.phase != STARTED or launcher.going:
        return  # it ends on SIGTERM, and its ranks with it
    if node.owes == READING or node.known != node.mounted:
        read = node._replace(
            known=node.mounted, owes=NOTHING if node.owes == READING else node.owes
        )
        yield Move("driver reads its list", world._replace(node=read))
    for host in members(node.known & ~world.ranks & ~node.black):
        index, number = numbers(host)
        pod = world.pods[index]
        if pod and (pod.works or pod.gentle) and (number == 0 or node.maps):
            yield Move(
                f"rank starts in {index}.r{number}", world._replace(ranks=world.ranks | 1 << host)
            )
    for host in members(world.ranks & ~node.known):
        yield Move("rank ends in {}.r{}".format(*numbers(host)), _ended(world, 1 << host))


def _user(world: World, setup: Setup) -> Iterator[Move]:
    if world.edits and not world.job.over:
        edited = world._replace(edits=world.edits - 1)
        for size in range(2 if world.job.parked else 1, setup.size + 1):
            if size != world.job.replicas:
                job = world.job._replace(replicas=size)
                yield Move(f"user asks for {size}", edited._replace(job=job), fair=False)
    if world.suspensions and not world.job.over:
        job = world.job._replace(suspended=not world.job.suspended)
        turned = world._replace(job=job, suspensions=world.suspensions - 1)
        yield Move("user resumes" if world.job.suspended else "user suspends", turned, fair=False)


def _parks(world: World) -> Iterator[Move]:
    """Whether the first worker is parked; the webhook refuses that of a job that would have no other."""
    if world.parks and world.job.replicas > 1 and not world.job.over:
        job = world.job._replace(parked=not world.job.parked)
        turned = world._replace(job=job, parks=world.parks - 1)
        yield Move("user has 0 back" if world.job.parked else "user parks 0", turned, fair=False)


def _faults(world: World, setup: Setup) -> Iterator[Move]:
    if world.faults == 0 or world.job.over:
        return
    for name, broken in _broken(world, setup):
        if name.split(" ")[0] in setup.faults:
            yield Move(name, broken._replace(faults=world.faults - 1), fair=False)


def _broken(world: World, setup: Setup) -> Iterator[tuple[str, World]]:
    for host in members(world.ranks):
        yield "rank-dies {}.r{}".format(*numbers(host)), _killed(world, 1 << host, setup)
    for index, pod in enumerate(world.pods):
        lost = _killed(world, _hosts(world, index), setup)
        if pod and pod.works:
            yield f"fails {index}", set_pod(lost, index, pod._replace(phase=FAILED))
            yield f"node-goes {index}", set_pod(world, index, pod._replace(doomed=True))
        if pod and pod.lost_age == NEVER:
            yield f"node-lost {index}", set_pod(lost, index, pod._replace(lost_age=0, gentle=0))
        if pod and not pod.going:
            yield f"evicted {index}", set_pod(lost, index, pod._replace(going=True))
        if pod and pod.works:
            yield (
                f"deleted-gently {index}",
                set_pod(world, index, pod._replace(going=True, gentle=LONGEST_DRAIN)),
            )
    if world.launcher and not world.launcher.going:
        yield "launcher-deleted", world._replace(launcher=world.launcher._replace(going=True))
        if world.launcher.phase == STARTED:
            done = world.launcher._replace(phase=FINISHED)
            yield "succeeds", world._replace(launcher=done, ranks=0)
    if world.node.owes == SYNC:
        yield "touch-lost", world._replace(node=world.node._replace(owes=NOTHING))
    yield from elastic_driver.faults(world) if setup.elastic_sh else ()
    yield "config-deleted", _without_config(world)
    yield "elastic-flips", world._replace(job=world.job._replace(elastic=not world.job.elastic))


def _without_config(world: World) -> World:
    # The operator recreates it, for the present size; the webhook adds an empty script.
    nothing = (None,) * len(world.pods)
    hostfile = (1 << world.job.replicas) - 1
    config = Config(
        hosts=0,
        hostfile=hostfile,
        left=nothing,
        replaced=nothing,
        moved=nothing,
        names=nothing,
        renamed=nothing,
    )
    launcher = world.launcher._replace(shown_age=NEVER, older=False) if world.launcher else None
    # Nobody knows any more which names are blacklisted; ranks finds out, after longer than is
    # walked here.
    node = world.node._replace(black=0)
    return world._replace(
        config=config, launcher=launcher, probes=nothing, watch=nothing, drained=0, node=node
    )
