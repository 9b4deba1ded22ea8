"""A plan of `decide` in words: what the controller does next, and why where that is nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mpijob_elastic import names
from mpijob_elastic.decide.actions import (
    Action,
    DeleteLauncher,
    DeleteWorkers,
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
from mpijob_elastic.model.job import JobView


def words(view: JobView, plan: Plan) -> list[str]:
    """One line for each thing that is due; for an empty plan one line that says why."""
    lines = [line for action in plan.actions for line in _words(action)]
    return lines or [f"nothing: {_why_nothing(view, plan)}"]


def _words(action: Action) -> Iterator[str]:
    match action:
        case WriteRole():
            yield f"write the launcher's Role: {action.note.message}"
        case WriteConfig():
            yield from _of_config(action)
        case RefreshLauncher():
            yield f"touch {action.launcher.ref.name}, so that it sees the new {names.KEY_DISCOVER_HOSTS} at once"
        case ProbeWorkers():
            yield f"look by exec whether ranks still run in {_list(worker.name for worker in action.workers)}"
        case DeleteWorkers():
            yield from (removal.note.message for removal in action.removals)
        case DeleteLauncher():
            yield f"delete {action.launcher.ref.name}: {action.note.message}"
        case TellUser():
            yield f"say on the job {_told(action.text)}"
        case WriteSelector():
            yield "put the selector of the workers back into the job's status"
        case LowerPodGroup() | RollBack():
            yield action.note.message


def _of_config(action: WriteConfig) -> Iterator[str]:
    if action.added:
        yield f"publish {_list(action.added)} in {names.KEY_DISCOVER_HOSTS}"
    if action.removed:
        yield f"take {_list(action.removed)} out of {names.KEY_DISCOVER_HOSTS}"
    if not action.added and not action.removed:
        yield f"write {names.KEY_DISCOVER_HOSTS}, {names.KEY_HOSTFILE} or what must be remembered beside them"


def _told(text: str) -> str:
    if names.is_handed_over(text):
        return "that another operator looks after it"
    return "what it waits for" if text else "that it waits for nothing"


def _why_nothing(view: JobView, plan: Plan) -> str:
    reasons = {
        view.foreign: bool(view.foreign),
        "another operator looks after it": view.handed_over,
        "the job is being deleted": view.deleting,
        "the job has ended": view.finished,
        "the operator has not created the job's ConfigMap and Role yet": view.config is None or view.role is None,
        "a change waits for its time": plan.wake_at is not None,
    }
    return next((reason for reason, holds in reasons.items() if holds), "all is as it should be")


def _list(pods: Iterable[str]) -> str:
    return ", ".join(pods)
