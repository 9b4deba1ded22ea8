"""The moves of elastic.sh: it reads a list, ends all ranks, acknowledges the list, and starts ranks on it.

The file with the acknowledgement is in the launcher's pod: it outlives the script, which a kubelet
starts again, and not the pod.
"""

from collections.abc import Iterator

from tests.modelcheck.world import NEVER, NOTHING, STARTED, Node, World, members


def moves(world: World) -> Iterator[tuple[str, World]]:
    """Yield what elastic.sh may do next."""
    launcher, node = world.launcher, world.node
    if launcher is None or launcher.phase != STARTED or launcher.going:
        return  # it ends on SIGTERM, and its ranks with it
    if node.former:
        yield from _former(world)
        return
    if node.stops:
        for host in members(world.ranks):
            yield f"rank ends in {host}", without_ranks(world, 1 << host)
        return
    for host in members(node.known & node.left):
        yield f"driver ends what stayed in {host}", _cleaned(world, 1 << host)
    is_new = (node.list, node.known) != (node.mounted_list, node.mounted)
    if is_new:
        yield from _read(world)
    if node.started:
        yield from _running(world)
    elif not is_new:  # it reads the list before each start
        yield from _between(world)


def _running(world: World) -> Iterator[tuple[str, World]]:
    """Yield what comes while ranks run."""
    node = world.node
    if node.started == node.known & ~node.left and node.ack_list != node.list:
        yield "driver acknowledges", _acknowledged(world, node.started)
    for host in members(node.started & ~world.ranks):
        pod = world.pods[host]
        if pod and (pod.works or pod.gentle):
            yield f"rank starts in {host}", world._replace(ranks=world.ranks | 1 << host)


def _former(world: World) -> Iterator[tuple[str, World]]:
    """Yield the end of what a driver before this one has left."""
    node = world.node
    ended = node._replace(former=0, left=node.left & ~node.former)
    yield (
        "driver ends what was before",
        world._replace(node=ended, orphans=world.orphans & ~node.former),
    )
    if node.former & node.left:
        rest = world.orphans & (node.left | ~node.former)
        kept = node._replace(former=0)
        yield "driver reaches some", world._replace(node=kept, orphans=rest)


def _cleaned(world: World, host: int) -> World:
    """The world where a host can be used again, which is a change of the hosts."""
    node = world.node._replace(left=world.node.left & ~host)
    then = world._replace(node=node, orphans=world.orphans & ~host)
    return stopping(then) if node.started else then


def _read(world: World) -> Iterator[tuple[str, World]]:
    """Yield the reading of the list that is mounted; in what is new there, earlier ranks are ended."""
    node = world.node
    new = node.mounted & ~node.known
    read = node._replace(
        list=node.mounted_list, known=node.mounted, owes=NOTHING, left=node.left & ~new
    )
    then = world._replace(node=read, orphans=world.orphans & ~new)
    if node.started == read.known & ~read.left:
        yield "driver reads the same hosts", then
    if node.started:
        yield "driver reads another list", stopping(then)
    elif node.started != read.known & ~read.left:
        yield "driver reads its list", then


def _between(world: World) -> Iterator[tuple[str, World]]:
    """Yield what comes once all ranks have ended."""
    node = world.node
    usable = node.known & ~node.left
    if any(world.pods[host] is None for host in members(usable)):
        # Nothing runs where there is no pod, so the start fails, and comes again.
        if (node.ack_list, node.ack_busy) != (node.list, node.left):
            yield "driver fails to start", _acknowledged(world, 0)
    elif usable:
        started = world._replace(node=node._replace(started=usable))
        yield "driver starts on its list", _acknowledged(started, usable)
    elif (node.ack_list, node.ack_busy) != (node.list, node.left):
        yield "driver waits for hosts", _acknowledged(world, 0)


def _acknowledged(world: World, hosts: int) -> World:
    node = world.node
    return world._replace(node=node._replace(ack_list=node.list, ack_busy=hosts | node.left))


def stopping(world: World) -> World:
    """The world where the driver ends its ranks."""
    if world.ranks:
        return world._replace(node=world.node._replace(stops=True))
    return world._replace(node=world.node._replace(stops=False, started=0))


def without_ranks(world: World, hosts: int) -> World:
    """The world where these ranks have ended; then mpirun ends the others."""
    return stopping(world._replace(ranks=world.ranks & ~hosts))


def faults(world: World) -> Iterator[tuple[str, World]]:
    """Yield what may break in it."""
    launcher, node = world.launcher, world.node
    if launcher is None or launcher.phase != STARTED or launcher.going:
        return
    if node.ack_list != NEVER:
        yield "driver-restarts", _restarted(world, node)
    if node.stops:
        for host in members(world.ranks):
            left = world._replace(
                orphans=world.orphans | 1 << host, node=node._replace(left=node.left | 1 << host)
            )
            yield f"rank-stays {host}", without_ranks(left, 1 << host)


def _restarted(world: World, node: Node) -> World:
    """The world where the container ends, without a word to the ranks, and starts again."""
    file = Node(ack_list=node.ack_list, ack_busy=node.ack_busy, left=node.left)
    again = file._replace(
        young=False,
        mounted=node.mounted,
        mounted_list=node.mounted_list,
        owes=node.owes,
        former=node.ack_busy,
    )
    return world._replace(node=again, ranks=0, orphans=world.orphans | world.ranks)


def may_start_in(world: World) -> int:
    """Return the workers in which this driver may start a rank: it starts none while it ends others."""
    node = world.node
    return node.mounted | (0 if node.stops else node.started)
