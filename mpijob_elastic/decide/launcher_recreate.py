"""Launchers that can never start, or never become elastic: they are created anew.

Safety rule 7: a launcher whose main container has started is never deleted. Before that nothing is lost, and the
operator creates a new one [operator].
"""

from __future__ import annotations

from mpijob_elastic import names
from mpijob_elastic.decide import clock
from mpijob_elastic.decide.actions import DeleteLauncher, Note
from mpijob_elastic.model.job import Config, JobView, Launcher, LauncherPhase
from mpijob_elastic.model.memory import Tries

# kubectl-delivery ends within a second or two once every host of its hostfile runs; after this many it waits in vain.
STUCK_AFTER = 10.0
# How often a launcher without our mount is created anew, and the seconds between two tries.
MOST_TRIES = 3
BETWEEN_TRIES = 15.0

_NOT_STARTED = (LauncherPhase.WAITING, LauncherPhase.DELIVERING)


def tries(view: JobView, *, now: float) -> Tries | None:
    """The count of launchers found without the mount before they started, each incarnation once."""
    before = view.memory.launchers
    launcher = view.launcher
    if launcher is None or not _missed_admission(view, launcher) or (before and before.uid == launcher.ref.uid):
        return before
    return Tries(count=before.count + 1 if before else 1, at=now, uid=launcher.ref.uid)


def gave_up(view: JobView) -> bool:
    """Whether new launchers keep coming without the mount."""
    counted = view.memory.launchers
    return counted is not None and counted.count > MOST_TRIES


def recreate(view: JobView, config: Config, *, now: float) -> tuple[DeleteLauncher | None, float | None]:
    """The deletion of a launcher that cannot start, or cannot become elastic; and when to look again."""
    launcher = view.launcher
    if not view.elastic or launcher is None or launcher.deleting or launcher.phase not in _NOT_STARTED:
        return None, None
    if _missed_admission(view, launcher) and not gave_up(view):
        return _after_missed_admission(view, launcher, now=now)
    due = _stuck_at(view, config, launcher, now=now)
    if due is None or now < due:
        return None, due
    message = f"{launcher.ref.name} waits for a worker that the hostfile names no more; it is created anew"
    return DeleteLauncher(launcher=launcher, note=Note(reason="LauncherRecreated", message=message)), None


def _missed_admission(view: JobView, launcher: Launcher) -> bool:
    return view.elastic and launcher.phase in _NOT_STARTED and not launcher.mounts_discovery


def _after_missed_admission(
    view: JobView, launcher: Launcher, *, now: float
) -> tuple[DeleteLauncher | None, float | None]:
    counted = view.memory.launchers
    if counted is None or counted.uid != launcher.ref.uid:
        return None, None  # it is written down first
    due = clock.honest(counted.at, now=now) + BETWEEN_TRIES * (counted.count - 1)
    if now < due:
        return None, due
    message = (
        f"{launcher.ref.name} was created without {names.DISCOVER_HOSTS_PATH} while the webhook was away; "
        f"it has not started, so it is created anew (try {counted.count} of {MOST_TRIES})"
    )
    return DeleteLauncher(launcher=launcher, note=Note(reason="LauncherRecreated", message=message)), None


def _stuck_at(view: JobView, config: Config, launcher: Launcher, *, now: float) -> float | None:
    """When a launcher in its init container counts as stuck on an old hostfile; None while it need not be."""
    dropped = view.memory.dropped_at
    # The two times are of two clocks.
    if launcher.phase is not LauncherPhase.DELIVERING or launcher.created_at > dropped + clock.SKEW:
        return None
    hosts = [view.worker(line.split(" ")[0]) for line in config.hostfile.splitlines()]
    since = [worker.ready_at for worker in hosts if worker and worker.running and worker.ready_at is not None]
    if len(since) < len(hosts):
        return None
    return max(clock.honest(at, now=now) for at in [dropped, launcher.delivering_since or 0.0, *since]) + STUCK_AFTER
