"""The host list: which workers discover_hosts.sh names next, when, and under which names.

Safety rules 1 and 4, and the needs of Horovod's driver:
- A list never becomes empty once it has named a host ("No hosts from previous set remaining" ends
  the training).
- The driver reads the list once a second (DISCOVER_HOSTS_FREQUENCY_SECS) and forms its ring again
  after a change. A removal and an addition that reach the same ring forming deadlock it: old ranks
  skip the synchronisation that new ranks wait for (horovod#3494). So removals and additions are
  separate changes, and no change follows another faster than the driver can follow, unless a host
  is gone anyway.
- Several workers that come up together are one change.
- No worker is added while the other ranks get over a loss (see lost_ranks).

A job may be allowed certain sizes only (JobFacts.sizes). Then newcomers join when the next allowed
size is complete; after a loss the other workers go on until the lost workers are replaced. The last
host leaves only once another host is listed, so a worker that is to join under another name counts
as complete. If all listed hosts leave, newcomers join beside them up to an allowed size. While a
node is about to go no newcomer waits for others, because newcomers carry the training's state on.

Host names: a worker is published under its pod's name, or under that name with a number. Horovod
never again uses a host name under which a rank died ([horovod] HostManager.blacklist), and a
recreated pod has its predecessor's name. So another pod gets the same host name only if exec has
shown that the earlier pod had drained; in doubt it gets the next number, which costs nothing.
kubexec.sh takes the number off again. A driver that has yet to start has seen no rank die: until
then, and in jobs that are not elastic, names stay.

Role: exec on every worker that the job has or may get. The Role grows before a worker is published,
and never shrinks, because the names belong to the job whatever its size. [operator] writes the Role
once, for the first size. A write has to pass the API server's check for escalation, so one write
allows all sizes that the job may have.

elastic.sh ends all ranks at each change, and starts them again from their checkpoint. There a list
may become empty, a change takes along whatever is due, names stay, and nobody waits but for workers
that are to join.

All times are seconds.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import msgspec

from mpijob_elastic import names
from mpijob_elastic.decide import drain
from mpijob_elastic.decide.actions import WriteRole, normal
from mpijob_elastic.decide.state import (
    SETTLE,
    Goal,
    JobState,
    Moment,
    WorkerState,
    honest,
    in_order,
    is_there,
)
from mpijob_elastic.decide.step import first_after
from mpijob_elastic.decide.wishes import LeaveKind
from mpijob_elastic.model.bounds import MOST_WORKERS
from mpijob_elastic.model.job import JobView, Role
from mpijob_elastic.model.memory import Host
from mpijob_elastic.model.phrases import listed
from mpijob_elastic.model.pod import Worker

# Seconds that the first Ready worker of a scale-out waits for the others while nothing trains.
GATHER = 2.0
# The same wait if horovodrun counts resets (--reset-limit): each addition costs a reset, and pods
# that replace lost pods come up one after the other.
GATHER_TO_SAVE_RESETS = 30.0
# Seconds for which elastic.sh keeps a listed worker that is not Ready: a late lease of its node, or
# a readiness probe that fails for a moment, is no reason to start all ranks again.
PATIENCE = 30.0
# Host names are remembered for so many workers, the lowest indices first, because an annotation has
# limits.
MOST_REMEMBERED = 2000
# A Role names workers beyond the present size up to this many workers in all: a bound far above any
# size, set by habit, must not fill every Role with names.
MOST_AHEAD = 1_000
# Read once: in a loop, reading a member of an enum takes longer than the comparison.
_MOVE = Goal.MOVE
# The fingerprint of a pod that is gone and was never seen.
_UNKNOWN = "?"


@dataclass(frozen=True, kw_only=True)
class Next:
    """The next step of the host list."""

    #: The pods to publish now.
    hosts: tuple[str, ...]
    #: The time at which to look again, if a change must wait.
    wake_at: float | None = None


def settled_at(moment: Moment) -> float:
    """Return the earliest time of the next change that is ours to time.

    0 while no driver can read the list.
    """
    view, memory = moment.view, moment.view.memory
    if not view.driver_may_run:
        return 0.0
    changes = (honest(at, now=moment.now) for at in (memory.added_at, memory.removed_at))
    # The clock may have stepped since, or these times may be of another leader's clock.
    first_seen_at = 0.0 if view.list_seen is None else moment.now - view.list_seen
    return max(moment.launcher.shown_at or 0.0, first_seen_at, *changes) + SETTLE


def following(state: JobState) -> Next:
    """Return the next step from the published pods towards those that should be published."""
    hosts = state.view.published_pods
    sized = _sized(state) if state.view.policy.sizes else ()
    target = _target(state, sized)
    staying = [pod for pod in hosts if pod in target]
    new = _newcomers(state, target.values())
    if not state.view.driver.keeps_ranks:
        return _restart(state, staying, [worker.name for worker in new], is_sized=bool(sized))
    joining = [worker.name for worker in new if worker.back_at <= state.now]
    if sized and not _carries_on(state, staying):
        joining = joining[: _room(state, sized, staying=len(staying), joining=len(joining))]
    if hosts and not staying and not state.stopped:
        staying = _last_hosts(state, joining)
        if sized:
            joining = joining[: _room_beside(state, joining=len(joining))]
    if len(staying) < len(hosts):
        return _remove(state, staying)
    if not joining:
        back_at = [worker.back_at for worker in new]
        return Next(hosts=hosts, wake_at=first_after(state.now, back_at))
    if state.reads_nothing:
        return _step(state, joining)  # the driver reads no list, so there is nothing to wait for
    ready_at = max(state.settled_at, state.resume_at, _gathered_at(state, joining))
    return _paced(state, [*hosts, *joining], at=ready_at)


def _restart(state: JobState, staying: list[str], new: list[str], *, is_sized: bool) -> Next:
    """Return the next step for a driver that ends all ranks, and starts them again.

    A change of any kind costs a start. So who is Ready joins with it, and who leaves never waits. A
    start has an allowed size, or there is none.
    """
    hosts = state.view.published_pods
    patience = [_patience_ends(state, worker) for worker in state.workers]
    wake_at = first_after(state.now, patience)
    together = [*staying, *new]
    if is_sized:
        together = together[: state.view.facts.size_at_most(len(together))]
    is_shrinking = not set(hosts) <= set(together)
    if is_shrinking or state.reads_nothing:
        return _step(state, together)
    joining = together[len(staying) :]
    if not joining:
        return Next(hosts=hosts, wake_at=wake_at)
    return _paced(state, together, at=_gathered_at(state, joining))


def _sized(state: JobState) -> tuple[str, ...]:
    """Return the workers that make up an allowed size.

    Empty if the job may have any size, or if all allowed sizes are larger than the job.
    """
    view = state.view
    # A job that stops shrinks to what its driver needs, whatever size that is.
    if not view.facts.sizes or not view.elastic or state.wishes.suspend:
        return ()
    leaves = state.wishes.leaves.values()
    ends = {leave.pod for leave in leaves if leave.kind is LeaveKind.END}
    wanted = [pod for pod in view.wanted_names if pod not in ends]
    return tuple(wanted[: view.facts.size_at_most(len(wanted))])


def _target(state: JobState, sized: tuple[str, ...]) -> Mapping[str, WorkerState]:
    """Return the workers that should be published; of an allowed size no others."""
    target = {
        worker.name: worker for worker in state.workers if _should_be_published(state, worker)
    }
    if sized:
        return {pod: target[pod] for pod in sized if pod in target}
    return target


def _should_be_published(state: JobState, worker: WorkerState) -> bool:
    is_there = worker.ready or state.now < _patience_ends(state, worker)
    if not is_there or worker.pod.index >= MOST_WORKERS:
        return False
    # Without elasticity the operator's workers stay whatever the size says, so they stay hosts too.
    if not worker.wanted and state.view.elastic:
        return False
    if worker.goal is _MOVE or worker.stopped:
        return False
    # Nobody joins a job at zero, which keeps its last hosts only until its launcher goes.
    may_join = not (worker.pod.facts.node_gone_at or state.view.facts.is_at_zero)
    if not worker.published and not may_join:
        return False
    return not is_dead(state, worker)


def _patience_ends(state: JobState, worker: WorkerState) -> float:
    """Return until when a worker that is not Ready stays listed; 0 for one that leaves at once."""
    if state.view.driver.keeps_ranks or worker.ready:
        return 0.0
    is_listed = state.view.listed_pod(worker.name) == worker.pod.fingerprint
    if not is_listed or not is_there(worker.pod):
        return 0.0
    return honest(worker.pod.unready_since, now=state.now) + PATIENCE


def is_dead(state: JobState, worker: WorkerState | None) -> bool:
    """Tell whether no rank can run in a worker under the host name that is published for it."""
    if worker is None or worker.pod.terminated or worker.pod.facts.deleting:
        return True
    if worker.rank_lost or worker.name in state.cut_off:
        return True
    return worker.published not in ("", worker.host)


def _newcomers(state: JobState, target: Iterable[WorkerState]) -> list[WorkerState]:
    """Return the workers that may join: the launcher's Role allows exec into them."""
    unlisted = [worker for worker in target if not worker.published]
    if not unlisted or state.view.role is None:
        return []
    allowed = {*state.view.role.exec_names}
    return [worker for worker in unlisted if worker.name in allowed]


