"""The host list: which workers discover_hosts.sh names next, and when.

Safety rules 1 and 4, and what Horovod's driver needs. A list never becomes empty once it named a host ("No hosts from
previous set remaining" ends the training). The driver reads the list once a second (DISCOVER_HOSTS_FREQUENCY_SECS) and
re-forms its ring after a change. Removals and additions that reach one ring forming deadlock it: old ranks skip the
synchronisation that new ranks wait for (horovod#3494). So they are separate changes, none follows another faster than
the driver can, unless a host is gone anyway; several workers that come up together are one change; and nobody is added
while others get over a loss (see rank0_loss). Of a job that may have certain sizes only (JobFacts.sizes) newcomers join
when the next one is complete; after a loss the others go on until the lost are replaced. The last host leaves only once
another is listed, so a worker that is to join under another name counts as complete, and beside hosts that all leave so
many join as make an allowed size. While a node is about to go nobody waits for others: who joins carries the state on.
All times are seconds.
"""

from collections.abc import Collection
from dataclasses import dataclass

from mpijob_elastic import names
from mpijob_elastic.decide.state import SETTLE, JobState, Moment, WorkerState, honest
from mpijob_elastic.decide.wishes import How
from mpijob_elastic.model.bounds import MOST_WORKERS

# Seconds that the first Ready worker of a scale-out waits for the others, so that they join in the same ring forming.
GATHER = 2.0
# The same where horovodrun counts resets (--reset-limit): each addition costs a reset, and pods that replace lost pods
# come up one after the other.
GATHER_TO_SAVE_RESETS = 30.0


@dataclass(frozen=True, kw_only=True)
class Next:
    """The pods to publish now, and when to look again where a change must wait."""

    hosts: tuple[str, ...]
    wake_at: float | None = None


def settled_at(moment: Moment) -> float:
    """Return the earliest time of the next change that is ours to time; 0 while no driver can read the list."""
    view, memory = moment.view, moment.view.memory
    if not view.driver_may_run:
        return 0.0
    changes = (honest(at, now=moment.now) for at in (memory.added_at, memory.removed_at))
    # The clock may have stepped since, or another leader's clock have told these times.
    first_seen_at = 0.0 if view.list_seen is None else moment.now - view.list_seen
    return max(moment.launcher.shown_at or 0.0, first_seen_at, *changes) + SETTLE


def following(state: JobState) -> Next:
    """Return the next step from the published pods towards those that should be published."""
    hosts = state.view.published_pods
    target = {worker.name: worker for worker in state.workers if _should_be_published(state, worker)}
    sized = _sized(state) if state.view.facts.asked else ()
    if sized:
        target = {pod: target[pod] for pod in sized if pod in target}
    allowed = {*state.view.role.exec_names} if state.view.role else ()
    new = {pod: worker.back_at for pod, worker in target.items() if not worker.published and pod in allowed}
    joining = [pod for pod, at in new.items() if at <= state.now]
    staying = [pod for pod in hosts if pod in target]
    if sized and not (_reads_nothing(state) or any(target[pod].going for pod in staying)):
        renamed = sum(pod in sized and _is_renamed(state.by_name.get(pod)) for pod in hosts)
        complete = state.view.facts.size_at_most(len(staying) + len(joining) + renamed)
        joining = joining[: max(0, complete - len(staying))]
    if hosts and not staying and not state.stopped:
        # A worker that knows the training's state must stay until newcomers have it.
        staying = list(hosts) if joining else [_last(state)]
        if sized:
            joining = joining[: _most_joining(state, len(joining))]
    if len(staying) < len(hosts):
        return _remove(state, staying)
    if not joining:
        return Next(hosts=hosts, wake_at=min((at for at in new.values() if at > state.now), default=None))
    return _add(state, joining)


def _sized(state: JobState) -> tuple[str, ...]:
    """Return the workers that make up an allowed size; none where the job may have any size, or none is so small."""
    view, leaves = state.view, state.wishes.leaves
    # A job that stops shrinks to what its driver needs, whatever size that is.
    if not view.facts.sizes or not view.elastic or state.wishes.stop:
        return ()
    wanted = [pod for pod in view.wanted_names if pod not in leaves or leaves[pod].how is not How.END]
    return tuple(wanted[: view.facts.size_at_most(len(wanted))])


