"""Suspend: how a job stops, what must be gone before it resumes, and when held pods start.

A suspended job first shrinks to the least size with which its driver trains, and the other workers
drain as in every scale-in. If the job is resumed meanwhile, it has lost nothing. The last ranks
cannot leave: with fewer hosts than it needs, the driver lets no rank go, but waits for more
([horovod] ElasticDriver.wait_for_available_slots). So then the launcher is deleted, and after it
the workers. This is the exception to safety rule 7. elastic.sh lets all ranks go once they have
saved their state: there the list becomes empty, all workers drain, and the launcher goes last.

The operator creates the next launcher at once, and the webhook holds it back by a gate. A launcher
with this gate is the sign that the job was stopped. As long as a worker is older than this
launcher, ranks of the previous launcher may run in that worker, so the gates stay on, even if
nothing suspends the job any more.

Any gate of ours serves any reason to hold a pod. The gates of a pod come off in one write, with the
changes that a capability adds, once no reason holds the pod; so no capability can start a pod while
another reason holds. A worker that leaves keeps its gates.
"""

from collections.abc import Iterable, Iterator

from mpijob_elastic import names
from mpijob_elastic.decide import drain, overdue
from mpijob_elastic.decide.actions import DeleteLauncher, Gated, TellUser, Ungate, normal
from mpijob_elastic.decide.state import REFUSED_OFTEN, JobState, Moment, deletable_at
from mpijob_elastic.decide.step import NO_STEP, Step
from mpijob_elastic.decide.wishes import Suspend
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.phrases import listed
from mpijob_elastic.model.pod import Launcher, Worker, as_launcher

# Why a job at zero is suspended.
BY_SIZE = "its size, 0"


def of_user(view: JobView) -> Iterable[Suspend]:
    """Yield a wish while the user's annotation suspends the job."""
    if view.policy.suspend:
        yield _suspend(view, f"annotation {names.SUSPEND}")


def of_size(view: JobView) -> Iterable[Suspend]:
    """Yield a wish while the size 0 suspends the job; every other reason is told before it."""
    if view.facts.is_at_zero:
        yield _suspend(view, BY_SIZE)


def _suspend(view: JobView, why: str) -> Suspend:
    ends_by = f"{names.PROGRAM} resume {view.name} -n {view.namespace}"
    return Suspend(by="user", why=why, ends_by=ends_by)


def size_before(view: JobView) -> int:
    """Return the size of a job at zero before that: the last one that was published.

    Without one, it is the least size.
    """
    last = view.memory.scale.after if view.memory.scale else 0
    least = view.policy.min_replicas or 1
    most = view.policy.max_replicas or last
    size = view.facts.size_down(max(min(last, most), least))
    if size < least:
        return view.facts.size_at_least(least) or size
    return size


def size(view: JobView) -> int:
    """Return the wanted size of a job that stops: the least size that trains.

    A job at zero has no size of its own, so its launcher goes before the last workers, too.
    elastic.sh lets all ranks save, so all of its workers leave before it goes.
    """
    if view.facts.finished or not view.driver_running:
        return view.replicas
    if not view.driver.keeps_ranks:
        return 0
    least = max(1, view.facts.min_np_workers)
    if view.facts.is_at_zero:
        return least
    return min(view.replicas, least)


def is_stopped(view: JobView, *, stops: bool) -> bool:
    """Tell whether no worker may run.

    The job has stopped; or it had stopped, and ranks of the previous launcher may still run. The
    gate alone does not prove either, because it stays on while any other reason holds the launcher.
    """
    if view.launcher is None:
        return stops
    if stops and view.launcher.facts.held_back:
        return True
    return has_leftovers(view)


def goes(moment: Moment, pod: Worker) -> bool:
    """Tell whether a worker of a stopped job is to be deleted.

    It is not held back by a gate; and the job is suspended, or the worker is older than the
    launcher.
    """
    if pod.facts.held_back:
        return False
    return moment.wishes.suspend is not None or _is_older(moment.view, pod)


def goes_at(view: JobView, pod: Worker, *, now: float) -> float:
    """Return the time from which the pod may be deleted."""
    if _is_older(view, pod):
        return 0.0
    return deletable_at(pod.facts, now=now)


