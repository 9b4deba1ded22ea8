"""The next history: changes that are written with the host list, or wait on the MPIJob; pure.

All changes are derived from the job's own objects, so that a crash between two writes neither loses
nor doubles a change:
- The record in the memory has the size that the history has got to, and the changes that are
  followed. The write of the memory, mostly that of the list, merges all of them into the
  annotation.
- A size that is asked for becomes a change in the next such write. Until then the change is stored
  in an annotation of the MPIJob, where the phase changes anyway. Otherwise a second change of size
  would overwrite the field manager that names who asked for the first.
- A list that loses wanted workers is a change in the same write.

The time at which ranks were seen in all workers, or were cut after a drain, takes a write of its
own: the only additional write that a change costs. Without a time to drain the ranks that are cut
are counted in the write of the list.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import msgspec
from msgspec.structs import replace

from mpijob_elastic import names
from mpijob_elastic.decide import drain
from mpijob_elastic.decide.actions import Note, normal
from mpijob_elastic.decide.state import SKEW, JobState, WorkerState, honest
from mpijob_elastic.model import history, phrases
from mpijob_elastic.model.goodput import Ledger
from mpijob_elastic.model.history import Change
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.job_facts import CapabilityFacts
from mpijob_elastic.model.memory import LARGEST_OWN, Count
from mpijob_elastic.model.pod import Worker

NAME = "history"
# The most changes that are followed: the size that is asked for, and the losses of the list
# meanwhile.
MOST = 3
# The causes of a size that somebody sets; other capabilities name their own.
_USER, _HPA = "user", "HPA"
# The notes on a change of the parked workers.
_PARKED, _UNPARKED = "by parking", "parked workers came back"
# The notes on a change of the size that parked workers, or brought them back, as well.
_PARTLY_PARKED, _PARTLY_UNPARKED = (
    "partly by parking",
    "partly by parked workers that came back",
)
# Seconds after its list in which a change is followed until all its ranks step: a ring that forms
# later has another reason.
TOLD_WITHIN = 900.0
# Seconds in which a loss is noticed at the latest; a ring before that was ended by something else.
NOTICED_WITHIN = 180.0
# Seconds after an edit in which the edit may be what has removed an annotation.
_REMOVED_WITHIN = 60.0


@dataclass(frozen=True, kw_only=True)
class Sized(CapabilityFacts):
    """Who set the size, and what our annotations on the MPIJob say."""

    asks = False
    #: The field manager that set the size.
    by: str
    #: When the size was set, in seconds since the epoch.
    at: float
    #: An HPA set the size.
    is_hpa: bool = False
    #: The MPIJob parks workers.
    parks: bool = False
    #: The field manager that set the annotation by which the MPIJob parks workers; without that
    #: annotation the manager by which a user last edited the job. "" if unknown.
    edited_by: str = ""
    #: When this manager last wrote, in seconds since the epoch.
    edited_at: float = 0.0
    #: Our annotation for the phase.
    phase: str = ""
    #: Our annotation for a change of size that the history does not have yet.
    change: str = ""


class Followed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the memory holds for the history."""

    #: The last number of workers that the history has.
    size: Count
    #: What the MPIJob asked for then, -1 if unknown.
    replicas: int = -1
    #: The changes that are followed.
    changes: tuple[Change, ...] = ()
    #: The key of the change that stood on the MPIJob when it was recorded; it may stand there for
    #: some time.
    marked: tuple[float, int] | None = None


_decoder = msgspec.json.Decoder(Followed)


def remembered(memory: bytes | None) -> Followed | None:
    """Return the record in the job's memory; None if there is none that can be read."""
    try:
        return _decoder.decode(memory) if memory else None
    except (msgspec.DecodeError, RecursionError):
        return None


def rendered(record: Followed | Change) -> bytes:
    """Return the JSON."""
    return msgspec.json.encode(record)


