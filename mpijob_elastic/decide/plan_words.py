"""Put a plan of `decide` into words: what the controller does next, or why it does nothing."""

from collections.abc import Iterator
from typing import Any

from mpijob_elastic import names
from mpijob_elastic.decide import actions
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.model import phrases


def words(state: JobState, plan: actions.Plan) -> list[str]:
    """Return a line for each write and each look that is due; without a write a line that says why."""
    writes = [line for action in plan.actions for line in of(action)]
    looks = [_look_words(look) for look in plan.looks]
    is_draining = any(isinstance(look, actions.ProbeWorkers) and not look.published for look in plan.looks)
    nothing = [] if writes or is_draining else [f"nothing: {_why_nothing(state, plan)}"]
    return [*nothing, *writes, *looks]


def of(action: actions.Action) -> Iterator[str]:
    """Yield what an action does, a line each."""
    match action:
        case actions.WriteConfig():
            yield from _config_words(action)
        case actions.RefreshLauncher():
            again = " again, because ranks may still run in leaving workers" if action.again else ""
            refreshes = f"so that its kubelet refreshes {names.KEY_DISCOVER_HOSTS} now"
            yield f"touch {action.launcher.ref.name}{again}, {refreshes}"
        case actions.EndExecs():
            pods = phrases.listed(sorted({found.pod for found in action.execs}))
            yield f"end frozen `kubectl exec` into {pods} in {action.launcher.ref.name}"
        case actions.DeleteWorkers():
            yield from (removal.note.message for removal in action.removals)
        case actions.TellUser():
            yield _notice_words(action.text)
        case actions.WriteSelector():
            yield "restore the selector of the workers in the job's status"
        case actions.Ungate():
            pods = phrases.listed(gated.ref.name for gated in action.pods)
            yield f"take the scheduling gate off {pods}"
        case actions.CreateWorkload():
            yield f"ask queue {action.queue} for quota with the Workload {action.name}"
        case actions.CreateUnit():
            yield f"ask KubeQueue for quota with the QueueUnit {action.name}"
        case _:
            yield _own_words(action)


_OF_WORKLOADS: dict[type, str] = {
    actions.AdoptWorkload: "make the job the owner of the Workload {}",
    actions.MarkReady: "tell Kueue that the pods of {} run",
    actions.ClearWorkload: "tell Kueue that the quota of {} is free",
    actions.FinishWorkload: "tell Kueue that {} has finished",
    actions.DeleteWorkload: "delete the Workload {}",
}
_OF_UNITS: dict[type, str] = {
    actions.DeleteUnit: "delete the QueueUnit {}",
    actions.MarkRunning: "say in the QueueUnit {} that the job runs",
}


def _own_words(action: Any) -> str:
    if words := _OF_WORKLOADS.get(type(action)):
        return words.format(action.workload.metadata.name)
    if words := _OF_UNITS.get(type(action)):
        return words.format(action.unit.metadata.name)
    return str(action.note.message)


def _look_words(look: actions.Look) -> str:
    # Only the controller knows when it last looked into published workers and the launcher.
    if isinstance(look, actions.LookIntoLauncher):
        return f"check by exec, unless just done, that {look.launcher.ref.name} holds no exec into a pod that is gone"
    pods = phrases.listed(pod.name for pod in look.workers)
    if look.drained:
        return f"tell the main process of {pods} by exec that its worker has drained"
    question = ", from time to time, that ranks" if look.published else " whether ranks still"
    return f"check by exec{question} run in {pods}"


def _config_words(action: actions.WriteConfig) -> Iterator[str]:
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


def _why_nothing(state: JobState, plan: actions.Plan) -> str:
    view, stop = state.view, state.wishes.stop
    unlisted = [name for name in view.wanted_names if name not in view.host_of]
    reasons = {
        state.foreign: bool(state.foreign),
        "another operator manages the job": view.handed_over,
        "the job is being deleted": view.facts.deleting,
        "the job has ended, and will be deleted (ttlSecondsAfterFinished)": view.facts.finished
        and plan.wake_at is not None,
        "the job has ended": view.facts.finished,
        f"{names.launcher(view.name)} has ended, and the operator has not said that the job has": view.ended,
        "the size is not known: Worker.replicas is missing": not view.facts.size_known,
        "the operator has not created the job's ConfigMap and Role yet": view.config is None or view.role is None,
        f"the operator has not created {phrases.listed(view.missing)}": bool(view.missing) and not stop,
        "a change has to wait": plan.wake_at is not None,
        **{words: True for one in state.wishes.capabilities if (words := one.waits_for(state))},
        f"the job is suspended by {stop}": bool(stop),
        f"{names.launcher(view.name)} has not started": not view.driver_running,
        f"{names.KEY_DISCOVER_HOSTS} lacks {phrases.listed(unlisted)}": bool(unlisted),
    }
    return next((reason for reason, holds in reasons.items() if holds), "the job is as desired")
