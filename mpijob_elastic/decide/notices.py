"""What a user would ask about when nothing happens: said once, as an Event and in an annotation of the job.

The annotation holds one `Reason: message` a line, so a restart does not repeat an Event and a glance at the job tells
what it waits for.
"""

from __future__ import annotations

from collections.abc import Iterable

from mpijob_elastic import names
from mpijob_elastic.decide import (
    disruption,
    frozen_execs,
    giving_up,
    launcher_recreate,
    launcher_refresh,
    lost_ranks,
    stuck_pods,
)
from mpijob_elastic.decide.actions import Note, TellUser
from mpijob_elastic.model.job import JobView

# A wanted worker that is not Ready for so many seconds is worth a word.
PENDING_AFTER = 120.0


def tell(view: JobView, *, now: float) -> tuple[TellUser | None, float | None]:
    """The change of what is said, or None; and when something may have to be said.

    [operator] keeps the condition Created in memory until its first status write, and loses it where the job is
    written to before that, so a job without a status is left alone.
    """
    if not view.reported:
        return None, None
    notes = list(_notes(view, now=now))
    text = "\n".join(f"{note.reason}: {note.message}" for note in notes)
    times = (*_pending_from(view), *stuck_pods.late_from(view), *lost_ranks.forgiven_at(view, now=now))
    wake_at = min((at for at in times if at > now), default=None)
    if text == view.notices:
        return None, wake_at
    said = view.notices.splitlines()
    fresh = tuple(note for note in notes if f"{note.reason}: {note.message}" not in said)
    return TellUser(ref=view.ref, text=text, notes=fresh), wake_at


def _notes(view: JobView, *, now: float) -> Iterable[Note]:
    for problem in view.problems:
        yield _warn("InvalidAnnotation", f"{problem}; the default holds")
    yield from _launcher(view)
    yield from frozen_execs.notes(view, now=now)
    yield from _size(view)
    yield from disruption.notes(view)
    yield from giving_up.notes(view, now=now)
    yield from stuck_pods.notes(view, now=now)
    late = [at for at in _pending_from(view) if at <= now]
    if late:
        yield _warn("WorkersNotReady", f"{_pending(view)}; see `kubectl describe pod` of the workers")


def _launcher(view: JobView) -> Iterable[Note]:
    if not view.elastic or view.launcher is None:
        return
    pod = view.launcher.ref.name
    if not launcher_refresh.sees_hosts(view):
        kept = "" if view.policy.delete_without_discovery else " and workers are not deleted on a scale-in"
        yield _warn(
            "LauncherWithoutDiscovery",
            f"{pod} started without {names.DISCOVER_HOSTS_PATH}, before mpijob-elastic or while its webhook was away, "
            f"so the running job cannot change its size{kept}; to make it elastic delete {pod} (training starts again "
            f"from its last checkpoint), "
            f'or annotate the job {names.DELETE_UNSEEN}="true" to delete surplus workers all the same',
        )
    elif launcher_recreate.gave_up(view) and not view.launcher.mounts_discovery:
        yield _warn(
            "AdmissionMissed",
            f"{pod} was created {launcher_recreate.MOST_TRIES} times without {names.DISCOVER_HOSTS_PATH}; check that "
            f"the webhook {names.WEBHOOK} is running and that its caBundle is set",
        )


def _size(view: JobView) -> Iterable[Note]:
    surplus = [worker.name for worker in view.surplus if not worker.deleting]
    if not view.elastic and surplus:
        yield _warn(
            "NotElastic",
            f"{view.replicas} workers asked for, but {', '.join(surplus[:8])} keep running, for this job is not "
            f"elastic; run it with horovodrun --host-discovery-script {names.DISCOVER_HOSTS_PATH}, "
            f'or annotate it {names.ENABLED}="true"',
        )
    published = view.config.published if view.config else None
    if view.elastic and view.driver_running and published and published.hosts and published.slots != view.slots:
        yield _warn(
            "SlotsUnchanged",
            f"slotsPerWorker is {view.slots} now, but a running job keeps {published.slots}; "
            f"it takes effect when the launcher starts anew",
        )


def _pending_from(view: JobView) -> Iterable[float]:
    if view.elastic and view.driver_running:
        waiting = (worker for worker in view.workers if worker.index < view.replicas and not worker.ready)
        yield from (worker.created_at + PENDING_AFTER for worker in waiting if not worker.terminated)


def _pending(view: JobView) -> str:
    ready = [worker for worker in view.workers if worker.index < view.replicas and worker.ready]
    return f"{len(ready)} of {view.replicas} workers are Ready; the job goes on with them"


def _warn(reason: str, message: str) -> Note:
    # One line, for the annotation holds a note a line; a user's value may hold several.
    return Note(reason=reason, message=" ".join(message.split()), warning=True)
