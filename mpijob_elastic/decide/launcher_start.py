"""Launcher start: the workers that a new launcher waits for, and when the launcher is recreated.

[operator] kubectl-delivery waits until every pod of the hostfile that it read at its start has been
seen Running, so the hostfile decides when the launcher starts. The hostfile names as many workers
as the job begins with, running workers first: min-replicas, or the workers that horovodrun needs
for its -np. Without these horovodrun gives up after HOROVOD_ELASTIC_TIMEOUT, while kubectl-delivery
waits without a limit. A command that counts the lines of the hostfile must find all workers, so the
hostfile is whole where -np cannot be read, or the launcher names that file.

A launcher that has read a longer, older hostfile can never start; a launcher without our mount can
never become elastic. Both are deleted, and the operator creates the launcher again. Safety rule 7:
a launcher whose main container has started is deleted only to suspend its job. Before the main
container starts, a deletion loses nothing.
"""

from mpijob_elastic import names
from mpijob_elastic.decide.actions import DeleteLauncher, EndLauncher, normal
from mpijob_elastic.decide.state import RELAUNCHED, SKEW, JobState, honest, in_order
from mpijob_elastic.decide.step import NO_STEP, Step
from mpijob_elastic.model.job import Config
from mpijob_elastic.model.memory import Tries
from mpijob_elastic.model.pod import NOT_STARTED, Launcher, LauncherPhase

# kubectl-delivery ends within a second or two once every host of its hostfile runs; after so many
# seconds it waits in vain.
STUCK_AFTER = 10.0


def awaited(state: JobState, config: Config) -> tuple[str, ...]:
    """Return the names of the workers for the hostfile, in numeric order.

    A running worker that the hostfile names stays in it, so workers that come up in turn change
    nothing. A launcher that is free to start does not wait for workers that are held back, as long
    as enough others can start: some held workers start only after the launcher, whatever
    min-replicas has become meanwhile.
    """
    view, held, wanted = state.view, state.wishes.held, state.view.wanted_names
    if held and view.launcher and not view.launcher.facts.held_back:
        enough = (view.policy.min_replicas or 1) if state.wishes.is_rationed is None else 1
        free = tuple(pod for pod in wanted if pod not in held)
        wanted = free if len(free) >= max(enough, view.facts.np_workers) else wanted
    least = view.facts.startup_workers
    if least is None or least >= len(wanted):
        return wanted
    named = {line.split(" ")[0] for line in config.facts.hostfile.splitlines()}
    running = {worker.name for worker in state.workers if worker.ready and not worker.going}
    count = max(least, sum(pod in named and pod in running for pod in wanted))
    best = sorted(wanted, key=lambda pod: (pod not in running, pod not in named))[:count]
    return in_order(best, job=view.name)


def tries(state: JobState) -> Tries | None:
    """Return the count of launchers that are to be made again before they start.

    They lack the mount, or a capability wishes it. Each pod counts once. A launcher deleted for a
    suspension is not counted.
    """
    before, launcher = state.view.memory.launchers, state.view.launcher
    if (
        launcher is None
        or state.wishes.suspend
        or not _missed_admission(state, launcher)
        or (before and before.uid == launcher.ref.uid)
    ):
        return before
    return Tries(count=before.count + 1 if before else 1, at=state.now, uid=launcher.ref.uid)


def recreate(state: JobState, config: Config) -> Step[DeleteLauncher]:
    """Return the deletion of a launcher that cannot start or become elastic."""
    view, launcher = state.view, state.view.launcher
    if (
        not view.elastic
        or launcher is None
        or launcher.facts.deleting
        or launcher.phase not in NOT_STARTED
    ):
        return NO_STEP
    due: float | None
    counted, wish = view.memory.launchers, state.wishes.relaunch
    if _missed_admission(state, launcher) and not RELAUNCHED.is_given_up(counted):
        if counted is None or counted.uid != launcher.ref.uid:
            return NO_STEP  # the count is written down first
        due = RELAUNCHED.due_at(counted, now=state.now)
        why = f"was created without {names.DISCOVER_HOSTS_PATH} while the webhook was down"
        if launcher.facts.mounts_discovery and wish:
            due, why = max(due, wish.after), wish.why
        why = (
            f"{why}; recreating it before it starts "
            f"(try {counted.count} of {len(RELAUNCHED.delays)})"
        )
    else:
        due = _stuck_at(state, config, launcher)
        why = "is waiting for a worker that was removed from the hostfile; recreating it"
    if due is None or state.now < due:
        return Step(again_at=due)
    note = normal("LauncherRecreated", f"{launcher.ref.name} {why}")
    return Step(DeleteLauncher(launcher=launcher, note=note))


def end(state: JobState) -> EndLauncher | None:
    """Return the write that ends the launcher as a capability wishes, or None."""
    launcher, wish = state.view.launcher, state.wishes.end
    return EndLauncher(ref=launcher.ref, note=wish.note) if launcher and wish else None


def _missed_admission(state: JobState, launcher: Launcher) -> bool:
    if not state.view.elastic or launcher.phase not in NOT_STARTED:
        return False
    # An edit to a plain command is for this launcher, which has yet to start.
    lacks_list = state.view.facts.elastic and not launcher.facts.mounts_discovery
    return lacks_list or state.wishes.relaunch is not None


def _stuck_at(state: JobState, config: Config, launcher: Launcher) -> float | None:
    """Return the time from which a launcher in its init container counts as stuck, or None.

    A stuck launcher waits for a worker of an old hostfile.
    """
    dropped_at = state.view.memory.dropped_at
    # The two times below are of two clocks, hence SKEW.
    if (
        launcher.phase is not LauncherPhase.DELIVERING
        or launcher.facts.created_at > dropped_at + SKEW
    ):
        return None
    hosts = [state.view.worker(line.split(" ")[0]) for line in config.facts.hostfile.splitlines()]
    since = [
        worker.facts.ready_at
        for worker in hosts
        if worker and worker.running and worker.facts.ready_at is not None
    ]
    if len(since) < len(hosts):
        return None
    times = [dropped_at, launcher.facts.delivering_since or 0.0, *since]
    return max(honest(at, now=state.now) for at in times) + STUCK_AFTER
