"""Put a plan of `decide` into words: what the controller does next, or why it does nothing."""

from mpijob_elastic import names
from mpijob_elastic.decide import actions
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.model import phrases


def words(state: JobState, plan: actions.Plan) -> list[str]:
    """Return a line for each write and each look that is due; without a write a line that says why."""
    writes = [line for action in plan.actions for line in action.says().splitlines()]
    is_draining = any(isinstance(look, actions.ProbeWorkers) and not look.published for look in plan.looks)
    nothing = [] if writes or is_draining else [f"nothing: {_why_nothing(state, plan)}"]
    return [*nothing, *writes, *(look.says() for look in plan.looks)]


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
