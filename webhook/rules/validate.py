"""Validate a MPIJob that is created or changed; pure, from objects to verdict.

Only what this very request brings in is refused. An older mistake that the request leaves alone stays allowed, because
the request may come from a controller or a status write that can do nothing about it. For the same reason nothing is
refused for a deleted job. A finished one is judged, as anybody with the right to edit may write a status and take it
back; it only gets no warnings. The controller checks every rule again, with Events.
"""

import difflib
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from mpijob_elastic import capabilities, names
from mpijob_elastic.kube import cost
from mpijob_elastic.model.bounds import LATER, LONGEST_NOTICES
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.mpijob import Metadata, MPIJob
from mpijob_elastic.model.wire import Wire
from webhook.rules import lint, size
from webhook.rules.optional import Admission
from webhook.rules.review import Refusal, Request, Verdict

SLOTS_FIELD = "spec.slotsPerWorker"
# Annotations that the controller writes, and those together with the users'.
_OURS = frozenset({names.STATUS, names.PHASE, names.CHANGE, names.SCALED_BY})
_KNOWN = capabilities.KEYS | _OURS
# Bytes of all other annotations together: the API server takes 256 KiB, and what stops a job is told first.
_MOST_ANNOTATED = 2**18 - LONGEST_NOTICES - LATER
# Annotations of earlier versions, and what takes their place.
_REMOVED = {
    names.DELETE_UNSEEN: "delete workers beyond the size yourself, such as `kubectl delete pod JOB-worker-2`, and the "
    "operator makes none of them again",
}


def created(job: MPIJob, new: JobFacts, rooms: Sequence[Admission] = ()) -> Verdict:
    """Return the verdict on a new MPIJob; `new` are its facts. rooms: what capabilities say."""
    return Verdict(
        refusals=(
            *_bad_annotations(new, None),
            *_out_of_bounds(new, None),
            *_past_the_gate(job, new, None, None),
            *_no_room(job, new, None, None),
        ),
        warnings=(
            *_unknown_annotations(job.metadata.annotations, {}),
            *lint.created(job, new, rooms),
        ),
    )


def updated(
    job: MPIJob,
    before: MPIJob,
    *,
    new: JobFacts,
    old: JobFacts,
    rooms: Sequence[Admission] = (),
    dry_run: bool = False,
) -> Verdict:
    """Return the verdict on a changed MPIJob; `new` and `old` are the facts of both versions.

    A dry run also shows the effect of a change of size.
    """
    if new.deleting:
        return Verdict()
    refusals = (
        *_bad_annotations(new, old),
        *_out_of_bounds(new, old),
        *_past_the_gate(job, new, before, old),
        *_no_room(job, new, before, old),
    )
    if old.finished:
        return Verdict(refusals=refusals)
    return Verdict(
        refusals=refusals,
        warnings=(
            *_unknown_annotations(job.metadata.annotations, before.metadata.annotations),
            *((*_changes(new, old), *(said for one in rooms for said in one.edits(new, old))) if old.reported else ()),
            *lint.updated(job, before, new=new, old=old, rooms=rooms),
            *_resized(new, old, dry_run=dry_run),
        ),
    )


class _Head(Wire, frozen=True):
    metadata: msgspec.Raw = msgspec.Raw(b"null")


_metadata = msgspec.json.Decoder(Metadata)
_heads = msgspec.json.Decoder(_Head)


def unread(request: Request, why: str) -> Verdict:
    """Return the verdict on a MPIJob that cannot be read: one in a queue is refused, as nothing would hold it back.

    Raises msgspec.DecodeError if not even its metadata can be read.
    """
    head = _head(request.object)
    if not _asks_for_a_queue(head) or head.deleting or _was_unread(request):
        return Verdict()
    message = (
        f"mpijob-elastic cannot read this job ({why}), so its pods would start without their queue; make it smaller"
    )
    return Verdict(refusals=(Refusal(field="spec", message=message),))


def _head(raw: msgspec.Raw) -> JobFacts:
    metadata = _heads.decode(raw).metadata
    cost.check(metadata)
    return capabilities.of(MPIJob(metadata=_metadata.decode(metadata)))


def _asks_for_a_queue(head: JobFacts) -> bool:
    # Whether it is elastic, its metadata alone need not say.
    return any(known.queued for known in head.asked)