def following(state: JobState, sized: Sized, published: Collection[str]) -> Followed | None:
    """Return the record once these pods are published; None while there was no change.

    It differs from the record in the memory only if there is something to write.
    """
    view, kept = state.view, remembered(state.view.memory.own.get(NAME))
    if not view.elastic or state.wishes.suspend or state.stopped or state.edited:
        return kept
    base, listed = _base(view, kept), frozenset(published)
    is_list_new = listed != view.host_of.keys()
    if base is None:
        return _first(view) if is_list_new else None
    asked, is_complete = _asked(state, base, sized), listed == {*view.wanted_names}
    if not (is_list_new or is_complete or len(asked) > 1):
        asked = []  # the next change of the list brings it
    changes = _followed(state, asked, asked or base.changes, listed)
    if not asked:
        is_same = changes == base.changes
        return kept if is_same else _shortened(replace(base, changes=changes))
    marked = history.read_change(sized.change)
    known = marked.key if marked else base.marked
    return _shortened(replace(_first(view), marked=known, changes=changes))


def _followed(
    state: JobState, asked: Sequence[Change], changes: Sequence[Change], listed: Collection[str]
) -> tuple[Change, ...]:
    """Return the changes to follow once these pods are listed; `asked` are new changes of size."""
    over, still = _split(changes)
    is_list_new = listed != state.view.host_of.keys()
    if is_list_new and (lost := _lost(state, listed)):
        over = [*asked[:-1]]
        still = [*(change for change in still if not _is_over(change)), lost]
    if listed == {*state.view.wanted_names}:
        still = [_listed(state, change) for change in still]
    if is_list_new:
        still[-1:] = [_cut_at_once(state, change, listed) for change in still[-1:]]
    elif not asked:
        still = [_trained(state, change) for change in still]
        still[-1:] = [_cut(state, change) for change in still[-1:]]
    return (*over, *still)[-MOST:]


def _split(changes: Sequence[Change]) -> tuple[list[Change], list[Change]]:
    """Return the changes that are over because another size has followed, and the others."""
    last = max((index for index, change in enumerate(changes) if change.by), default=0)
    return [*changes[:last]], [*changes[last:]]


def _listed(state: JobState, change: Change) -> Change:
    """Return the change with the time after which the list was as the size asks."""
    if change.listed is not None or _was_stopped(state.view, change):
        return change
    return replace(change, listed=_since(state, change))


def _was_stopped(view: JobView, change: Change) -> bool:
    """Tell whether the launcher is younger than a change, so that the job was stopped meanwhile.

    The times of such a change would be those of the stop: a suspension may last for days.
    """
    return view.launcher is not None and view.launcher.facts.created_at > change.at


def _shortened(record: Followed) -> Followed:
    """Return the record without its oldest changes, as far as it is too long.

    An annotation written by somebody else may be longer than ours, and a record that is too long to
    be read would be written for ever.
    """
    records = (replace(record, changes=record.changes[start:]) for start in range(MOST + 1))
    return next(one for one in records if len(rendered(one)) <= LARGEST_OWN)


def told(before: Followed | None, now: Followed, *, in_gpus: bool) -> Iterator[Note]:
    """Yield a note on each change after which the job has begun to train again."""
    earlier = before.changes if before else ()
    known = {change.key for change in earlier if change.trained is not None}
    for change in now.changes:
        if change.lost is not None and change.key not in known:
            yield normal("TrainsAgain", _cost(change, in_gpus=in_gpus))


def _cost(change: Change, *, in_gpus: bool) -> str:
    sizes = f"{change.before}→{change.after} workers"
    after = phrases.duration(change.trained or 0.0)
    lost = phrases.spent(change.lost or 0.0, in_gpus=in_gpus)
    steps = f"{change.repeated or 'no'} step{'' if change.repeated == 1 else 's'}"
    return f"{sizes}: trains again after {after}, {lost} lost, {steps} repeated"


def unrecorded(state: JobState, sized: Sized) -> Change | None:
    """Return the last change of size that the history does not have yet, None without one."""
    base = _base(state.view, remembered(state.view.memory.own.get(NAME)))
    if base is None or not state.view.elastic:
        return None
    asked = _asked(state, base, sized)
    return asked[-1] if asked else None


def _first(view: JobView) -> Followed:
    """Return the record of a job that has its size, and no changes."""
    return Followed(size=view.replicas, replicas=view.facts.replicas)


def _base(view: JobView, kept: Followed | None) -> Followed | None:
    """Return the record, or one with the last published size; None before the first."""
    return kept or (Followed(size=view.memory.scale.after) if view.memory.scale else None)


