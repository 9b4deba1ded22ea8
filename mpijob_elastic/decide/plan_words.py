"""A plan in words, as `get`, `watch` and the dashboard show it."""

from collections.abc import Iterator

from mpijob_elastic import names
from mpijob_elastic.decide.actions import Look, Plan, ProbeWorkers
from mpijob_elastic.decide.shown import first_word, shown_of
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.model.phrases import listed


def in_words(state: JobState, plan: Plan) -> list[str]:
    """Return a plan in words, with a line for each write and each look.

    Without a write and a look into leaving workers, the first line says why nothing is due.
    """
    writes = [line for action in plan.actions for line in action.says().splitlines()]
    looks = [look.says() for look in plan.looks]
    if writes or any(map(_is_for_a_drain, plan.looks)):
        return [*writes, *looks]
    reasons = (reason for reason, holds in _reasons(state, plan) if holds)
    why = next(reasons, "the job is as desired")
    return [f"nothing: {why}", *looks]


def _is_for_a_drain(look: Look) -> bool:
    return isinstance(look, ProbeWorkers) and not look.published


def _reasons(state: JobState, plan: Plan) -> Iterator[tuple[str, object]]:
    """Yield the reasons why nothing may be due, each with whether it holds; the first counts."""
    view, facts, suspended_by = state.view, state.view.facts, state.wishes.suspended_by
    launcher = names.launcher(view.name)
    yield state.foreign, state.foreign
    yield "another operator manages the job", view.handed_over
    yield "the job is being deleted", facts.deleting
    expires = facts.finished and plan.wake_at is not None
    yield "the job has ended, and will be deleted (ttlSecondsAfterFinished)", expires
    yield "the job has ended", facts.finished
    lingers = f"the driver of {launcher} has ended, and other containers of it still run"
    yield lingers, view.lingers
    yield f"{launcher} has ended, and the operator has not said that the job has", view.ended
    yield "the size is not known: Worker.replicas is missing", not facts.size_known
    lacks_objects = view.config is None or view.role is None
    yield "the operator has not created the job's ConfigMap and Role yet", lacks_objects
    lacks_pods = view.missing and not suspended_by
    yield f"the operator has not created {listed(view.missing)}", lacks_pods
    yield "a change has to wait", plan.wake_at is not None
    waits = first_word(one.waits_for(state) for one in shown_of(view))
    yield waits, waits
    yield f"the job is suspended by {suspended_by}", suspended_by
    yield f"{launcher} has not started", not view.driver_running
    unlisted = [name for name in view.wanted_names if name not in view.host_of]
    yield f"{names.KEY_DISCOVER_HOSTS} lacks {listed(unlisted)}", unlisted