def _was_unread(request: Request) -> bool:
    """Tell whether the job was in a queue before, and could not be read either."""
    if bytes(request.old_object) == b"null" or not _asks_for_a_queue(_head(request.old_object)):
        return False
    try:
        cost.check(request.old_object)
        capabilities.read(bytes(request.old_object))
    except msgspec.DecodeError:
        return True
    return False


def _bad_annotations(new: JobFacts, old: JobFacts | None) -> Iterator[Refusal]:
    for problem in new.problems:
        if old is None or problem not in old.problems:
            yield Refusal(field=problem.field, message=str(problem).removeprefix(f"{problem.field}: "))


def _out_of_bounds(new: JobFacts, old: JobFacts | None) -> Iterator[Refusal]:
    before = size.excess(old.workers, old) if old else 0
    if refusal := size.refusal(new.workers, new, before=before, field=size.REPLICAS_FIELD):
        yield refusal


def _past_the_gate(job: MPIJob, new: JobFacts, before: MPIJob | None, old: JobFacts | None) -> Iterator[Refusal]:
    # The API server takes no gate on a pod whose node is chosen, so such a pod starts without its queue.
    if not new.queued:
        return
    for role in (names.ROLE_LAUNCHER, names.ROLE_WORKER):
        node = job.pod(role).node_name
        # KubeQueue's hold is put back on jobs that run, by us too: refused, the quota would never be given back.
        was_held = old is not None and (old.queued or names.GATE_QUEUED not in new.gates)
        is_old = was_held and before is not None and node == before.pod(role).node_name
        if node and not is_old:
            yield Refusal(
                field=f"spec.mpiReplicaSpecs.{role.capitalize()}.template.spec.nodeName",
                message="a queued job cannot choose its node past the queue and the scheduler; use nodeSelector, or "
                "leave the queue",
            )


def _no_room(job: MPIJob, new: JobFacts, before: MPIJob | None, old: JobFacts | None) -> Iterator[Refusal]:
    """Yield that its annotations leave no room for the notice without which a job cannot be stopped."""
    was_ours = old is not None and (old.elastic or old.queued)
    most = max(_MOST_ANNOTATED, _annotated(before) if before and was_ours else 0)
    if (new.elastic or new.queued) and _annotated(job) > most:
        message = f"more than {_MOST_ANNOTATED:,} bytes leave no room for what mpijob-elastic writes; shorten them"
        yield Refusal(field="metadata.annotations", message=message)


def _annotated(job: MPIJob) -> int:
    others = ((key, text) for key, text in job.metadata.annotations.items() if key not in _OURS)
    return sum(len(key.encode()) + len(text.encode()) for key, text in others)


def _unknown_annotations(new: Mapping[str, str], old: Mapping[str, str]) -> Iterator[str]:
    unknown = sorted(key for key in new.keys() - _KNOWN - old.keys() if key.startswith(names.PREFIX))
    # To find the nearest name takes 0.5 ms for a long key, and there may be thousands.
    for key in unknown[: lint.MOST]:
        if key in _REMOVED:
            yield f"metadata.annotations[{key}] has no effect any more: {_REMOVED[key]}"
            continue
        near = difflib.get_close_matches(key[:64], capabilities.KEYS, n=1, cutoff=0.0)
        yield f"metadata.annotations[{key[:64]}] is not known and has no effect; did you mean {near[0]}?"


def _changes(new: JobFacts, old: JobFacts) -> Iterator[str]:
    if new.replicas < old.replicas and not new.elastic:
        yield (
            f"{size.REPLICAS_FIELD} {old.replicas} to {new.replicas}: this job is not elastic, so its surplus workers "
            f"stay. Run horovodrun with --host-discovery-script {names.DISCOVER_HOSTS_PATH}, in a new launcher"
        )
    if new.elastic and not old.elastic and old.policy.enabled is not False:
        yield (
            "this job becomes elastic with a new launcher: until you type "
            f"`{names.adopt(new.metadata.name, new.metadata.namespace)}`, a launcher that runs keeps its workers "
            "(training restarts from its last checkpoint)"
        )
    if new.slots != old.slots:
        yield (
            f"{SLOTS_FIELD} {old.slots} to {new.slots}: the running job keeps {old.slots} until it has a new launcher: "
            "suspend and resume it, or, if it is not elastic, delete and recreate it (this restarts training)"
        )


def _resized(new: JobFacts, old: JobFacts, *, dry_run: bool) -> Iterator[str]:
    shown = size.change(new, before=old.replicas, after=new.replicas) if dry_run else None
    if shown:
        yield shown