def _most_joining(state: JobState, newcomers: int) -> int:
    """Return how many of the newcomers join beside hosts that all leave after them: one at least."""
    alive = sum(not _is_dead(state, state.by_name.get(pod)) for pod in state.view.published_pods)
    return max(1, state.view.facts.size_at_most(alive + newcomers) - alive)


def _reads_nothing(state: JobState) -> bool:
    """Tell whether a driver runs without a list that it can read."""
    config = state.view.config
    return state.view.driver_running and config is not None and config.published is None


def _should_be_published(state: JobState, worker: WorkerState) -> bool:
    # Without elasticity the operator's workers stay whatever the size says, so they stay hosts too.
    belongs = (worker.wanted or not state.view.elastic) and worker.pod.index < MOST_WORKERS
    is_nowhere = not worker.published and worker.pod.facts.node_gone_at > 0.0
    return worker.ready and belongs and not (worker.stopped or worker.leaves or is_nowhere or _is_dead(state, worker))


def _is_dead(state: JobState, worker: WorkerState | None) -> bool:
    """Return True for a worker in which no rank can run under the host name that is published for it."""
    if worker is None or worker.pod.terminated or worker.pod.facts.deleting or worker.rank_lost:
        return True
    if worker.name in state.cut_off:
        return True
    return worker.published not in ("", worker.host)


def _is_renamed(worker: WorkerState | None) -> bool:
    """Tell whether a worker runs, and joins under another host name once the name that is listed has left."""
    return worker is not None and worker.ready and (worker.rank_lost or worker.published != worker.host)


def _remove(state: JobState, staying: list[str]) -> Next:
    hosts = state.view.published_pods
    dead = {pod for pod in {*hosts}.difference(staying) if _is_dead(state, state.by_name.get(pod))}
    if dead:
        # At once, and alone: who else is to leave is better judged without them, and in its own time.
        return _step(state, [pod for pod in hosts if pod not in dead])
    return _paced(state, staying, at=state.settled_at)


def _add(state: JobState, joining: list[str]) -> Next:
    if _reads_nothing(state):
        return _step(state, joining)  # so there is nothing to wait for
    ready_at = max(state.settled_at, state.resume_at, _gathered_at(state, joining))
    return _paced(state, [*state.view.published_pods, *joining], at=ready_at)


def _gathered_at(state: JobState, joining: Collection[str]) -> float:
    """Return when these workers need not wait for the rest of the scale-out any longer; 0 where none is missing."""
    if sum(worker.ready and worker.wanted for worker in state.workers) >= state.view.replicas:
        return 0.0
    # Ready by a clock far ahead of ours counts as Ready long ago: waiting for that time could take hours.
    times = (honest(state.by_name[pod].pod.facts.ready_at or 0.0, now=state.now) for pod in joining)
    # While training waits for its least size, additions cost no reset, and each second counts.
    trains = len(state.view.host_of) >= max(1, state.view.facts.min_np_workers)
    saves = state.view.facts.counts_resets and trains
    return min(times, default=0.0) + (GATHER_TO_SAVE_RESETS if saves else GATHER)


def _last(state: JobState) -> str:
    alive = {worker.name for worker in state.workers if not (worker.pod.terminated or worker.pod.facts.deleting)}
    hosts = state.view.published_pods
    return next((pod for pod in hosts if pod in alive), hosts[0])


def _paced(state: JobState, hosts: list[str], *, at: float) -> Next:
    if state.launcher.refresh_due:
        return Next(hosts=state.view.published_pods)  # the earlier change first
    return _step(state, hosts) if state.now >= at else Next(hosts=state.view.published_pods, wake_at=at)


def _step(state: JobState, hosts: list[str]) -> Next:
    return Next(hosts=tuple(sorted(hosts, key=lambda pod: names.worker_index(pod, job=state.view.name) or 0)))