def _asked(state: JobState, base: Followed, sized: Sized) -> list[Change]:
    """Return the changes of size since `base`: the one on the MPIJob, and the current one."""
    view, marked = state.view, _marked(base, sized)
    before = marked.after if marked else base.size
    first = [marked] if marked else []
    if before == view.replicas:
        return first
    at, cause, by, note = sized.at, _cause(view, sized), sized.by, ""
    # A change on the MPIJob that is no parking has set another size meanwhile.
    is_size_kept = marked is None or marked.note in (_PARKED, _UNPARKED)
    if is_size_kept and _is_same_size(view, base, sized):
        at, by = _edit(state, base, marked, sized)
        cause, note = _USER, _PARKED if view.replicas < before else _UNPARKED
    elif is_size_kept:
        note = _partly(view, base, before)
    now = Change(
        at=honest(at, now=state.now) or round(state.now, 1),
        cause=cause,
        by=by or history.UNKNOWN,
        before=before,
        after=view.replicas,
        note=note,
    )
    return [*first, now]


def _partly(view: JobView, base: Followed, before: int) -> str:
    """Return the note on a change of the size from `before`; "" if nothing shows a parking."""
    if base.replicas < 0:
        return ""
    were_parked, are_parked = base.replicas - before, view.facts.replicas - view.replicas
    if view.replicas < before and are_parked > were_parked:
        return _PARTLY_PARKED
    if view.replicas > before and are_parked < were_parked:
        return _PARTLY_UNPARKED
    return ""


def _marked(base: Followed, sized: Sized) -> Change | None:
    """Return the change that stands on the MPIJob, unless the record has it or knows another."""
    marked = history.read_change(sized.change)
    if marked is None or marked.before != base.size:
        return None
    known = {base.marked, *(change.key for change in base.changes)}
    return None if marked.key in known else marked


def _is_same_size(view: JobView, base: Followed, sized: Sized) -> bool:
    """Tell whether Worker.replicas is as it was, so that the parked workers made the change."""
    if base.replicas >= 0:
        return view.facts.replicas == base.replicas
    # A job that has no record yet: nobody has set the size since the list got its hosts.
    return view.memory.scale is not None and 0.0 < sized.at <= view.memory.scale.at


def _edit(
    state: JobState, base: Followed, marked: Change | None, sized: Sized
) -> tuple[float, str]:
    """Return when somebody changed the parked workers, and who; 0 and "" if nothing shows it.

    The removal of an annotation may leave no trace. Then the last edit that does is an earlier one,
    and names somebody else. marked: the change on the MPIJob.
    """
    before = _last_at(state, base, marked)
    is_recent = sized.edited_at > max(before, state.now - _REMOVED_WITHIN)
    return (sized.edited_at, sized.edited_by) if sized.parks or is_recent else (0.0, "")


def _last_at(state: JobState, base: Followed, marked: Change | None) -> float:
    """Return when the size changed last; 0 if it has not."""
    if marked:
        return marked.at
    if base.changes:
        return base.changes[-1].at
    scale = state.view.memory.scale
    return scale.at if scale else 0.0


def _cause(view: JobView, sized: Sized) -> str:
    if sized.by == names.PROGRAM:
        rules = (known.size_rule for known in view.facts.asked)
        return next((rule.cause for rule in rules if rule), _USER)
    return _HPA if sized.is_hpa else _USER


def _lost(state: JobState, listed: Collection[str]) -> Change | None:
    """Return the change if the list loses wanted workers, None if it does not."""
    view = state.view
    before = [pod for pod in view.wanted_names if pod in view.host_of]
    lost = [pod for pod in before if pod not in listed]
    if not lost or not view.driver_running:
        return None
    cause, why = _why(state, lost[0])
    others = len(lost) - 1
    more = f"; {others} more worker{'' if others == 1 else 's'} left" if others else ""
    note = history.short(f"{lost[0]}: {why}", most=history.LONGEST_NOTE - len(more)) + more
    return Change(
        at=round(state.now, 1),
        cause=cause,
        before=len(before),
        after=len(before) - len(lost),
        note=note,
    )


