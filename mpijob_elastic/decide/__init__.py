"""The whole policy: from one view of a job and the time to the writes and looks that are due.

No IO, no clock, no logging. `decide` is called again after every write and every change, and gives the next safe step
from what it sees alone, so a crash between any two writes leaves a state that the next call completes. An empty plan
means that all is well. `derive` finds out once how each worker stands; the steps below read that.

The complexity comes from three sides that do not wait for one another:
- Horovod's driver, which reads the host list once a second and blacklists a host whose rank dies (see host_list);
- the operator, which creates what is missing and never deletes or updates (side_objects, drain, launcher_start);
- the user, who edits the size at any time, also back.
"""

from collections.abc import Iterable
from dataclasses import replace

from mpijob_elastic.decide import (
    config_map,
    drain,
    frozen_execs,
    handover,
    hold,
    launcher_start,
    lost_ranks,
    moves,
    notices,
    side_objects,
    stop,
)
from mpijob_elastic.decide.actions import Action, Delete, DeleteWorkers, Look, Plan, ProbeWorkers, TellUser, WriteConfig
from mpijob_elastic.decide.derive import derive
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.model.job import Config, JobView, Role

__all__ = ["decide", "derive", "plan"]


def decide(view: JobView, *, now: float) -> Plan:
    """Return what to do for this job at time `now` (seconds since the epoch)."""
    return plan(derive(view, now=now))


def plan(state: JobState) -> Plan:
    """Return what to do for a job in this state."""
    view = state.view
    if not (view.facts.size_known or view.facts.deleting or view.facts.finished or state.foreign):
        told, wake = notices.tell(state)
        return Plan(actions=(told,) if told else (), wake_at=wake)
    if not state.foreign and any(what.startswith("Pod ") for what in view.unread):
        # What runs in a pod that is not seen counts: its worker is not lost, and its quota is not free.
        ends = view.facts.deleting or view.facts.finished
        told, wake = (None, None) if ends else notices.tell(state)
        return Plan(actions=(told,) if told else (), wake_at=wake)
    found = _job(state)
    own: list[Action | None] = []
    if view.gated and (freed := list(hold.free(state))):
        # Last, because what else is due was decided for pods that cannot start. Who is resumed starts as a whole again.
        own += [*_prepared(state), *freed]
    own += [action for one in state.wishes.capabilities for action in one.due(state)]
    new = [action for action in own if action and action not in found.actions]
    if state.wishes.until is not None and not view.facts.deleting:
        found = replace(found, wake_at=_first([found.wake_at, state.wishes.until]))
    return _marked(state, replace(found, actions=(*found.actions, *new)) if new else found)


def _marked(state: JobState, found: Plan) -> Plan:
    """Return the plan with what capabilities mark on the MPIJob, in the write of its notices."""
    for action in found.actions:
        if isinstance(action, WriteConfig | Delete) and type(action) not in state.view.refused:
            return found  # a change of the list is marked as it then is, and a job that goes not at all
    marks = {key: text for one in state.wishes.capabilities for key, text in one.marks(state)}
    if not marks:
        return found
    told = next((action for action in found.actions if isinstance(action, TellUser)), None)
    if told is None and (state.foreign or state.view.foreign):
        return found  # to a job that is another operator's the farewell is the last write
    if told is None:
        said = state.view.facts.notices
        alone = TellUser(ref=state.view.ref, text=said, marks=marks, only_marks=True)
        return replace(found, actions=(*found.actions, alone))
    marked = replace(told, marks=marks)
    return replace(found, actions=tuple(marked if action is told else action for action in found.actions))


def _job(state: JobState) -> Plan:
    view = state.view
    if view.facts.deleting:
        return Plan()
    if state.foreign:
        return handover.farewell(state)
    if view.ended:
        return _finish(state)  # what a launcher's end means, the operator says; mostly within a moment
    is_ours = not view.foreign  # what was another operator's is ours again with our list (handover.take_back)
    ended = launcher_start.end(state) if state.wishes.end and is_ours else None
    if ended or view.config is None or view.role is None or not (view.workers or view.launcher):
        # The operator creates them first; pods that another operator made are not seen at all.
        due: list[Action | None] = []
        refused, wake = notices.refused(state) if is_ours and not view.handed_over else (None, None)
        if is_ours:
            told = notices.tell(state)[0] if refused or view.unread else None
            due = [*_prepared(state), ended or frozen_execs.end(state), told]
        return _plan(state, due, [], [wake])
    return _steps(state, view.config, view.role)


