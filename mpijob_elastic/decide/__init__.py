"""The whole policy: from one view of a job and the time to the writes and looks that are due.

The policy does no IO, reads no clock and writes no log. `decide` is called again after every write
and every change, and gives the next safe step from the view alone, so a crash between any two
writes leaves a state that the next call completes. An empty plan means that all is well. `derive`
finds the state of each worker once; the steps below read that state.

The complexity comes from three sides that do not wait for one another:
- Horovod's driver, which reads the host list once a second and blacklists a host whose rank dies
  (see host_list);
- the operator, which creates missing pods and never deletes or updates a pod (host_list, drain,
  launcher_start);
- the user, who changes the size at any time, and may change it back.
"""

from collections.abc import Iterable
from dataclasses import replace

from mpijob_elastic import names
from mpijob_elastic.decide import (
    config_map,
    drain,
    frozen_execs,
    handover,
    host_list,
    launcher_start,
    lost_ranks,
    moves,
    notices,
    overdue,
    pace,
    stop,
)
from mpijob_elastic.decide.actions import (
    Action,
    Delete,
    DeleteWorkers,
    Look,
    Plan,
    ProbeWorkers,
    TellUser,
    WriteConfig,
    WriteSelector,
)
from mpijob_elastic.decide.derive import derive
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.model.job import Config, JobView, Role
from mpijob_elastic.model.phrases import listed

__all__ = ["decide", "derive", "in_words", "plan"]

# The answer of a step: the write or the look that is due, and when to look at the job again.
Due = tuple[Action | Look | None, float | None]


def decide(view: JobView, *, now: float) -> Plan:
    """Return the plan for this job at time `now` (seconds since the epoch)."""
    return plan(derive(view, now=now))


def plan(state: JobState) -> Plan:
    """Return the plan for a job in this state."""
    view = state.view
    is_over = view.facts.deleting or view.facts.finished
    # A pod that cannot be read may run: its worker is not lost, and its quota is not free.
    is_unseen = view.unread and view.unseen
    if not state.foreign and (is_unseen or not (view.facts.size_known or is_over)):
        return _left_alone(state, is_over=is_over)
    found = _job(state)
    own: list[Action | None] = []
    if view.gated and (freed := list(stop.free(state))):
        # The gates come off last, because the other writes were decided for pods that cannot start.
        # A job that is resumed starts as a whole again, so `prepare` is asked again, too.
        own += [*(one.prepare(state) for one in state.wishes.capabilities), *freed]
    own += [action for one in state.wishes.capabilities for action in one.due(state)]
    new = [action for action in own if action and action not in found.actions]
    if new and view.deleted:
        new, again_at = _paced(state, new)
        found = replace(found, wake_at=_first([found.wake_at, again_at]))
    if state.wishes.until is not None and not view.facts.deleting:
        found = replace(found, wake_at=_first([found.wake_at, state.wishes.until]))
    return _marked(state, replace(found, actions=(*found.actions, *new)) if new else found)


def _left_alone(state: JobState, *, is_over: bool) -> Plan:
    """Return the plan for a job of which not all is known: its notices, and what others wait for.

    Quota of pods that are known to run no more is given back all the same.
    """
    told, wake = (None, None) if is_over else notices.tell(state)
    own = (action for one in state.wishes.capabilities for action in one.due(state))
    freeing = [action for action in own if action.frees]
    untold = [action for action, _ in _overdue(state)]
    due, again_at = _paced(state, [*untold, *freeing])
    actions = (*([told] if told else ()), *due)
    return Plan(actions=actions, wake_at=_first([wake, overdue.wake_at(state), again_at]))


def _paced(state: JobState, actions: list[Action]) -> tuple[list[Action], float | None]:
    """Return what is due now of these writes, and when to look again for the rest."""
    found = [pace.paced(state, action, None) for action in actions]
    return [what for what, _ in found if isinstance(what, Action)], _first(at for _, at in found)


def _overdue(state: JobState) -> list[tuple[Action, None]]:
    """Return the deletions of what must go, of a job whose list cannot be written."""
    if not state.overdue:
        return []
    launcher = stop.hidden(state) or stop.stop(state)[0]
    gone = [one for one in drain.leave(state).removals if overdue.goes(state, one.worker.name)]
    workers = DeleteWorkers(removals=tuple(gone)) if gone else None
    return [(action, None) for action in (launcher, workers) if action]