def _why(state: JobState, pod: str) -> tuple[str, str]:
    """Return the cause for which a worker leaves the list, and the reason in words."""
    leave = state.wishes.leaves.get(pod)
    if leave and leave.cause:
        return leave.cause, leave.why
    worker = state.by_name.get(pod)
    if worker is None:
        return history.FAILURE, "its pod is gone"
    if worker.pod.facts.node_gone_at:
        return history.NODE, f"its node {worker.pod.facts.node} is gone"
    if worker.rank_lost:
        return history.FAILURE, "its rank is lost"
    return history.FAILURE, worker.pod.facts.last_state or "it is not Ready"


def _is_over(change: Change) -> bool:
    """Tell whether nothing more becomes of a change.

    Workers also come after a loss, which has no manager.
    """
    grows = change.after > change.before or not change.by
    return change.listed is not None and (change.trained is not None or not grows)


def _since(state: JobState, change: Change) -> float:
    return round(max(0.0, state.now - change.at), 1)


def _trained(state: JobState, change: Change) -> Change:
    if change.listed is None or change.trained is not None or not state.view.driver_running:
        return change
    if _was_stopped(state.view, change):
        return change
    ledger = state.view.ledger
    if ledger is not None and ledger.has_lines:
        return _trained_by_lines(state, ledger, change)
    if _is_over(change):
        return change
    seen = (
        pod in state.by_name and state.by_name[pod].pod.probe.busy_seen
        for pod in state.view.wanted_names
    )
    return replace(change, trained=_since(state, change)) if all(seen) else change


def _trained_by_lines(state: JobState, ledger: Ledger, change: Change) -> Change:
    """Return the change with what it cost, once all ranks of the size have told of a step."""
    view = state.view
    if state.now > change.at + (change.listed or 0.0) + TOLD_WITHIN:
        return change
    pods = [state.by_name[pod].pod.ref.uid for pod in view.wanted_names if pod in state.by_name]
    if len(pods) < view.replicas:
        return change
    ranks = view.replicas * view.facts.slots
    began = ledger.ring_since(pods, ranks=ranks, after=change.at - SKEW)
    if began is None:
        return change
    cost = ledger.loss(since=_signal(view, ledger, change), until=began)
    return replace(
        change,
        trained=round(max(0.0, began - change.at), 1),
        lost=round(cost.seconds, 1) if cost else None,
        repeated=cost.steps if cost else None,
    )


def _signal(view: JobView, ledger: Ledger, change: Change) -> float:
    """Return the time from which a change costs.

    A loss was before the list knew of it: at the earliest when the whole ring last told of itself.
    """
    whole_at = ledger.last_told(ranks=change.before * view.facts.slots)
    if change.by or whole_at is None or whole_at < change.at - NOTICED_WITHIN:
        return change.at
    return min(change.at, whole_at)


def _cut(state: JobState, change: Change) -> Change:
    over = (
        worker.drain.deadline
        for worker in state.to_delete
        if worker.drain and worker.drain.deadline is not None
    )
    if not any(at <= state.now for at in over):
        return change
    ended = [one.worker for one in drain.leave(state).removals if one.outcome == "timeout"]
    cut = sum(not _is_counted(state, worker) for worker in ended) * state.view.facts.slots
    return replace(change, cut=cut) if cut > change.cut else change


def _is_counted(state: JobState, worker: Worker) -> bool:
    """Tell whether the ranks of a worker were counted when the list lost it (`_cut_at_once`)."""
    return state.view.policy.drain_timeout == 0 and worker.probe.asked_at == 0


def _cut_at_once(state: JobState, change: Change, listed: Collection[str]) -> Change:
    """Return the change with the ranks that end as soon as the launcher knows the list.

    Without a time to drain nobody looks after the list has changed, so what earlier looks have seen
    counts. Another write after this one would only hold up the deletion.
    """
    if state.view.policy.drain_timeout > 0:
        return change
    leaving = (
        state.by_name[pod]
        for pod in state.view.host_of
        if pod not in listed and pod in state.by_name
    )
    cut = sum(map(_may_train, leaving)) * state.view.facts.slots
    return replace(change, cut=change.cut + cut)


def _may_train(worker: WorkerState) -> bool:
    """Tell whether a rank was seen in a listed worker last, or nobody can look into the worker."""
    pod = worker.pod
    is_over = pod.terminated or pod.facts.deleting or pod.facts.node_gone_at or worker.rank_lost
    was_seen = pod.probe.busy_seen and pod.probe.idle_at is None
    return not is_over and (pod.opaque or was_seen)
