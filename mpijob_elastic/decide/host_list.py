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

All times are seconds.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import msgspec

from mpijob_elastic import names
from mpijob_elastic.decide import drain
from mpijob_elastic.decide.actions import WriteRole, normal
from mpijob_elastic.decide.state import SETTLE, JobState, Moment, WorkerState, honest, in_order
from mpijob_elastic.decide.wishes import LeaveKind
from mpijob_elastic.model.bounds import MOST_WORKERS
from mpijob_elastic.model.job import JobView, Role
from mpijob_elastic.model.memory import Host
from mpijob_elastic.model.phrases import listed
from mpijob_elastic.model.pod import Worker

# Seconds that the first Ready worker of a scale-out waits for the others, so that they join in the
# same ring forming.
GATHER = 2.0
# The same wait if horovodrun counts resets (--reset-limit): each addition costs a reset, and pods
# that replace lost pods come up one after the other.
GATHER_TO_SAVE_RESETS = 30.0
# Host names are remembered for so many workers, the lowest indices first, because an annotation has
# limits.
MOST_REMEMBERED = 2000
# A Role names workers beyond the present size up to this many workers in all: a bound far above any
# size, set by habit, must not fill every Role with names.
MOST_AHEAD = 1_000
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
    target = {
        worker.name: worker for worker in state.workers if _should_be_published(state, worker)
    }
    sized = _sized(state) if state.view.policy.sizes else ()
    if sized:
        target = {pod: target[pod] for pod in sized if pod in target}
    allowed = {*state.view.role.exec_names} if state.view.role else ()
    new = {
        pod: worker.back_at
        for pod, worker in target.items()
        if not worker.published and pod in allowed
    }
    joining = [pod for pod, at in new.items() if at <= state.now]
    staying = [pod for pod in hosts if pod in target]
    if sized and not (state.reads_nothing or any(target[pod].going for pod in staying)):
        # Workers that run, and that join under another host name once the listed name has left.
        running = [state.by_name[pod] for pod in hosts if pod in sized and pod in state.by_name]
        renamed = sum(one.ready and (one.rank_lost or one.published != one.host) for one in running)
        complete = state.view.facts.size_at_most(len(staying) + len(joining) + renamed)
        joining = joining[: max(0, complete - len(staying))]
    if hosts and not staying and not state.stopped:
        # A worker that knows the training's state must stay until newcomers have it.
        alive = {
            worker.name
            for worker in state.workers
            if not (worker.pod.terminated or worker.pod.facts.deleting)
        }
        staying = (
            list(hosts) if joining else [next((pod for pod in hosts if pod in alive), hosts[0])]
        )
        if sized:
            rest = sum(not is_dead(state, state.by_name.get(pod)) for pod in hosts)
            joining = joining[: max(1, state.view.facts.size_at_most(rest + len(joining)) - rest)]
    if len(staying) < len(hosts):
        return _remove(state, staying)
    if not joining:
        return Next(
            hosts=hosts, wake_at=min((at for at in new.values() if at > state.now), default=None)
        )
    if state.reads_nothing:
        return _step(state, joining)  # the driver reads no list, so there is nothing to wait for
    ready_at = max(state.settled_at, state.resume_at, _gathered_at(state, joining))
    return _paced(state, [*hosts, *joining], at=ready_at)


def _sized(state: JobState) -> tuple[str, ...]:
    """Return the workers that make up an allowed size.

    Empty if the job may have any size, or if all allowed sizes are larger than the job.
    """
    view, leaves = state.view, state.wishes.leaves
    # A job that stops shrinks to what its driver needs, whatever size that is.
    if not view.facts.sizes or not view.elastic or state.wishes.suspend:
        return ()
    wanted = [
        pod
        for pod in view.wanted_names
        if pod not in leaves or leaves[pod].kind is not LeaveKind.END
    ]
    return tuple(wanted[: view.facts.size_at_most(len(wanted))])


def _should_be_published(state: JobState, worker: WorkerState) -> bool:
    # Without elasticity the operator's workers stay whatever the size says, so they stay hosts too.
    belongs = (worker.wanted or not state.view.elastic) and worker.pod.index < MOST_WORKERS
    is_nowhere = not worker.published and worker.pod.facts.node_gone_at > 0.0
    return (
        worker.ready
        and belongs
        and not (worker.stopped or worker.leaves or is_nowhere or is_dead(state, worker))
    )


