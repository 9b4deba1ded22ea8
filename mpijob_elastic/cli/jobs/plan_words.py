"""Put a plan of `decide` into words: what the controller does next, or why it does nothing."""

from __future__ import annotations

from collections.abc import Iterator

from mpijob_elastic import names
from mpijob_elastic.decide.actions import (
    Action,
    DeleteLauncher,
    DeleteWorkers,
    EndExecs,
    LowerPodGroup,
    Plan,
    ProbeWorkers,
    RefreshLauncher,
    RollBack,
    TellUser,
    WriteConfig,
    WriteRole,
    WriteSelector,
)
from mpijob_elastic.model import phrases
from mpijob_elastic.model.job import JobView


def words(view: JobView, plan: Plan) -> list[str]:
    """Return a line for each step that is due; for an empty plan a line that says why."""
    lines = [line for action in plan.actions for line in _words(action)]
    lines += [_look_words(look) for look in plan.looks if isinstance(look, ProbeWorkers) and not look.published]
    # When published workers and the launcher were looked into last is known to the controller alone.
    return lines or [f"nothing: {_why_nothing(view, plan)}"]


def _words(action: Action) -> Iterator[str]:
    match action:
        case WriteRole():
            yield f"update Role {action.ref.name}: {action.note.message}"
        case WriteConfig():
            yield from _config_words(action)
        case RefreshLauncher():
            yield f"touch {action.launcher.ref.name}, so that its kubelet refreshes {names.KEY_DISCOVER_HOSTS} now"
        case EndExecs():
            pods = phrases.listed(sorted({found.pod for found in action.execs}))
            yield f"end frozen `kubectl exec` into {pods} in {action.launcher.ref.name}"
        case DeleteWorkers():
            yield from (removal.note.message for removal in action.removals)
        case DeleteLauncher():
            yield f"delete {action.launcher.ref.name}: {action.note.message}"
        case TellUser():
            yield _notice_words(action.text)
        case WriteSelector():
            yield "restore the selector of the workers in the job's status"
        case LowerPodGroup() | RollBack():
            yield action.note.message


def _look_words(look: ProbeWorkers) -> str:
    return f"check by exec whether ranks still run in {phrases.listed(pod.name for pod in look.workers)}"


def _config_words(action: WriteConfig) -> Iterator[str]:
    if action.added:
        yield f"publish {phrases.listed(action.added)} in {names.KEY_DISCOVER_HOSTS}"
    if action.removed:
        yield f"remove {phrases.listed(action.removed)} from {names.KEY_DISCOVER_HOSTS}"
    if not action.added and not action.removed:
        yield f"update {names.KEY_HOSTFILE}, {names.KEY_DISCOVER_HOSTS} or the memory in ConfigMap {action.ref.name}"


def _notice_words(text: str) -> str:
    if names.is_handed_over(text):
        return "note on the job that another operator manages it"
    return "update the notices on the job" if text else "remove the notices from the job"


def _why_nothing(view: JobView, plan: Plan) -> str:
    reasons = {
        view.foreign: bool(view.foreign),
        "another operator manages the job": view.handed_over,
        "the job is being deleted": view.deleting,
        "the job has ended": view.finished,
        "the operator has not created the job's ConfigMap and Role yet": view.config is None or view.role is None,
        "a change has to wait": plan.wake_at is not None,
    }
    return next((reason for reason, holds in reasons.items() if holds), "the job is as desired")
