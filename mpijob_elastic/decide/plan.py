"""The plan for a job: its steps in their order, with a line that says why each stands there.

The order is policy. A plan holds the writes in the order in which they are made, and after a write
that changes the host list nothing follows that relies on the list before.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from mpijob_elastic import names
from mpijob_elastic.decide import (
    capability,
    config_map,
    drain,
    driver_looks,
    frozen_execs,
    handover,
    host_list,
    launcher_start,
    lost_ranks,
    moves,
    notices,
    overdue,
    pace,
    parking,
    suspend,
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
from mpijob_elastic.decide.step import NO_STEP, NOTHING_TOLD, Step, When, earliest, first, first_of
from mpijob_elastic.model.job import Config, JobView, Role

AnyStep = Step[Action | Look]


def decide(view: JobView, *, now: float) -> Plan:
    """Return the plan for this job at time `now` (seconds since the epoch)."""
    return plan(derive(view, now=now))


def plan(state: JobState) -> Plan:
    """Return the plan for a job in this state."""
    if _is_unknown(state):
        return _left_alone(state)
    found = _of_job(state)
    new = [write for write in _own_writes(state) if write not in found.actions]
    if new:
        due, again_at = _paced(state, new)
        wake_at = first([found.wake_at, again_at])
        found = replace(found, actions=(*found.actions, *due), wake_at=wake_at)
    until = state.wishes.until
    if until is not None and not state.view.facts.deleting:
        found = replace(found, wake_at=first([found.wake_at, until]))
    return _with_marks(state, found)


def _is_over(view: JobView) -> bool:
    return view.facts.deleting or view.facts.finished


def _is_unknown(state: JobState) -> bool:
    """Tell whether a job of ours is left alone, because its pods or its size are not known."""
    view = state.view
    if state.foreign:
        return False
    # A pod that cannot be read may run: its worker is not lost, and its quota is not free.
    if view.unread and view.unseen:
        return True
    return not view.facts.size_known and not _is_over(view)


def _own_writes(state: JobState) -> list[Action]:
    """Return the writes that capabilities do themselves, and the removal of gates.

    The gates come off last, because the other writes were decided for pods that cannot start. A job
    that is resumed starts as a whole again, so the writes before a start are asked for again, too.
    """
    writes: list[Action] = []
    if state.view.gated:
        freed = list(suspend.free(state))
        if freed:
            writes += _writes(state, When.BEFORE_START)
        writes += freed
    writes += _writes(state, When.ANY_TIME)
    if state.view.placeholders:
        writes += parking.writes(state)
    return writes


def _writes(state: JobState, when: When) -> list[Action]:
    steps = capability.own_writes(state, when)
    return [step.write for step in steps if step.write]


def _left_alone(state: JobState) -> Plan:
    """Return the plan for a job of which not all is known: its notices, and what others wait for.

    Quota of pods that are known to run no more is given back all the same.
    """
    freeing = [write for write in _writes(state, When.ANY_TIME) if write.frees]
    due, again_at = _paced(state, [*_overdue_deletions(state), *freeing])
    actions, times = list[Action](), [overdue.wake_at(state), again_at]
    if not _is_over(state.view):
        told = notices.tell(state)
        times.append(told.again_at)
        if told.write:
            actions.append(told.write)
    return Plan(actions=(*actions, *due), wake_at=first(times))


def _paced(state: JobState, writes: Iterable[Action]) -> tuple[list[Action], float | None]:
    """Return what is due now of these writes, and when to look again for the rest."""
    if not state.view.deleted:
        return list(writes), None
    steps = [pace.paced(state, Step(write)) for write in writes]
    due = [step.write for step in steps if isinstance(step.write, Action)]
    return due, earliest(steps)


def _overdue_deletions(state: JobState) -> list[Action]:
    """Return the deletions of what must go, of a job whose list cannot be written."""
    if not state.overdue:
        return []
    launcher = suspend.hidden(state) or suspend.stop(state).write
    removals = drain.leave(state).removals
    gone = tuple(one for one in removals if overdue.goes(state, one.worker.name))
    writes: list[Action] = []
    if launcher:
        writes.append(launcher)
    if gone:
        writes.append(DeleteWorkers(removals=gone))
    return writes


def _with_marks(state: JobState, found: Plan) -> Plan:
    """Return the plan with the marks of capabilities on the MPIJob, in the write of its notices."""
    view = state.view
    for action in found.actions:
        if isinstance(action, WriteConfig | Delete) and type(action) not in view.refused:
            # The marks follow once the list has changed; a job that is deleted gets none.
            return found
    marks = {key: text for one in capability.of(view) for key, text in one.marks(state)}
    if not marks:
        return found
    told = next((action for action in found.actions if isinstance(action, TellUser)), None)
    if told:
        actions = list(found.actions)
        actions[actions.index(told)] = replace(told, marks=marks)
        return replace(found, actions=tuple(actions))
    if state.foreign or view.foreign:
        return found  # the farewell is the last write to a job that is another operator's
    alone = TellUser(ref=view.ref, text=view.facts.notices, marks=marks, only_marks=True)
    return replace(found, actions=(*found.actions, alone))


def _of_job(state: JobState) -> Plan:
    """Return the plan of the core, without the writes that capabilities do themselves."""
    view = state.view
    if view.facts.deleting:
        return Plan()
    if state.foreign:
        return handover.farewell(state)
    if view.is_over(stops=state.wishes.suspend is not None):
        # The operator says what the launcher's end means, mostly within a moment.
        return _finish(state)
    # A job of another operator is ours again once it has our list (handover.take_back).
    ended = None if view.foreign else launcher_start.end(state)
    if ended or view.config is None or view.role is None or not (view.workers or view.launcher):
        return _incomplete(state, ended)
    return _running(state, view.config, view.role)


def _incomplete(state: JobState, ended: Action | None) -> Plan:
    """Return the plan for a job that lacks objects, or whose launcher a capability ends.

    The operator creates the ConfigMap and the Role first.
    """
    view = state.view
    if view.foreign:
        return Plan()  # pods that another operator made are not seen
    refused = NOTHING_TOLD if view.handed_over else notices.refused(state)
    told = notices.tell(state).write if refused.notes or view.unread else None
    return _put_together(
        state,
        [
            *capability.own_writes(state, When.BEFORE_START),
            Step(ended or frozen_execs.end(state)),
            Step(told, first(refused.times)),
            *map(Step, _overdue_deletions(state)),
            Step(again_at=overdue.wake_at(state)),
        ],
    )


def _running(state: JobState, config: Config, role: Role) -> Plan:
    """Return the plan for a job that has all its objects."""
    view = state.view
    change = config_map.write(state, config)
    if view.facts.notices and view.handed_over:
        taken_back = handover.take_back(state, config, change)
        if taken_back:
            return taken_back
    # The Role first: the launcher must reach a worker before the list names it.
    grown = Step(host_list.grow_role(view, role))
    if state.mends_at > state.now:
        # No step that follows holds for a list that is not ours.
        waits = [Step(again_at=state.mends_at), Step(again_at=overdue.wake_at(state))]
        gone = map(Step, _overdue_deletions(state))
        return _put_together(state, [grown, notices.tell(state), *waits, *gone])
    steps: list[AnyStep] = [grown, *capability.own_writes(state, When.BEFORE_START), change]
    steps.append(Step(again_at=_wake_at(state)))
    changes_list = change.write is not None and not change.write.reminds
    if changes_list and WriteConfig not in view.refused:
        # Every step below relies on the list that is published: the steps wait for the new list. If
        # the list cannot be written, the old list stays in force, and the steps go by it.
        return _put_together(state, [*steps, *map(Step, _overdue_deletions(state))])
    return _put_together(state, [*steps, *_after_the_list(state, config)])


def _wake_at(state: JobState) -> float | None:
    """Return the time at which the list may change although nothing else does."""
    times = [moves.wake_at(state)]
    if state.wishes.suspend or state.wishes.wanted_back:
        times.append(overdue.wake_at(state))
    if state.resume_at > state.now and any(map(lost_ranks.is_node_lost, state.workers)):
        times.append(state.resume_at)
    return first(times)


def _after_the_list(state: JobState, config: Config) -> list[AnyStep]:
    """Return the steps that rely on the published list, in their order."""
    view, suspended = state.view, state.wishes.suspend
    # The launcher is shown the list first: no worker counts as drained before.
    steps: list[AnyStep] = [config_map.refresh(state, config)]
    # A launcher that cannot start is made again; one that runs is never deleted here.
    if not (view.driver_running or suspended):
        steps.append(launcher_start.recreate(state, config))
    told = notices.tell(state)
    # The operator makes a deleted pod again within milliseconds.
    is_told_first = told.write is not None and any(note.shapes_pods for note in told.write.notes)
    if is_told_first:
        steps.append(told)
    # Workers go once they are out of the list that the launcher was shown.
    if state.to_delete:
        steps += _leaving(state)
    # Execs into workers that are gone are ended, so that the driver waits for nobody.
    if view.launcher and view.launcher.held.frozen:
        steps.append(Step(frozen_execs.end(state)))
    # The notices say what the steps above have left undone.
    if not is_told_first:
        steps.append(told)
    # The launcher of a suspended job goes after the notice, by which the webhook holds the next
    # launcher back.
    if suspended:
        steps.append(suspend.stop(state))
    steps.append(Step(_restored_selector(view)))
    # Another size comes last, for a job in which all else has its way.
    if view.capabilities and not suspended:
        steps.append(first_of(capability.own_writes(state, When.TRAINING)))
    return steps


def _leaving(state: JobState) -> list[AnyStep]:
    """Return the deletions of workers that leave, and the looks into them."""
    gone = drain.leave(state)
    steps: list[AnyStep] = [Step(_deletions(gone), gone.wake_at), *map(Step, gone.released)]
    if drain.is_acknowledging(state):
        steps.append(driver_looks.look(state))
    if gone.evicted:
        steps.append(Step(ProbeWorkers(workers=gone.evicted, drained=True)))
    if gone.probes:
        steps.append(Step(ProbeWorkers(workers=gone.probes)))
    return steps


def _deletions(gone: drain.Leaving) -> DeleteWorkers | None:
    if not gone.removals:
        return None
    return DeleteWorkers(removals=gone.removals)


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
    """Return the plan for a job that is over."""
    gone = drain.leave(state)
    told = notices.tell_of_end(state)
    expired: Step[Action] = NO_STEP
    if not state.wishes.keeps:
        expired = first_of(capability.own_writes(state, When.AT_END))
    # The deletion waits for the notice, which changes the version at which the job is deleted. A
    # job that is deleted takes its workers along.
    if expired.write and (told is None or TellUser in state.view.refused):
        return _put_together(state, [expired, Step(again_at=gone.wake_at)])
    removals = Step(_deletions(gone), gone.wake_at)
    return _put_together(state, [removals, Step(told, expired.again_at), config_map.account(state)])


def _put_together(state: JobState, steps: Sequence[AnyStep]) -> Plan:
    """Return the plan of these steps, at the pace of deletions, with looks if no write is due."""
    due = steps
    if state.view.deleted:
        due = [pace.paced(state, step) for step in steps]
    actions = [step.write for step in due if isinstance(step.write, Action)]
    seldom: list[AnyStep] = []
    # These looks change nothing, so they wait until no write is due; a refused write may be due for
    # long. The roll call comes first, because the looks into workers may leave no turn for it.
    waiting = [action for action in actions if type(action) not in state.view.refused]
    if not waiting and not state.view.ended:
        seldom = [lost_ranks.call(state), lost_ranks.probe(state), frozen_execs.look(state)]
    looks = [step.write for step in (*due, *seldom) if isinstance(step.write, Look)]
    return Plan(
        actions=tuple(actions),
        looks=tuple(looks),
        wake_at=earliest(due),
        look_at=earliest(seldom),
    )