def is_dead(state: JobState, worker: WorkerState | None) -> bool:
    """Tell whether no rank can run in a worker under the host name that is published for it."""
    if worker is None or worker.pod.terminated or worker.pod.facts.deleting or worker.rank_lost:
        return True
    if worker.name in state.cut_off:
        return True
    return worker.published not in ("", worker.host)


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
    if sum(worker.ready and worker.wanted for worker in state.workers) >= state.view.replicas:
        return 0.0
    # A worker that is Ready by a clock far ahead of ours counts as Ready long ago: the wait for
    # that time could take hours.
    times = (honest(state.by_name[pod].pod.facts.ready_at or 0.0, now=state.now) for pod in joining)
    # While training waits for its least size, additions cost no reset, and each second counts.
    trains = len(state.view.host_of) >= max(1, state.view.facts.min_np_workers)
    saves = state.view.facts.counts_resets and trains
    return min(times, default=0.0) + (GATHER_TO_SAVE_RESETS if saves else GATHER)


def _paced(state: JobState, hosts: list[str], *, at: float) -> Next:
    if state.launcher.refresh_due:
        return Next(hosts=state.view.published_pods)  # the launcher sees the earlier change first
    return (
        _step(state, hosts)
        if state.now >= at
        else Next(hosts=state.view.published_pods, wake_at=at)
    )


def _step(state: JobState, hosts: list[str]) -> Next:
    return Next(hosts=in_order(hosts, job=state.view.name))


def name_of(moment: Moment, worker: Worker) -> tuple[int, bool]:
    """Return the number in the host name of this worker, and whether it succeeds a lost rank.

    The worker has that host name or will get it. It succeeds a lost rank if a rank may have died in
    the pod that had its host name last.
    """
    last = _last_name(moment, worker.ref.name)
    another = (
        moment.view.driver_running and last is not None and last.pod not in ("", worker.fingerprint)
    )
    spent = last is not None and another and not _drained(moment, worker.ref.name, last)
    if not moment.may_number:
        return names.incarnation_of(
            moment.view.host_of.get(worker.ref.name, "")
        ), spent and moment.view.elastic
    return (last.incarnation if last else 0) + spent, spent


def remembered(
    state: JobState, published: Collection[str], *, lost: Collection[str]
) -> Mapping[str, Host]:
    """Return the host name of each pod once `published` are listed, without reusable names.

    `lost` are the pods that leave the list because no rank runs in them any more; each comes back
    under the next number.
    """
    view = state.view
    if state.stopped:
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
        if (
            host := _name_listed(state, pod)
            if pod in published
            else _name_after(state, pod, is_lost=pod in lost)
        ):
            kept[pod] = host
    return kept


def _last_name(moment: Moment, pod: str) -> Host | None:
    """Return the pod that had the host name last, with the number of that name.

    A listed name that is not remembered belongs to the present pod. If the list is lost, any worker
    may have been a host.
    """
    view = moment.view
    known, host = view.memory.hosts.get(pod), view.host_of.get(pod, "")
    if known or (moment.memory_known and not host):
        return known
    worker = view.worker(pod)
    if worker is None and not host:
        return None
    return Host(
        pod=worker.fingerprint if worker else _UNKNOWN, incarnation=names.incarnation_of(host)
    )


def _drained(moment: Moment, pod: str, last: Host) -> bool:
    view = moment.view
    left = view.memory.left.get(pod)
    if left is None or left.pod != last.pod:
        return False
    worker = view.worker(pod)
    probe = worker.probe if worker and worker.fingerprint == left.pod else view.former.get(pod)
    return probe is not None and drain.of(moment, pod, left, probe).drained


def _name_listed(state: JobState, pod: str) -> Host | None:
    worker = state.by_name.get(pod)
    if worker is None:
        last = _last_name(state, pod)
        return last and Host(pod=last.pod or _UNKNOWN, incarnation=last.incarnation)
    if worker.published and worker.published != worker.host:
        return _last_name(state, pod)  # this is the last host of the list, which stays as it is
    return Host(pod=worker.pod.fingerprint, incarnation=worker.incarnation)


def _name_after(state: JobState, pod: str, *, is_lost: bool) -> Host | None:
    last = _last_name(state, pod)
    if last is not None and is_lost:
        return Host(pod=last.pod, incarnation=last.incarnation + 1)
    if last is None or not state.view.driver_running:
        return None
    if last.pod and not _drained(state, pod, last):
        return msgspec.structs.replace(last, reformed=True) if pod in state.cut_off else last
    return Host(pod="", incarnation=last.incarnation) if last.incarnation else None


def grow_role(view: JobView, role: Role) -> WriteRole | None:
    """Return the write that lets the launcher reach all workers that the job may get, or None."""
    if not view.elastic:
        return None
    bound = max(view.policy.max_replicas or 0, view.facts.max_np_workers)
    reach = max(len(view.wanted_names), min(bound, MOST_AHEAD))
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