def _carries_on(state: JobState, staying: Iterable[str]) -> bool:
    """Tell whether newcomers join at once, although the next allowed size is not complete.

    They do so while a node is about to go, because they carry the training's state on.
    """
    if state.reads_nothing:
        return True
    return any(state.by_name[pod].going for pod in staying)


def _room(state: JobState, sized: Collection[str], *, staying: int, joining: int) -> int:
    """Return how many of the workers that may join make up the next allowed size."""
    listed_pods = (pod for pod in state.view.published_pods if pod in sized)
    running = [state.by_name[pod] for pod in listed_pods if pod in state.by_name]
    # They join under another host name once the listed name has left.
    renamed = sum(_gets_new_name(worker) for worker in running)
    return max(0, state.view.facts.size_at_most(staying + joining + renamed) - staying)


def _gets_new_name(worker: WorkerState) -> bool:
    """Tell whether a listed worker runs, and is to join under another host name."""
    if not worker.ready:
        return False
    return worker.rank_lost or worker.published != worker.host


def _last_hosts(state: JobState, joining: Collection[str]) -> list[str]:
    """Return the hosts that stay although all are to leave.

    A worker that knows the training's state must stay until newcomers have it.
    """
    hosts = state.view.published_pods
    if joining:
        return list(hosts)
    there = (state.by_name[pod].pod for pod in hosts if pod in state.by_name)
    alive = (pod.name for pod in there if not (pod.terminated or pod.facts.deleting))
    return [next(alive, hosts[0])]


