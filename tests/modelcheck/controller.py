"""Our moves: each action of a plan as one step, with the preconditions under which the API server takes it.

`tests.simulated_writes` tells how a write leaves the Role and the ConfigMap; this module tells when
it is refused, and what it does to pods, launcher and node.

Only the first action of a plan is carried out before the next decision, so a crash between any two
is every other move in between. A late view stands for a late plan: the rest of an old plan is what
was decided on an old view.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from mpijob_elastic import names
from mpijob_elastic.decide import decide, derive, drain
from mpijob_elastic.decide.actions import (
    Action,
    DeleteLauncher,
    DeleteWorkers,
    Look,
    LookAtDriver,
    Plan,
    ProbeWorkers,
    RefreshLauncher,
    Removal,
    TellUser,
    Ungate,
    WriteConfig,
    WriteRole,
)
from mpijob_elastic.decide.parking import DeletePlaceholder
from mpijob_elastic.model import memory
from mpijob_elastic.model.job import JobView
from tests import simulated_writes
from tests.builders import JOB, KUBEXEC, NOW, but, role
from tests.modelcheck import surroundings, views
from tests.modelcheck.world import (
    DELIVERING,
    FREE,
    MOST,
    NEVER,
    STARTED,
    SYNC,
    TICK,
    Config,
    Job,
    Launcher,
    Left,
    Looked,
    Name,
    Node,
    Pod,
    Probe,
    Seen,
    Setup,
    Tries,
    World,
    hosts_of,
    mask,
    members,
)

T = TypeVar("T")
Decide = Callable[[JobView], Plan]
Removals = Callable[[JobView], drain.Leaving]


def really_decide(view: JobView) -> Plan:
    return decide(view, now=NOW)


def really_remove(view: JobView) -> drain.Leaving:
    return drain.leave(derive(view, now=NOW))


@dataclass(kw_only=True)
class Controller:
    """Decides with `decide`, and before a deletion once more with `removals`; both can be broken to test the check."""

    setup: Setup
    decide: Decide = really_decide
    removals: Removals = really_remove
    _due: dict[object, tuple[Action | Look, ...]] = field(default_factory=dict)

    def due(self, world: World, *, refuses: bool = False) -> tuple[Action | Look, ...]:
        """Return what is due by what is seen, but for notices, probes of published workers and repeated touches.

        No kubelet of this world shows a touched launcher an old list, so a repetition changes
        nothing here. refuses: the host list was refused before, so nothing waits for it.
        """
        seen = world.seen
        known = (world.probes, world.drained, world.watch, world.looked)
        key = (seen, world.config, world.role, known)
        due = self._due.get(key)
        if due is None:
            view = views.view(seen, world, setup=self.setup)
            plan = self.decide(but(view, refused={WriteConfig: ""}) if refuses else view)
            probes = [
                look
                for look in plan.looks
                if isinstance(look, LookAtDriver)
                or (isinstance(look, ProbeWorkers) and not look.published)
            ]
            writes = [action for action in plan.actions if not _is_idle(action, seen.job)]
            due = self._due[key] = (*writes, *probes)
        return due

    def step(self, world: World, action: Action | Look) -> World:
        """Return the world after the action; the same if the API server or the second decision refuses it."""
        match action:
            case WriteRole():
                written = simulated_writes.grant(role(*members(world.role)), action)
                world = world._replace(role=_mask(written.exec_names))
            case WriteConfig():
                world = _publish(world, action)
            case RefreshLauncher():
                world = _touch(world, action)
            case ProbeWorkers() | LookAtDriver():
                world = _look(world, action)
            case DeleteWorkers():
                world = self._delete(world, action)
            case DeleteLauncher():
                world = _delete_launcher(world, action)
            case Ungate():
                world = _ungate(world, action)
            case DeletePlaceholder():
                world = _delete_placeholder(world, action, self.setup)
            case TellUser():
                world = _tell(world)
        return world

    def _delete(self, world: World, action: DeleteWorkers) -> World:
        live = Seen(world.job, world.pods, world.launcher)
        view = views.view(live, world, setup=self.setup)
        asked = {(removal.worker.index, removal.worker.ref.uid) for removal in action.removals}
        for removal in self.removals(view).removals:
            if (removal.worker.index, removal.worker.ref.uid) in asked:
                return _deleted(world, removal, self.setup)
        return world


def _is_idle(action: Action, job: Job) -> bool:
    if isinstance(action, TellUser):
        return _says_suspended(action) == job.told
    return isinstance(action, RefreshLauncher) and action.again > 0


def _says_suspended(action: TellUser) -> bool:
    return names.is_suspended(action.text)


def _tell(world: World) -> World:
    """Turn what our annotation says of suspension round: only then is a notice due."""
    late = world.late and world.late._replace(job=world.late.job._replace(told=not world.job.told))
    return world._replace(job=world.job._replace(told=not world.job.told), late=late)


def _deleted(world: World, removal: Removal, setup: Setup) -> World:
    index, uid = removal.worker.index, views.number(removal.worker.ref.uid)
    if removal.grace == 0:
        return surroundings.gone(world, index, setup)
    return _change_pod(world, index, uid, lambda pod: pod._replace(going=True, gentle=0))


def _delete_placeholder(world: World, action: DeletePlaceholder, setup: Setup) -> World:
    index, uid = names.worker_index(action.ref.name, job=JOB) or 0, views.number(action.ref.uid)
    pod = world.pods[index]
    return (
        surroundings.gone(world, index, setup) if pod and pod.uid == uid else world
    )  # no node has it: it goes at once


def _change_pod(world: World, index: int, uid: int, change: Callable[[Pod], Pod]) -> World:
    late = world.late and world.late._replace(pods=_changed(world.late.pods, index, uid, change))
    return world._replace(pods=_changed(world.pods, index, uid, change), late=late)


def _changed(
    pods: tuple[Pod | None, ...], index: int, uid: int, change: Callable[[Pod], Pod]
) -> tuple[Pod | None, ...]:
    """The pods after a change of that one, if it is still the same."""
    pod = pods[index]
    if pod is None or pod.uid != uid:
        return pods
    return (*pods[:index], change(pod), *pods[index + 1 :])


def _mask(pods: tuple[str, ...]) -> int:
    return mask([names.worker_index(pod, job=JOB) or 0 for pod in pods])


def _publish(world: World, action: WriteConfig) -> World:
    old = world.config
    before = views.config_map_of(old)
    written = simulated_writes.publish(before, action)
    published, kept = written.published, written.memory
    assert published is not None
    assert kept is not None
    named = {pod: memory.Host(pod=mark) for pod, mark in published.pods.items()}
    if not published.number:
        named = {**kept.hosts}
    new = Config(
        number=published.number,
        hosts=mask([_position(host) for host in published.hosts]),
        hostfile=_mask(tuple(line.split(" ")[0] for line in written.facts.hostfile.splitlines())),
        left=_by_index(old, {pod: _left(pod, left) for pod, left in kept.left.items()}),
        replaced=_by_index(old, {pod: _tries(tries) for pod, tries in kept.replaced.items()}),
        moved=_by_index(old, {pod: _tries(tries) for pod, tries in kept.moved.items()}),
        names=_by_index(old, {pod: _name(pod, host) for pod, host in named.items()}),
        renamed=_by_index(old, {pod: _tries(tries) for pod, tries in kept.renamed.items()}),
        known=True,
        maps=written.facts.kubexec != KUBEXEC,
        changed_age=_age(max(kept.added_at, kept.removed_at)),
        dropped_age=_age(kept.dropped_at),
    )
    is_changed = (old.hosts, old.hostfile, old.number) != (new.hosts, new.hostfile, new.number)
    dropped = new.dropped_age == 0 and bool(old.hostfile & ~new.hostfile)

    def later(launcher: Launcher) -> Launcher:
        shown_age = NEVER if is_changed else launcher.shown_age
        return launcher._replace(shown_age=shown_age, older=launcher.older or dropped)

    # A probe counts for its occasion only: since the worker left, or got its host name.
    pods = [names.worker(JOB, index) for index in range(len(world.pods))]
    same = [
        index for index, pod in enumerate(pods) if before.occasion(pod) == written.occasion(pod)
    ]
    probes = tuple(probe if index in same else None for index, probe in enumerate(world.probes))
    watch = tuple(seen if index in same else None for index, seen in enumerate(world.watch))
    drained = world.drained & mask(same)
    return _change_launcher(
        world._replace(config=new, probes=probes, watch=watch, drained=drained), later
    )


def _position(host: str) -> int:
    index = names.worker_index(names.pod_of(host), job=JOB) or 0
    return names.incarnation_of(host) * MOST + index


def _name(pod: str, host: memory.Host) -> Name:
    if host.pod == "":
        return Name(FREE, host.incarnation)
    index = names.worker_index(pod, job=JOB) or 0
    return Name(
        views.numbers_of(index).get(host.pod, views.NOBODY), host.incarnation, host.reformed
    )


def _by_index(old: Config, found: Mapping[str, T]) -> tuple[T | None, ...]:
    return tuple(found.get(names.worker(JOB, index)) for index in range(len(old.left)))


def _left(pod: str, left: memory.Left) -> Left:
    index = names.worker_index(pod, job=JOB) or 0
    return Left(
        age=_age(left.at),
        uid=views.numbers_of(index).get(left.pod, views.NOBODY),
        known_age=_age(left.known_at),
        list=left.list,
    )


def _tries(tries: memory.Tries) -> Tries:
    return Tries(tries.count, _age(tries.at), views.number(tries.uid))


def _age(time: float) -> int:
    return NEVER if time == 0.0 else round((NOW - time) / TICK)


def _change_launcher(world: World, change: Callable[[Launcher], Launcher]) -> World:
    late = world.late
    if late and late.launcher:
        late = late._replace(launcher=change(late.launcher))
    return world._replace(launcher=change(world.launcher) if world.launcher else None, late=late)


def _touch(world: World, action: RefreshLauncher) -> World:
    if world.launcher is None or str(world.launcher.uid) != action.ref.uid:
        return world
    if world.launcher.phase in (DELIVERING, STARTED):
        world = world._replace(node=world.node._replace(owes=SYNC))
    return _change_launcher(world, lambda launcher: launcher._replace(shown_age=0))


def _delete_launcher(world: World, action: DeleteLauncher) -> World:
    seen, live = world.seen.launcher, world.launcher
    if live is None or seen is None:
        return world
    if (live.uid, live.phase, live.gated) != (seen.uid, seen.phase, seen.gated):
        return world  # another resourceVersion
    if action.suspends:
        # The job is read live before. The pod goes at once, and its processes a while later.
        at_once = world._replace(
            launcher=None,
            node=Node(),
            ranks=0,
            orphans=world.orphans | world.ranks,
            looked=None,
        )
        return (
            at_once._replace(late=world.late and world.late._replace(launcher=None))
            if world.job.stops
            else world
        )
    return _change_launcher(world, lambda launcher: launcher._replace(going=True))


def _ungate(world: World, action: Ungate) -> World:
    """Take the gate off the first pod that has it: a crash may come before the next."""
    for gated in action.pods:
        index = names.worker_index(gated.ref.name, job=JOB)
        if index is None:
            launcher = world.launcher
            if (
                launcher
                and launcher.gated
                and not launcher.going
                and str(launcher.uid) == gated.ref.uid
            ):
                world = world._replace(node=world.node._replace(young=True))
                return _change_launcher(world, lambda launcher: launcher._replace(gated=False))
            continue
        pod, uid = world.pods[index], views.number(gated.ref.uid)
        if pod and pod.gated and not pod.going and pod.uid == uid:
            return _change_pod(world, index, uid, lambda pod: pod._replace(gated=False))
    return world


def _look_at_driver(world: World) -> World:
    before, node = world.looked or Looked(), world.node
    if world.launcher is None or world.launcher.phase != STARTED or node.ack_list == NEVER:
        return world._replace(looked=before._replace(asked_age=0))
    return world._replace(looked=Looked(node.ack_list, node.ack_busy))


def _look(world: World, action: ProbeWorkers | LookAtDriver) -> World:
    if isinstance(action, LookAtDriver):
        return _look_at_driver(world)
    probes = list(world.probes)
    for worker in action.workers:
        pod = world.pods[worker.index]
        before = probes[worker.index] or Probe()
        if pod is None or pod.uid != views.number(worker.ref.uid):
            probes[worker.index] = before._replace(asked_age=0)
        elif hosts_of(1 << worker.index, world.ranks | world.orphans):
            probes[worker.index] = Probe(busy_seen=True, asked_age=0)
        else:
            probes[worker.index] = before._replace(idle_age=0, asked_age=0)
    return world._replace(probes=tuple(probes))
