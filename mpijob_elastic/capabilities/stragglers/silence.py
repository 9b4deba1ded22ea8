"""Silence: the notice on a job that does no step for as long as its annotation says.

The time counts by our clock, from the latest thing that excuses a silence: the last step that a
look has seen, a change of the list, the start of the launcher, the last worker that became Ready. A
look after that time must have found nothing new, so that a look that fails names nobody.
"""

from collections.abc import Iterator

from mpijob_elastic import names
from mpijob_elastic.capabilities.stragglers.facts import PROGRESS_TIMEOUT, ProgressTimeout
from mpijob_elastic.decide.actions import Note, warning
from mpijob_elastic.decide.state import JobState, honest
from mpijob_elastic.model import phrases, progress
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.json_parts import timestamp
from mpijob_elastic.model.pod import Worker
from mpijob_elastic.model.progress import ProgressLine

REASON = "NoProgress"


def due_at(view: JobView, *, now: float) -> float | None:
    """Return when a job that stays silent is named (seconds since the epoch); None if never."""
    asked = view.facts.of(ProgressTimeout)
    if asked is None or view.ledger is None or not view.driver_running:
        return None
    stepped = (honest(span.stepped_at, now=now) for span in view.ledger.spans.values())
    return max([_changed_at(view, now=now), *stepped]) + asked.seconds


def notes(state: JobState) -> Iterator[Note]:
    """Yield the notice on a job that has been silent for long enough."""
    view, now = state.view, state.now
    asked = view.facts.of(ProgressTimeout)
    if asked is None or any(worker.drain for worker in state.to_delete):
        return
    due = due_at(view, now=now)
    listed = [worker for worker in view.workers if worker.name in view.host_of]
    if due is not None and any(worker.opaque for worker in listed):
        return  # nobody can look
    if due is None or not all(worker.probe.asked_at for worker in listed if worker.ready):
        yield from _said(view)
        return
    note = _note(view, asked, _last(listed))
    is_silent = due <= now and _answered_at(listed) >= due
    # A new process does not know how long it has been silent, but that it was, and that the last
    # step is the same.
    goes_on = note.line in view.facts.notices.splitlines()
    was_silent = goes_on and _changed_at(view, now=now) + asked.seconds <= now
    if is_silent or was_silent:
        yield note


def _changed_at(view: JobView, *, now: float) -> float:
    """Return the last time at which something other than a step has begun."""
    memory, launcher = view.memory, view.launcher
    times = [memory.added_at, memory.removed_at]
    if launcher is not None and launcher.facts.started_at is not None:
        times.append(launcher.facts.started_at)
    times += [worker.facts.ready_at or 0.0 for worker in view.workers]
    return max(honest(at, now=now) for at in times)


def _last(listed: list[Worker]) -> ProgressLine | None:
    lines = [worker.probe.progress for worker in listed]
    return progress.newest(line for line in lines if line is not None)


def _answered_at(listed: list[Worker]) -> float:
    """Return the time of the last look that would have shown a step; 0 without one."""
    tell = [worker.probe for worker in listed if worker.probe.progress is not None]
    probes = tell or [worker.probe for worker in listed]
    return max((probe.asked_at for probe in probes if not probe.failed), default=0.0)


def _note(view: JobView, asked: ProgressTimeout, last: ProgressLine | None) -> Note:
    longest = f"{phrases.duration(asked.seconds)} ({PROGRESS_TIMEOUT})"
    explain = f"{names.PROGRAM} explain {view.name} -n {view.namespace}"
    logs = f"kubectl -n {view.namespace} logs {names.launcher(view.name)}"
    if last is None:
        return warning(
            REASON,
            f"no worker has told of a step within {longest}, while the driver runs. If the program "
            "writes no line of progress, let it write one (docs/progress.md), or remove the "
            f"annotation; if it does, look at `{explain}` and `{logs}`",
            next_step=explain,
        )
    return warning(
        REASON,
        f"no step since step {last.step} at {timestamp(last.at)}, for more than {longest}, while "
        f"the driver runs. Nothing is done about it; look at `{explain}` and `{logs}`",
        next_step=explain,
    )


def _said(view: JobView) -> Iterator[Note]:
    """Yield the notice that the job has, while nobody knows better."""
    for line in view.facts.notices.splitlines():
        reason, _, message = line.partition(": ")
        if reason == REASON:
            explain = f"{names.PROGRAM} explain {view.name} -n {view.namespace}"
            yield warning(REASON, message, next_step=explain)