def _room_beside(state: JobState, *, joining: int) -> int:
    """Return how many workers may join beside hosts that are all to leave; at least one."""
    hosts = state.view.published_pods
    rest = sum(not is_dead(state, state.by_name.get(pod)) for pod in hosts)
    return max(1, state.view.facts.size_at_most(rest + joining) - rest)


def _remove(state: JobState, staying: list[str]) -> Next:
    hosts = state.view.published_pods
    dead = {pod for pod in {*hosts}.difference(staying) if is_dead(state, state.by_name.get(pod))}
    if dead:
        # Dead hosts leave at once and alone: whether other workers leave is better judged without
        # them, and at its own time.
        return _step(state, [pod for pod in hosts if pod not in dead])
    return _paced(state, staying, at=state.settled_at)


def _gathered_at(state: JobState, joining: Collection[str]) -> float:
    """Return the time until which these workers wait for the rest of the scale-out.

    0 if the scale-out is complete.
    """
    if sum(worker.ready for worker in state.workers if worker.wanted) >= state.view.replicas:
        return 0.0
    # A worker that is Ready by a clock far ahead of ours counts as Ready long ago: the wait for
    # that time could take hours.
    times = (honest(state.by_name[pod].pod.facts.ready_at or 0.0, now=state.now) for pod in joining)
    return min(times, default=0.0) + _gather_for(state.view)


def _gather_for(view: JobView) -> float:
    """Return the seconds of that wait."""
    usual = view.driver.gather
    if view.facts.counts_resets:
        usual = GATHER_TO_SAVE_RESETS
    if view.facts.gather is not None:
        usual = view.facts.gather
    # While training waits for its least size, additions cost nothing, and each second counts.
    is_training = len(view.host_of) >= max(1, view.facts.min_np_workers)
    if is_training:
        return usual
    return min(usual, GATHER)


def _paced(state: JobState, hosts: list[str], *, at: float) -> Next:
    if state.launcher.refresh_due:
        return Next(hosts=state.view.published_pods)  # the launcher sees the earlier change first
    if state.now < at:
        return Next(hosts=state.view.published_pods, wake_at=at)
    return _step(state, hosts)


def _step(state: JobState, hosts: list[str]) -> Next:
    return Next(hosts=in_order(hosts, job=state.view.name))


def name_of(moment: Moment, worker: Worker) -> tuple[str, int, bool]:
    """Return the host name of this worker, its number, and whether it succeeds a lost rank.

    The worker has that host name or will get it. It succeeds a lost rank if a rank may have died in
    the pod that had its host name last.
    """
    view, name = moment.view, worker.name
    last = view.memory.hosts.get(name) or _unremembered(moment, name)
    if last is None or not view.driver.spends_names:
        return name, 0, False
    is_another = view.driver_running and last.pod not in ("", worker.fingerprint)
    spent = is_another and not _drained(moment, name, last)
    if not moment.may_number:
        incarnation = names.incarnation_of(view.host_of.get(name, ""))
        return names.host(name, incarnation), incarnation, spent and view.elastic
    incarnation = last.incarnation + spent
    return names.host(name, incarnation) if incarnation else name, incarnation, spent