def _marked(state: JobState, found: Plan) -> Plan:
    """Return the plan with the marks of capabilities on the MPIJob, in the write of its notices."""
    view = state.view
    for action in found.actions:
        if isinstance(action, WriteConfig | Delete) and type(action) not in view.refused:
            # The marks follow once the list has changed; a job that is deleted gets none.
            return found
    marks = {key: text for one in state.wishes.capabilities for key, text in one.marks(state)}
    told = next((action for action in found.actions if isinstance(action, TellUser)), None)
    # The farewell is the last write to a job that is another operator's.
    if not marks or (told is None and (state.foreign or view.foreign)):
        return found
    if told is None:
        alone = TellUser(ref=view.ref, text=view.facts.notices, marks=marks, only_marks=True)
        return replace(found, actions=(*found.actions, alone))
    marked = replace(told, marks=marks)
    return replace(
        found, actions=tuple(marked if action is told else action for action in found.actions)
    )


def _job(state: JobState) -> Plan:
    view = state.view
    if view.facts.deleting:
        return Plan()
    if state.foreign:
        return handover.farewell(state)
    if view.is_over(stops=state.wishes.stop != ""):
        # The operator says what the launcher's end means, mostly within a moment.
        return _finish(state)
    # A job of another operator is ours again once it has our list (handover.take_back).
    is_ours = not view.foreign
    ended = launcher_start.end(state) if state.wishes.end and is_ours else None
    if ended or view.config is None or view.role is None or not (view.workers or view.launcher):
        # The operator creates these objects first. Pods that another operator made are not seen.
        if not is_ours:
            return _plan(state, [])
        refused, wake = (None, None) if view.handed_over else notices.refused(state)
        told = notices.tell(state)[0] if refused or view.unread else None
        due: list[Due] = [*_prepared(state), (ended or frozen_execs.end(state), None), (told, wake)]
        return _plan(state, [*due, *_overdue(state), (None, overdue.wake_at(state))])
    return _steps(state, view.config, view.role)


def _prepared(state: JobState) -> list[Due]:
    return [(one.prepare(state), None) for one in state.wishes.capabilities]


def _asked(
    answers: Iterable[tuple[Action | None, float | None]],
) -> tuple[Action | None, float | None]:
    """Return the first write that a capability asks for, and when to look again."""
    answers = list(answers)
    return next((write for write, _ in answers if write), None), _first(at for _, at in answers)


def _steps(state: JobState, config: Config, role: Role) -> Plan:
    view = state.view
    change, wake = config_map.write(state, config)
    if (
        view.facts.notices
        and view.handed_over
        and (tried := handover.take_back(state, config, change, wake_at=wake))
    ):
        return tried
    due: list[Due] = [(host_list.grow_role(view, role), None)]
    if state.mends_at > state.now:  # no step that follows holds for a list that is not ours
        due += [notices.tell(state), (None, state.mends_at), (None, overdue.wake_at(state))]
        return _plan(state, [*due, *_overdue(state)])
    due += [*_prepared(state), (change, wake)]
    due.append((None, moves.wake_at(state)))
    if state.wishes.stop or state.wishes.wanted_back:
        due.append((None, overdue.wake_at(state)))
    if state.resume_at > state.now and any(map(lost_ranks.is_node_lost, state.workers)):
        due.append((None, state.resume_at))
    if change and not change.reminds and WriteConfig not in view.refused:
        # Every step below relies on the list that is published now. This is the usual change, so
        # nothing else is looked at.
        untold = _overdue(state) if state.overdue else []
        return _plan(state, [*due, *untold])
    due.append(config_map.refresh(state, config))
    if not (view.driver_running or state.wishes.stop):
        due.append(launcher_start.recreate(state, config))
    if state.leaving:
        gone = drain.leave(state)
        due.append((DeleteWorkers(removals=gone.removals) if gone.removals else None, gone.wake_at))
        due += [(released, None) for released in gone.released]
        due.append(
            (ProbeWorkers(workers=gone.evicted, drained=True) if gone.evicted else None, None)
        )
        due.append((ProbeWorkers(workers=gone.probes) if gone.probes else None, None))
    if view.launcher and view.launcher.held.frozen:
        due.append((frozen_execs.end(state), None))
    due.append(notices.tell(state))
    # After the notices, because by the notice the webhook holds the next launcher back.
    due.append(stop.stop(state) if state.wishes.stop else (None, None))
    due.append((_restored_selector(view), None))
    if state.wishes.capabilities and not state.wishes.stop:
        due.append(_asked(one.resize(state) for one in state.wishes.capabilities))
    return _plan(state, due)