def has_leftovers(view: JobView) -> bool:
    """Tell whether ranks of a launcher that was stopped may still run in a worker."""
    launcher = view.launcher
    if launcher is None or not view.elastic:
        return False
    if not launcher.facts.held_back:
        return False
    # While the notice is refused, a launcher that waits for quota may follow a stopped launcher.
    if names.GATE_SUSPENDED not in launcher.facts.gates and TellUser not in view.refused:
        return False
    older = (pod for pod in view.workers if _is_older(view, pod))
    return any(not pod.facts.held_back for pod in older)


def stop(state: JobState) -> Step[DeleteLauncher]:
    """Return the deletion of the launcher of a job that is suspended."""
    launcher = state.view.launcher
    if launcher is None or state.wishes.suspend is None:
        return NO_STEP
    if launcher.facts.deleting or launcher.facts.held_back:
        return NO_STEP
    due_at = deletable_at(launcher.facts, now=state.now)
    if state.now < due_at:
        return Step(again_at=due_at)
    if state.view.driver_running and _has_to_wait(state):
        return NO_STEP
    return Step(_deletion(state, launcher))


def hidden(state: JobState) -> DeleteLauncher | None:
    """Return the deletion of a launcher that cannot be read, once it has to go (overdue)."""
    name = names.launcher(state.view.name)
    found = (pod for pod in overdue.hidden(state) if pod.metadata.name == name)
    pod = next(found, None)
    if pod:
        return _deletion(state, Launcher(facts=as_launcher(pod)))
    return None


def _deletion(state: JobState, launcher: Launcher) -> DeleteLauncher:
    view = state.view
    by = state.wishes.suspended_by
    message = f"{launcher.ref.name} is being deleted: {view.name} is suspended by {by}"
    note = normal("LauncherSuspended", message)
    return DeleteLauncher(launcher=launcher, note=note, suspends=True, waits=view.facts.queued)


def free(state: JobState) -> Iterator[Ungate]:
    """Yield the removal of gates that is due, in one action for all pods with the same changes."""
    view = state.view
    if view.facts.deleting or view.ended:
        return
    if state.wishes.suspend or has_leftovers(view):
        return
    together: dict[tuple[str, tuple[str, ...]], list[Gated]] = {}
    for pod in view.pods:
        if _is_free(state, pod):
            place = state.wishes.places.get(pod.ref.name)
            key = (place.words, place.adds) if place else ("", ())
            together.setdefault(key, []).append(_gated(pod))
    for (words, adds), pods in together.items():
        yield _ungate(view, pods, words, adds)


def _is_free(state: JobState, pod: Launcher | Worker) -> bool:
    """Tell whether a gate of ours is on the pod, and nothing holds it any more."""
    name = pod.ref.name
    if not pod.facts.held_back or name in state.wishes.held:
        return False
    return not pod.facts.deleting and state.by_name.get(name) not in state.to_delete


def _gated(pod: Launcher | Worker) -> Gated:
    kept = tuple(gate for gate in pod.facts.gates if gate not in names.GATES)
    return Gated(ref=pod.ref, kept=kept)


def _ungate(view: JobView, pods: list[Gated], words: str, adds: tuple[str, ...]) -> Ungate:
    freed = f"{listed(gated.ref.name for gated in pods)} may be scheduled"
    if words:
        note = normal("Admitted", f"{freed}: {words}")
    else:
        note = normal("Resumed", f"{freed}: nothing holds {view.name} back")
    return Ungate(pods=tuple(pods), adds=adds, note=note)


def _has_to_wait(state: JobState) -> bool:
    """Tell whether workers still have to drain, and can drain."""
    if state.overdue or _cannot_learn(state):
        return False
    surplus = [worker for worker in state.to_delete if not worker.wanted]
    if not state.view.driver.keeps_ranks:
        return not all(drain.is_over(state, worker) for worker in surplus)
    if not state.view.host_of:
        # While the list is empty no drain begins, so the wait for a worker that left an earlier
        # list would be in vain.
        surplus = [worker for worker in surplus if worker.drain is None]
    if len(state.view.host_of) <= 1:
        # The last host stays in the list.
        surplus = [worker for worker in surplus if not worker.published]
    return not all(worker.pod.facts.deleting for worker in surplus)


def _cannot_learn(state: JobState) -> bool:
    """Tell whether the launcher cannot learn which workers are to leave."""
    return state.launcher.refused >= REFUSED_OFTEN and state.launcher.refresh_due


def _is_older(view: JobView, pod: Worker) -> bool:
    return view.launcher is None or pod.facts.created_at <= view.launcher.facts.created_at