def remembered(
    state: JobState, published: Collection[str], *, lost: Collection[str]
) -> Mapping[str, Host]:
    """Return the host name of each pod once `published` are listed, without reusable names.

    `lost` are the pods that leave the list because no rank runs in them any more; each comes back
    under the next number.
    """
    view = state.view
    if state.stopped or not view.driver.spends_names:
        return {}  # the next launcher has seen no rank die
    if not view.elastic:
        return view.memory.hosts
    kept = {}
    doubtful = () if state.memory_known else state.by_name
    for pod in {*view.memory.hosts, *view.host_of, *published, *doubtful}:
        worker = state.by_name.get(pod)
        index = worker.pod.index if worker else names.worker_index(pod, job=view.name)
        if index is None or index >= MOST_REMEMBERED:
            continue
        if pod in published:
            host = _name_listed(state, pod)
        else:
            host = _name_after(state, pod, is_lost=pod in lost)
        if host:
            kept[pod] = host
    return kept


def _last_name(moment: Moment, pod: str) -> Host | None:
    """Return the pod that had the host name last, with the number of that name."""
    return moment.view.memory.hosts.get(pod) or _unremembered(moment, pod)


def _unremembered(moment: Moment, pod: str) -> Host | None:
    """Return the same for a pod whose host name is not remembered.

    A name that is listed belongs to the present pod. If the list is lost, any worker may have been
    a host.
    """
    host = moment.view.host_of.get(pod, "")
    if moment.memory_known and not host:
        return None
    worker = moment.view.worker(pod)
    if worker:
        return Host(pod=worker.fingerprint, incarnation=names.incarnation_of(host))
    if host:
        return Host(pod=_UNKNOWN, incarnation=names.incarnation_of(host))
    return None


def _drained(moment: Moment, pod: str, last: Host) -> bool:
    view = moment.view
    left = view.memory.left.get(pod)
    if left is None or left.pod != last.pod:
        return False
    probe, worker = view.former.get(pod), view.worker(pod)
    if worker and worker.fingerprint == left.pod:
        probe = worker.probe
    return probe is not None and drain.of(moment, pod, left, probe).drained


def _name_listed(state: JobState, pod: str) -> Host | None:
    worker = state.by_name.get(pod)
    if worker is None:
        last = _last_name(state, pod)
        return last and Host(pod=last.pod or _UNKNOWN, incarnation=last.incarnation)
    if worker.published in ("", worker.host):
        return Host(pod=worker.pod.fingerprint, incarnation=worker.incarnation)
    return _last_name(state, pod)  # this is the last host of the list, which stays as it is


def _name_after(state: JobState, pod: str, *, is_lost: bool) -> Host | None:
    last = _last_name(state, pod)
    if last is None:
        return None
    if is_lost:
        return Host(pod=last.pod, incarnation=last.incarnation + 1)
    if not state.view.driver_running:
        return None
    if not last.pod or _drained(state, pod, last):
        return Host(pod="", incarnation=last.incarnation) if last.incarnation else None
    if pod in state.cut_off:
        return msgspec.structs.replace(last, reformed=True)
    return last


def assumed_role(view: JobView) -> Role:
    """Return the Role as the controller leaves it, for somebody who may not read it."""
    bare = Role(metadata=view.facts.metadata, exec_rule=0)
    grown = grow_role(view, bare)
    return msgspec.structs.replace(bare, exec_names=grown.exec_names) if grown else bare


def grow_role(view: JobView, role: Role) -> WriteRole | None:
    """Return the write that lets the launcher reach all workers that the job may get, or None."""
    if not view.elastic:
        return None
    bound = max(view.policy.max_replicas or 0, view.facts.max_np_workers)
    # A rule without names allows exec into all pods: [operator] writes it for a job at zero.
    reach = max(1, len(view.wanted_names), min(bound, MOST_AHEAD))
    missing = {*view.wanted_names, *(worker.ref.name for worker in view.workers)}.difference(
        role.exec_names
    )
    if not missing and len(role.exec_names) >= reach:
        return None
    ahead = (names.worker(view.name, index) for index in range(reach))
    new = {*missing, *ahead}.difference(role.exec_names)
    needed = in_order({*role.exec_names, *new}, job=view.name)
    message = (
        f"Role {role.metadata.name}: allowing exec into "
        f"{listed(pod for pod in needed if pod in new)}"
    )
    return WriteRole(
        ref=role.metadata,
        exec_rule=role.exec_rule,
        exec_names=needed,
        note=normal("ExecAllowed", message),
    )
