"""Launcher start: the workers that a new launcher waits for, and when the launcher is recreated.

[operator] kubectl-delivery waits until every pod of the hostfile that it read at its start has been
seen Running, so the hostfile decides when the launcher starts. The hostfile names as many workers
as the job begins with, running workers first: min-replicas, or the workers that horovodrun needs
for its -np. Without these horovodrun gives up after HOROVOD_ELASTIC_TIMEOUT, while kubectl-delivery
waits without a limit. A command that counts the lines of the hostfile must find all workers, so the
hostfile is whole where -np cannot be read, or the launcher names that file.

A launcher that has read a longer, older hostfile can never start; a launcher without our mounts can
never become elastic. Both are deleted, and the operator creates the launcher again. Safety rule 7:
a launcher whose main container has started is deleted only to suspend its job. Before the main
container starts, a deletion loses nothing.
"""

from mpijob_elastic import names
from mpijob_elastic.decide.actions import DeleteLauncher, EndLauncher, normal
from mpijob_elastic.decide.state import RELAUNCHED, SKEW, JobState, counted, honest, in_order
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

    At zero the hostfile names a worker that nobody makes. So a launcher that has passed by the
    webhook, and has no gate, does not start without workers.
    """
    view, wanted = state.view, _free(state)
    if not wanted and view.facts.is_at_zero:
        return (names.worker(view.name, 0),)
    least = view.facts.startup_workers
    if least is None or least >= len(wanted):
        return wanted
    named = {line.split(" ")[0] for line in config.facts.hostfile.splitlines()}
    running = {worker.name for worker in state.workers if worker.ready and not worker.going}
    count = max(least, len(running.intersection(named, wanted)))
    best = sorted(wanted, key=lambda pod: (pod not in running, pod not in named))[:count]
    return in_order(best, job=view.name)


def _free(state: JobState) -> tuple[str, ...]:
    """Return the wanted workers that the launcher may wait for."""
    view, held, wanted = state.view, state.wishes.held, state.view.wanted_names
    if not held or view.launcher is None or view.launcher.facts.held_back:
        return wanted
    enough = max(1, view.facts.np_workers)
    if state.wishes.is_rationed is None and view.policy.min_replicas:
        enough = max(enough, view.policy.min_replicas)
    free = tuple(pod for pod in wanted if pod not in held)
    if len(free) < enough:
        return wanted
    return free


def tries(state: JobState) -> Tries | None:
    """Return the count of launchers that are to be made again before they start.

    They lack a file of ours, or a capability wishes it. Each pod counts once. A launcher deleted
    for a suspension is not counted.
    """
    before, launcher = state.view.memory.launchers, state.view.launcher
    if launcher is None or state.wishes.suspend:
        return before
    if not _missed_admission(state, launcher):
        return before
    return counted(before, launcher.ref.uid, now=state.now)


def recreate(state: JobState, config: Config) -> Step[DeleteLauncher]:
    """Return the deletion of a launcher that cannot start or become elastic."""
    view, launcher = state.view, state.view.launcher
    if launcher is None or not view.elastic or launcher.facts.deleting:
        return NO_STEP
    if launcher.phase not in NOT_STARTED:
        return NO_STEP
    tried = view.memory.launchers
    if _missed_admission(state, launcher) and not RELAUNCHED.is_given_up(tried):
        return _again(state, launcher, tried)
    why = "is waiting for a worker that was removed from the hostfile; recreating it"
    return _recreated(state, launcher, _stuck_at(state, config, launcher), why)


def _again(state: JobState, launcher: Launcher, tried: Tries | None) -> Step[DeleteLauncher]:
    """Return the next try to make a launcher as it should be; the count is written down first."""
    if tried is None or tried.uid != launcher.ref.uid:
        return NO_STEP
    due_at, wish = RELAUNCHED.due_at(tried, now=state.now), state.wishes.relaunch
    lacking = missing_file(state, launcher)
    why = f"was created without {lacking} while the webhook was down"
    if wish and not lacking:
        due_at, why = max(due_at, wish.after), wish.why
    count = f"(try {tried.count} of {len(RELAUNCHED.delays)})"
    return _recreated(state, launcher, due_at, f"{why}; recreating it before it starts {count}")


def _recreated(
    state: JobState, launcher: Launcher, due_at: float | None, why: str
) -> Step[DeleteLauncher]:
    """Return the deletion of the launcher at its time; None for a time that never comes."""
    if due_at is None or state.now < due_at:
        return Step(again_at=due_at)
    note = normal("LauncherRecreated", f"{launcher.ref.name} {why}")
    return Step(DeleteLauncher(launcher=launcher, note=note))


def end(state: JobState) -> EndLauncher | None:
    """Return the write that ends the launcher as a capability wishes, or None."""
    launcher, wish = state.view.launcher, state.wishes.end
    if launcher is None or wish is None:
        return None
    return EndLauncher(ref=launcher.ref, note=wish.note)


def _missed_admission(state: JobState, launcher: Launcher) -> bool:
    if not state.view.elastic or launcher.phase not in NOT_STARTED:
        return False
    return state.wishes.relaunch is not None or missing_file(state, launcher) != ""


def missing_file(state: JobState, launcher: Launcher) -> str:
    """Return the file that an elastic launcher which has yet to start was not given; "" for none.

    An edit of the command is for this launcher, too, so the MPIJob says what the launcher needs.
    """
    facts = state.view.facts
    if not facts.elastic or launcher.phase not in NOT_STARTED:
        return ""
    if not launcher.facts.mounts_discovery:
        return names.DISCOVER_HOSTS_PATH
    if facts.names_elastic and not launcher.facts.mounts_elastic:
        return names.ELASTIC_PATH
    return ""


def _stuck_at(state: JobState, config: Config, launcher: Launcher) -> float | None:
    """Return the time from which a launcher in its init container counts as stuck, or None.

    A stuck launcher waits for a worker of an old hostfile.
    """
    dropped_at = state.view.memory.dropped_at
    if launcher.phase is not LauncherPhase.DELIVERING:
        return None
    # These two times are of two clocks.
    if launcher.facts.created_at > dropped_at + SKEW:
        return None
    times = [dropped_at, launcher.facts.delivering_since or 0.0]
    for line in config.facts.hostfile.splitlines():
        worker = state.view.worker(line.split(" ")[0])
        if worker is None or not worker.running or worker.facts.ready_at is None:
            return None  # the launcher waits for this worker, and rightly
        times.append(worker.facts.ready_at)
    return max(honest(at, now=state.now) for at in times) + STUCK_AFTER
