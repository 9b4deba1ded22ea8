"""Validate an MPIJob or Scale that is created or changed; pure, from objects to verdict.

Only what this very request brings in is refused. An older mistake that the request leaves alone
stays allowed, because the request may come from a controller or a status write that can do nothing
about it. For the same reason nothing is refused for a deleted job. A finished job is judged,
because anybody with the right to edit may write a status and take it back; it only gets no
warnings. The controller checks every rule again, with Events.

A job that mpi-operator v0.2.3 cannot work with is refused for the sake of all jobs, elastic or not,
finished or not: the operator lists them all.
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from mpijob_elastic import capabilities, names
from mpijob_elastic.admission import (
    budgets,
    elastic_grace,
    lint,
    misplaced,
    plain_mpirun,
    size,
)
from mpijob_elastic.admission.interface import ReviewContext
from mpijob_elastic.admission.review import MOST, Refusal, Request, Verdict
from mpijob_elastic.admission.size import ScaleObject
from mpijob_elastic.kube import meta
from mpijob_elastic.model import near_names, operator_types, phrases
from mpijob_elastic.model.bounds import LATER, LONGEST_NOTICES
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.json_parts import Wire
from mpijob_elastic.model.mpijob import Metadata, MPIJob
from mpijob_elastic.model.near_names import StandIn
from mpijob_elastic.model.operator_types import Dropped, Fault

SLOTS_FIELD = "spec.slotsPerWorker"
# Prefixes that people write instead of ours, without case and anything but letters.
_LETTERS = re.compile(r"[^a-z]")
_NEARLY_OURS = frozenset({"mpijobelastic", "mpijobselastic", "mpielastic"})
_PARKED_FIELD = f"metadata.annotations[{names.PARKED}]"
# The fields under which a size is refused.
_SIZE_FIELDS = (size.WORKER_FIELD, size.REPLICAS_FIELD, _PARKED_FIELD, size.SCALE_FIELD)
# Annotations that the controller writes; and all known annotations, with those that users write.
_OURS = frozenset({names.STATUS, names.PHASE, names.CHANGE, names.SCALED_BY})
_KNOWN = capabilities.KEYS | _OURS
# The most bytes of all other annotations together: the API server takes 256 KiB, and notices on
# what stops a job come first.
_MOST_ANNOTATED = 2**18 - LONGEST_NOTICES - LATER
# Annotations of earlier versions, and what to do instead.
_REMOVED = {
    names.DELETE_UNSEEN: "delete the workers beyond the size yourself, for example with "
    "`kubectl delete pod JOB-worker-2`; the operator does not make them again",
}


@dataclass(frozen=True, kw_only=True)
class Edit:
    """Both versions of an MPIJob, with their facts."""

    job: MPIJob
    new: JobFacts
    #: The former version; None for a new job.
    before: MPIJob | None = None
    old: JobFacts | None = None


def judged(
    edit: Edit, *, context: ReviewContext, lost: Sequence[Dropped] = (), dry_run: bool = False
) -> Verdict:
    """Return the verdict on an MPIJob.

    `lost`: the fields that the operator drops. A dry run also shows the effect of a change of size.
    """
    job, new, before, old = edit.job, edit.new, edit.before, edit.old
    rooms, lookup = context.rooms, context.lookup
    no_workers = _no_workers(job, new, lost)
    refusals = _refusals(edit, context, no_workers)
    if old and old.finished:
        return Verdict(refusals=refusals)
    is_refused = refuses_size(refusals)
    size_stands = not (is_refused or no_workers)
    warnings = [*_unknown(edit)]
    if no_workers and not is_refused and _described_workers(before):
        warnings.append(f"{size.WORKER_FIELD}: {no_workers}")
    if before is None or old is None:
        warnings += lint.created(job, new, rooms, size_stands=size_stands)
    else:
        warnings += _of_edit(edit, before, old, context, size_stands=size_stands)
        if dry_run and size_stands:
            warnings += _shown_change(new, old)
    warnings += (said for one in rooms for said in one.warnings(job, new, old, lookup))
    if size_stands:
        warnings += budgets.warnings(new, old, lookup)
    return Verdict(refusals=refusals, warnings=tuple(warnings))


def _refusals(edit: Edit, context: ReviewContext, no_workers: str) -> tuple[Refusal, ...]:
    """Return the mistakes that a new or changed MPIJob brings in."""
    job, new, before, old = edit.job, edit.new, edit.before, edit.old
    of_rooms = [
        fault for one in context.rooms for fault in one.refusals(job, new, old, context.lookup)
    ]
    return (
        *(_no_pods(new) if old is None else ()),
        *_bad_annotations(new, old),
        *_out_of_bounds(new, old, of_rooms, no_workers),
        *_past_the_gate(job, new, before, old),
        *_no_room(job, new, before, old),
        *elastic_grace.refusals(new, old),
        *of_rooms,
    )


def _unknown(edit: Edit) -> Iterator[str]:
    known = edit.before.metadata.annotations if edit.before else {}
    return _unknown_annotations(edit.job.metadata.annotations, known)


def _described_workers(before: MPIJob | None) -> bool:
    """Tell whether a job had workers before, or is new."""
    return before is None or before.describes(names.ROLE_WORKER)


def _of_edit(
    edit: Edit, before: MPIJob, old: JobFacts, context: ReviewContext, *, size_stands: bool
) -> Iterator[str]:
    """Yield warnings on an edit: its effects on a job that has started, and new findings."""
    new, rooms = edit.new, context.rooms
    if old.reported:
        yield from _changes(edit.job, new, old)
    yield from lint.updated(
        edit.job, before, new=new, old=old, rooms=rooms, size_stands=size_stands
    )


def _shown_change(new: JobFacts, old: JobFacts) -> list[str]:
    shown = size.change(new, before=old.replicas, after=new.replicas)
    return [shown] if shown else []


def refuses_size(refusals: Iterable[Refusal]) -> bool:
    """Tell whether a size is refused: then nothing else is said of the same size."""
    return any(one.field in _SIZE_FIELDS for one in refusals)


def edited(new: JobFacts, old: JobFacts) -> JobFacts:
    """Return the facts of an edited job, which is still elastic if its launcher is.

    Only the controller sees the launcher, and says so afterwards (names.is_still_elastic). A job
    that the operator has reported mostly has one.
    """
    if new.elastic or not (old.reported and old.acts_elastic):
        return new
    return msgspec.structs.replace(new, launcher_elastic=True)


def stops_the_operator(faults: Sequence[Fault], before: Sequence[Fault]) -> Verdict:
    """Return the verdict on an MPIJob that the operator cannot work with.

    before: the faults of its former version.
    """
    known = {fault.kind for fault in before}
    brought = (
        []
        if len(before) == operator_types.MOST
        else [fault for fault in faults if fault.kind not in known]
    )
    if brought:
        return Verdict(
            refusals=tuple(Refusal(field=one.field, message=one.message) for one in brought[:MOST])
        )
    return Verdict(warnings=tuple(map(str, faults))[:MOST])


def dropped(fields: Sequence[Dropped], job: MPIJob) -> tuple[str, ...]:
    """Return a warning for each field that the operator drops, and that nobody puts back.

    What stands where the job's workers should has been told as such.
    """
    told = None if job.describes(names.ROLE_WORKER) else _instead_of_workers(fields)
    places: dict[str, list[str]] = {}
    for one in filter(misplaced.is_told, fields):
        if told and one.field == told.field:
            continue
        places.setdefault(one.known_as, []).append(one.field)
    said = []
    for kind, (first, *others) in list(places.items())[:MOST]:
        more = f" and {len(others)} more" if others else ""
        means = misplaced.meaning(Dropped(field=first, known_as=kind))
        said.append(f"{first}{more}: mpi-operator v0.2.3 drops this field: {means}")
    if rest := [kind.partition(".")[2] for kind in list(places)[MOST:]]:
        said.append(f"mpi-operator v0.2.3 also drops {phrases.listed(rest)}")
    return tuple(said)


def scaled(
    scale: ScaleObject,
    before: ScaleObject,
    job: JobFacts | None,
    *,
    context: ReviewContext,
    dry_run: bool,
) -> Verdict:
    """Return the verdict on a changed Scale; `job` is its MPIJob as last seen.

    The review of a scale, by `kubectl scale`, an HPA, or any other client of mpijobs/scale, holds
    only the size. An unknown job is let through with a warning: the controller checks every rule
    that safety needs.
    """
    asked, had = scale.spec.replicas, before.spec.replicas
    if asked == had:
        return Verdict()
    if job is None or job.metadata.uid != scale.metadata.uid:
        return Verdict(warnings=(size.UNKNOWN,))
    if job.deleting:
        return Verdict()
    if out_of_bounds := _scale_refusal(job, asked, before=had):
        return Verdict(refusals=(out_of_bounds,))
    rooms, lookup = context.rooms, context.lookup
    new, old = (msgspec.structs.replace(job, replicas=size_) for size_ in (asked, had))
    refused = tuple(fault for one in rooms for fault in one.scale_refusals(new, old, lookup))
    if refuses_size(refused):
        return Verdict(refusals=refused)
    return Verdict(
        refusals=refused,
        warnings=(
            *_effect(job, asked, had, dry_run=dry_run),
            *size.doubts(new, new.workers),
            *budgets.warnings(new, old, lookup),
        ),
    )


def _effect(job: JobFacts, asked: int, had: int, *, dry_run: bool) -> Iterator[str]:
    """Yield what a change of the scale does, and what makes it work for a plain mpirun job."""
    if dry_run and (shown := size.change(job, before=had, after=asked)):
        yield shown
    elif job.reported and not job.acts_elastic:
        yield size.KEPT if asked < had else size.UNUSED
        yield from plain_mpirun.of_scale(job)


def _scale_refusal(job: JobFacts, replicas: int, *, before: int) -> Refusal | None:
    if job.finished:
        over = (
            f"{replicas} has no effect: the job has finished; create "
            "it again to run it at that size"
        )
        return Refusal(field=size.SCALE_FIELD, message=over)
    if replicas == 0:
        return size.zero_refusal(job, field=size.SCALE_FIELD)
    if replicas < 0:
        few = f"{replicas} is below 0; use 1 or more, or delete the job to stop it"
        return Refusal(field=size.SCALE_FIELD, message=few)
    out_before = size.excess(job.workers_of(before), job)
    return size.refusal(
        job.workers_of(replicas), job, before=out_before, field=size.SCALE_FIELD, had_bounds=True
    )


class _Head(Wire, frozen=True):
    metadata: msgspec.Raw = msgspec.Raw(b"null")


_metadata = msgspec.json.Decoder(Metadata)
_heads = msgspec.json.Decoder(_Head)


def unread(request: Request, why: str) -> Verdict:
    """Return the verdict on an MPIJob that cannot be read.

    A job in a queue is refused, because nothing would hold it back. Raises msgspec.DecodeError if
    not even its metadata can be read.
    """
    head = _head(request.object)
    if not _asks_for_a_queue(head) or head.deleting or _was_unread(request):
        return Verdict()
    message = (
        f"mpijob-elastic cannot read this job ({why}), so its pods would start "
        "without their queue; make it smaller"
    )
    return Verdict(refusals=(Refusal(field="spec", message=message),))


def _head(raw: msgspec.Raw) -> JobFacts:
    metadata = _heads.decode(raw).metadata
    meta.check_cost(metadata)
    return capabilities.of(MPIJob(metadata=_metadata.decode(metadata)))


def _asks_for_a_queue(head: JobFacts) -> bool:
    # The metadata alone need not say whether the job is elastic.
    return any(known.queued for known in head.asked)


def _was_unread(request: Request) -> bool:
    """Tell whether the job was in a queue before, and could not be read either."""
    if bytes(request.old_object) == b"null" or not _asks_for_a_queue(_head(request.old_object)):
        return False
    try:
        meta.check_cost(request.old_object)
        capabilities.read(bytes(request.old_object))
    except msgspec.DecodeError:
        return True
    return False


def _no_pods(new: JobFacts) -> Iterator[Refusal]:
    name = new.metadata.name
    if names.gets_no_pod(name):
        message = (
            f"a name of {len(name)} characters is longer than a pod's label may be, so "
            f"mpi-operator makes no pod; use at most {names.LONGEST_LABEL}"
        )
        yield Refusal(field="metadata.name", message=message)


def _no_workers(job: MPIJob, new: JobFacts, lost: Iterable[Dropped]) -> str:
    """Return that the workers are missing; "" if they are there or nobody seems to miss them.

    [operator] runs the launcher of such a job alone.
    """
    if job.describes(names.ROLE_WORKER):
        return ""
    if near := _instead_of_workers(lost):
        return f"is missing; {near.question}"
    return "is missing; describe the workers there" if new.elastic else ""


def _instead_of_workers(lost: Iterable[Dropped]) -> StandIn | None:
    return near_names.stand_in(size.WORKER_FIELD, [one.field for one in lost])


def _out_of_bounds(
    new: JobFacts, old: JobFacts | None, of_rooms: Iterable[Refusal], no_workers: str
) -> Iterator[Refusal]:
    """Yield the refusal of a size that is out of bounds, unless it only follows from parking.

    Then the annotation is refused already, and the user did not write such a size. no_workers: what
    to say instead of a job without workers; "" if it has some.
    """
    is_zero = new.size_known and new.replicas == 0 and not no_workers
    if is_zero and (new.acts_elastic or _stops_at_zero(old)):
        yield from _zero(new, old)
        return
    excess = size.excess(old.workers, old) if old else 0
    had_bounds = old is not None and size.bounds(old) == size.bounds(new)
    found = size.refusal(
        new.workers, new, before=excess, field=size.REPLICAS_FIELD, had_bounds=had_bounds
    )
    parks_too_many = any(one.field == _PARKED_FIELD for one in of_rooms)
    if found and not (parks_too_many and not size.excess(new.replicas, new)):
        yield Refusal(field=size.WORKER_FIELD, message=no_workers) if no_workers else found


def _zero(new: JobFacts, old: JobFacts | None) -> Iterator[Refusal]:
    """Yield the refusal of an edit that brings in the size 0, or takes away what 0 means."""
    had_zero = old is not None and old.replicas == 0
    loses_meaning = _stops_at_zero(old) and not _stops_at_zero(new)
    if had_zero and not loses_meaning:
        return
    refusal = size.zero_refusal(new, field=size.REPLICAS_FIELD)
    if refusal:
        yield refusal


def _stops_at_zero(job: JobFacts | None) -> bool:
    """Tell whether a job is suspended by its size, so that no launcher starts without workers."""
    return job is not None and job.is_at_zero and job.acts_elastic


def _bad_annotations(new: JobFacts, old: JobFacts | None) -> Iterator[Refusal]:
    for problem in new.problems:
        if old is None or problem not in old.problems:
            yield Refusal(
                field=problem.field, message=str(problem).removeprefix(f"{problem.field}: ")
            )


def _past_the_gate(
    job: MPIJob, new: JobFacts, before: MPIJob | None, old: JobFacts | None
) -> Iterator[Refusal]:
    # The API server takes no gate on a pod whose node is chosen, so such a pod starts without its
    # queue.
    if not new.queued:
        return
    for role in (names.ROLE_LAUNCHER, names.ROLE_WORKER):
        node = job.pod(role).node_name
        # KubeQueue's hold is put back on jobs that run, by us too: if that were refused, the quota
        # would never be given back.
        was_held = old is not None and (old.queued or names.GATE_QUEUED not in new.gates)
        is_old = was_held and before is not None and node == before.pod(role).node_name
        if node and not is_old:
            yield Refusal(
                field=f"spec.mpiReplicaSpecs.{role.capitalize()}.template.spec.nodeName",
                message=(
                    "a queued job cannot choose its node past the queue and the scheduler; use "
                    "nodeSelector, or leave the queue"
                ),
            )


def _no_room(
    job: MPIJob, new: JobFacts, before: MPIJob | None, old: JobFacts | None
) -> Iterator[Refusal]:
    """Yield a refusal if the annotations leave no room for our notices.

    Without a notice a job cannot be stopped.
    """
    was_ours = old is not None and (old.elastic or old.queued)
    most = max(_MOST_ANNOTATED, _annotated(before) if before and was_ours else 0)
    if (new.elastic or new.queued) and _annotated(job) > most:
        message = (
            f"more than {_MOST_ANNOTATED:,} bytes of annotations leave no room for those that "
            "mpijob-elastic writes; shorten them"
        )
        yield Refusal(field="metadata.annotations", message=message)


def _annotated(job: MPIJob) -> int:
    others = ((key, text) for key, text in job.metadata.annotations.items() if key not in _OURS)
    return sum(len(key.encode()) + len(text.encode()) for key, text in others)


def _unknown_annotations(new: Mapping[str, str], old: Mapping[str, str]) -> Iterator[str]:
    unknown = sorted(key for key in new.keys() - _KNOWN - old.keys() if _is_meant_for_us(key))
    # It takes 0.5 ms to find the nearest name for a long key, and there may be thousands of keys.
    for key in unknown[:MOST]:
        if key in _REMOVED:
            yield f"metadata.annotations[{key}] has no effect any more: {_REMOVED[key]}"
            continue
        near = difflib.get_close_matches(key[:64], capabilities.KEYS, n=1, cutoff=0.0)
        yield (
            f"metadata.annotations[{key[:64]}] is not known and has no "
            f"effect; did you mean {near[0]}?"
        )


def _is_meant_for_us(key: str) -> bool:
    """Tell whether an annotation has our prefix, or one that is nearly ours: `mpijob.elastic/`."""
    if key.startswith(names.PREFIX):
        return True
    prefix, slash, _ = key[: 2 * len(names.PREFIX)].partition("/")
    return bool(slash) and _LETTERS.sub("", prefix.lower()) in _NEARLY_OURS


def _vain_size(job: MPIJob, new: JobFacts, old: JobFacts) -> Iterator[str]:
    """Yield what a new size does to a job that is not elastic, and what would make it elastic."""
    changes = f"{size.REPLICAS_FIELD} {old.replicas} to {new.replicas}"
    if new.replicas < old.replicas:
        yield (
            f"{changes}: this job is not elastic, so its surplus workers stay{_new_launcher(new)}"
        )
    else:
        yield f"{changes}: {size.UNUSED} until the job has ended"
    yield from plain_mpirun.of_size(job, new)


def _new_launcher(job: JobFacts) -> str:
    """Return what makes a plain job elastic, unless the advice on its mpirun says so."""
    if plain_mpirun.plain_program(job):
        return ""
    return (
        f". Run horovodrun with --host-discovery-script {names.DISCOVER_HOSTS_PATH}, in a new "
        "launcher"
    )


def becomes_elastic(new: JobFacts, old: JobFacts) -> bool:
    """Tell whether an edit makes a job elastic whose launcher, if it runs, is not."""
    return new.elastic and not old.elastic and old.policy.enabled is not False


def _changes(job: MPIJob, new: JobFacts, old: JobFacts) -> Iterator[str]:
    # `resume` and `kubectl annotate` keep our notices. A write without them replaces the whole job.
    is_replaced = names.is_suspended(old.notices) and not new.notices
    if old.suspended and not new.suspended and is_replaced:
        ref = new.metadata
        yield (
            "this write also removes what suspended the job, so the job starts again; to keep it "
            f"suspended, type `mpijob-elastic suspend {ref.name} -n {ref.namespace}`"
        )
    if old.elastic and new.acts_elastic and not new.elastic:
        yield (
            "this job is not elastic any more with a new launcher; the launcher that exists stays "
            "elastic, and parked workers, a suspension and sizes keep their effect until then"
        )
    if new.replicas != old.replicas and not new.acts_elastic:
        yield from _vain_size(job, new, old)
    if becomes_elastic(new, old):
        yield (
            "this job becomes elastic with a new launcher; a running launcher keeps its workers "
            f"until you type `{names.adopt(new.metadata.name, new.metadata.namespace)}`, which "
            "restarts training from its last checkpoint"
        )
    if new.slots != old.slots:
        yield (
            f"{SLOTS_FIELD} {old.slots} to {new.slots}: the running job keeps {old.slots} until it "
            "has a new launcher: suspend and resume it, or, if it is not elastic, delete and "
            "recreate it (this restarts training)"
        )