def _restored_selector(view: JobView) -> WriteSelector | None:
    """Return the write of the workers' selector into the job's status, or None.

    The subresource scale reads the selector. [operator] writes the status by its own type, which
    drops the field. The webhook puts the field back in the same write; this write is for the time
    when the webhook is away. Left alone are jobs that have no conditions yet (see `notices.tell`)
    and jobs whose size cannot change. If the MPIJob definition would drop the field again, no write
    is due, because each write would bring about the next.
    """
    if not view.selector_due or not view.facts.reported or not view.elastic:
        return None
    return WriteSelector(ref=view.ref, selector=names.worker_selector(view.name))


def _finish(state: JobState) -> Plan:
    gone = drain.leave(state)
    told = notices.tell_of_end(state)
    removes = () if state.wishes.keeps else state.wishes.capabilities
    expired, wake = _asked(one.remove(state) for one in removes)
    # The deletion waits for the notice, which changes the version at which the job is deleted. A
    # job that is deleted takes its workers along.
    if expired and (told is None or TellUser in state.view.refused):
        return _plan(state, [(expired, wake), (None, gone.wake_at)])
    removals = DeleteWorkers(removals=gone.removals) if gone.removals else None
    return _plan(state, [(removals, gone.wake_at), (told, wake)])


def _plan(state: JobState, asked: list[Due]) -> Plan:
    due = [pace.paced(state, what, at) for what, at in asked] if state.view.deleted else asked
    actions = tuple(what for what, _ in due if isinstance(what, Action))
    seldom: list[Due] = []
    # These looks change nothing, so they wait until no write is due.
    if not actions and not state.view.ended:
        seldom = [lost_ranks.probe(state), frozen_execs.look(state)]
    return Plan(
        actions=actions,
        looks=tuple(what for what, _ in (*due, *seldom) if isinstance(what, Look)),
        wake_at=_first(at for _, at in due),
        look_at=_first(at for _, at in seldom),
    )


def _first(times: Iterable[float | None]) -> float | None:
    return min((at for at in times if at is not None), default=None)


def in_words(state: JobState, plan: Plan) -> list[str]:
    """Return a plan in words, with a line for each write and each look.

    Without a write and a look into leaving workers, the first line says why nothing is due.
    """
    writes = [line for action in plan.actions for line in action.says().splitlines()]
    looks = [look.says() for look in plan.looks]
    if writes or any(isinstance(look, ProbeWorkers) and not look.published for look in plan.looks):
        return [*writes, *looks]
    view, suspended_by = state.view, state.wishes.stop
    unlisted = [name for name in view.wanted_names if name not in view.host_of]
    reasons = {
        state.foreign: bool(state.foreign),
        "another operator manages the job": view.handed_over,
        "the job is being deleted": view.facts.deleting,
        "the job has ended, and will be deleted (ttlSecondsAfterFinished)": view.facts.finished
        and plan.wake_at is not None,
        "the job has ended": view.facts.finished,
        f"the driver of {names.launcher(view.name)} has ended, and other containers of it still "
        "run": view.lingers,
        f"{names.launcher(view.name)} has ended, and the operator has not said that the job "
        "has": view.ended,
        "the size is not known: Worker.replicas is missing": not view.facts.size_known,
        "the operator has not created the job's ConfigMap and Role yet": view.config is None
        or view.role is None,
        f"the operator has not created {listed(view.missing)}": bool(view.missing)
        and not suspended_by,
        "a change has to wait": plan.wake_at is not None,
        **{words: True for one in state.wishes.capabilities if (words := one.waits_for(state))},
        f"the job is suspended by {suspended_by}": bool(suspended_by),
        f"{names.launcher(view.name)} has not started": not view.driver_running,
        f"{names.KEY_DISCOVER_HOSTS} lacks {listed(unlisted)}": bool(unlisted),
    }
    why = next((reason for reason, holds in reasons.items() if holds), "the job is as desired")
    return [f"nothing: {why}", *looks]