def _prepared(state: JobState) -> list[Action | None]:
    return [one.prepare(state) for one in state.wishes.capabilities]


def _asked(answers: Iterable[tuple[Action | None, float | None]]) -> tuple[Action | None, float | None]:
    """Return the first write that a capability asks for, and when to look again."""
    writes, wakes = zip(*answers, strict=True) if (answers := list(answers)) else ((), ())
    return next(filter(None, writes), None), _first(list(wakes))


def _steps(state: JobState, config: Config, role: Role) -> Plan:
    view = state.view
    change, wake = config_map.write(state, config)
    if view.facts.notices and view.handed_over and (tried := handover.take_back(state, config, change, wake_at=wake)):
        return tried
    if state.mends_at > state.now:  # nothing that follows holds for a list that is not ours
        told, wake = notices.tell(state)
        return _plan(state, [side_objects.grow_role(view, role), told], [], [state.mends_at, wake])
    stopped, stop_at = stop.stop(state) if state.wishes.stop else (None, None)
    actions: list[Action | None] = [side_objects.grow_role(view, role), *_prepared(state), change]
    wakes: list[float | None] = [wake]
    looks: list[Look | None] = []
    if any(worker.going for worker in state.workers):
        wakes.append(moves.wake_at(state))
    if any(worker.pod.facts.node_gone_at for worker in state.workers):
        wakes.append(lost_ranks.lost_nodes_wake_at(state))
    if change is None or WriteConfig in view.refused:  # everything below relies on what is published now
        touch, wake = config_map.refresh(state, config)
        actions.append(touch)
        wakes.append(stop_at)
        wakes.append(wake)
        if not (view.driver_running or state.wishes.stop):
            recreated, wake = launcher_start.recreate(state, config)
            actions.append(recreated)
            wakes.append(wake)
        if state.leaving:
            gone = drain.leave(state)
            actions.append(DeleteWorkers(removals=gone.removals) if gone.removals else None)
            actions += gone.released
            looks.append(ProbeWorkers(workers=gone.evicted, drained=True) if gone.evicted else None)
            looks.append(ProbeWorkers(workers=gone.probes) if gone.probes else None)
            wakes.append(gone.wake_at)
        if view.launcher and view.launcher.held.frozen:
            actions.append(frozen_execs.end(state))
        told, wake = notices.tell(state)
        actions += [told, stopped]  # what is told holds the next launcher back
        wakes.append(wake)
        actions.append(side_objects.restore_selector(view))
        if state.wishes.capabilities and not state.wishes.stop:
            resized, wake = _asked(one.resize(state) for one in state.wishes.capabilities)
            actions.append(resized)
            wakes.append(wake)
    return _plan(state, actions, looks, wakes)


def _finish(state: JobState) -> Plan:
    gone = drain.leave(state)
    removals = DeleteWorkers(removals=gone.removals) if gone.removals else None
    told = notices.tell_suspicious_success(state)
    removes = () if state.wishes.keeps else state.wishes.capabilities
    expired, wake = _asked(one.remove(state) for one in removes)
    # A notice changes the version at which the job is deleted; a job that goes takes its workers along.
    waits = told and TellUser not in state.view.refused
    return _plan(state, [expired] if expired and not waits else [removals, told], [], [wake, gone.wake_at])


def _plan(state: JobState, actions: list[Action | None], looks: list[Look | None], wakes: list[float | None]) -> Plan:
    due = tuple(action for action in actions if action is not None)
    look_at: list[float | None] = []
    if not due and not state.view.ended:  # at rest: what changes nothing can wait for what does
        probe, probe_at = lost_ranks.probe(state)
        look, at = frozen_execs.look(state)
        looks += [probe, look]
        look_at = [probe_at, at]
    return Plan(
        actions=due,
        looks=tuple(look for look in looks if look is not None),
        wake_at=_first(wakes),
        look_at=_first(look_at),
    )


def _first(times: list[float | None]) -> float | None:
    return min((at for at in times if at is not None), default=None)
