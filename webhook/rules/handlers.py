"""Handlers: one for each kind that the webhook configurations name; pure.

/mutate only ever adds or replaces fields of ours, so it never refuses. /validate refuses only
mistakes in fields of ours, a job that the operator cannot work with, and a job that would pass by
its queue. Any other object that we cannot decode passes with a warning: what the API server accepts
must not fail because of us.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

import msgspec

from mpijob_elastic import capabilities, names
from mpijob_elastic.admission import (
    allowed_sizes,
    json_patch,
    mpi_variables,
    mutate,
    parking,
    pod_templates,
    review,
    size,
    template_fields,
    worker_grace,
)
from mpijob_elastic.admission.interface import ReviewContext
from mpijob_elastic.admission.json_patch import Patch
from mpijob_elastic.admission.mutate import AdmittedPod
from mpijob_elastic.admission.review import CREATE, UPDATE, Answer, Request, Verdict, answered
from mpijob_elastic.kube import meta
from mpijob_elastic.kube.resources import CONFIG_MAPS, MPI_JOBS, PODS, Resource
from mpijob_elastic.model import job_facts, mpijob, operator_types
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.json_parts import Wire
from mpijob_elastic.model.mpijob import MPIJob
from mpijob_elastic.model.operator_types import Dropped
from webhook.rules import validate
from webhook.rules.validate import Edit

_UNREADABLE = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)


class _WithSpec(Wire, frozen=True):
    spec: dict[str, Any]


Handler = Callable[[Request], Verdict]
# Group, version, kind, the subresource or "", and the operation.
Kind = tuple[str, str, str, str, str]
_configs = msgspec.json.Decoder(mutate.ConfigMap)
_pods = msgspec.json.Decoder(AdmittedPod)
_specs = msgspec.json.Decoder(_WithSpec)
_scales = msgspec.json.Decoder(size.ScaleObject)


def answer(request: Request, handlers: Mapping[Kind, Handler]) -> Answer:
    """Answer a request.

    A request without a handler passes unchanged, and one with unreadable objects with a warning.
    """
    kind = request.kind
    handler = handlers.get(
        (kind.group, kind.version, kind.kind, request.sub_resource, request.operation)
    )
    if handler is None:
        return Answer(verdict=review.UNCHANGED, outcome="unchanged")
    try:
        for version in (request.object, request.old_object):
            meta.check_cost(version)
        verdict = handler(request)
    except _UNREADABLE as error:
        return _unread(request, str(error))
    return answered(verdict)


def _unread(request: Request, why: str) -> Answer:
    if request.kind.kind == MPI_JOBS.kind and not request.sub_resource:
        with suppress(*_UNREADABLE):
            verdict = validate.unread(request, why)
            if verdict.refusals:
                return answered(verdict)
    warning = f"mpijob-elastic could not read this {request.kind.kind[:32]} and let it pass: {why}"
    return Answer(verdict=Verdict(warnings=(warning,)), outcome="unreadable")


def mutating(context: ReviewContext) -> Mapping[Kind, Handler]:
    """Return the handlers for /mutate."""
    return {
        _kind(CREATE, PODS): partial(_pod_created, context, taken=context.taken),
        _kind(CREATE, CONFIG_MAPS): partial(_config_created, context),
        _kind(CREATE, MPI_JOBS): _job_created,
        _kind(UPDATE, MPI_JOBS, "status"): _status_updated,
        _kind(UPDATE, size.SCALES, "scale"): partial(_rounded, context),
    }


def _config_created(context: ReviewContext, request: Request) -> Verdict:
    config = _configs.decode(request.object)
    owner = config.metadata.controller
    job = context.job(request.namespace, owner.name) if owner else None
    patch = mutate.config_map(config, job)
    if not patch:
        return review.UNCHANGED
    patch += mutate.startup_hostfile(config, job)
    return Verdict(patch=patch + mpi_variables.config_map(config, job))


def _job_created(request: Request) -> Verdict:
    job = mpijob.decode(request.object)
    marks = template_fields.marks(job, capabilities.of(job))
    return Verdict(patch=json_patch.annotating(job.metadata.annotations, marks))


def queueing(context: ReviewContext) -> Mapping[Kind, Handler]:
    """Return the handlers for /default-queue."""
    return {_kind(CREATE, MPI_JOBS): partial(_default_queue, context)}


def _default_queue(context: ReviewContext, request: Request) -> Verdict:
    """Return the patch that puts a new job into the queue of those that name none."""
    job = mpijob.decode(request.object)
    if any(one.names_queue(job) for one in context.rooms):
        return review.UNCHANGED
    facts = capabilities.of(job)
    changes = [one.default_queue(job, facts, context.lookup) for one in context.rooms]
    patch = tuple(chain.from_iterable(changes))
    if not patch:
        return review.UNCHANGED  # most namespaces have no such queue
    try:
        # A job in a queue that is too large would be refused.
        job_facts.kept_later(facts)
    except meta.TooLarge:
        return review.UNCHANGED
    return Verdict(patch=patch)


def _pod_created(context: ReviewContext, request: Request, *, taken: tuple[str, ...]) -> Verdict:
    pod = _pods.decode(request.object)
    owner = pod.metadata.controller
    job = context.job(request.namespace, owner.name) if owner else None
    if job and job.skips:
        emptied = parking.placeholder(pod, job, context.quotas(request.namespace))
        if emptied:
            return Verdict(patch=(*pod_templates.restored_security(pod, job), *emptied))
    restored, pod = _restored(request, pod, job)
    changes = [
        restored,
        mutate.launcher(pod, job),
        mutate.elastic_folder(pod),
        mpi_variables.launcher(pod, job),
        mutate.edl_mount(pod),
    ]
    if context.restores_labels:
        changes.append(pod_templates.missing_labels(pod, job, taken=taken))
    changes += [
        pod_templates.restored_security(pod, job),
        mutate.gates(pod, job),
        worker_grace.fitting(pod, job),
    ]
    if job:
        changes += [one.patched(pod, job, context.lookup) for one in context.rooms]
    return Verdict(patch=tuple(chain.from_iterable(changes)))


def _restored(
    request: Request, pod: AdmittedPod, job: JobFacts | None
) -> tuple[Patch, AdmittedPod]:
    """Return the patch that makes a pod what its template says, and the pod as it is then."""
    if job is None or job.template_fields is None:
        return (), pod
    spec = _specs.decode(request.object).spec
    patch = template_fields.restored(spec, pod, job)
    if not patch:
        return (), pod
    # A later patch must not add the annotations as a whole again.
    marked = {**pod.metadata.annotations, **template_fields.MARK}
    metadata = msgspec.structs.replace(pod.metadata, annotations=marked)
    read = pod.spec
    if job.template_fields.are_read:
        read = msgspec.convert(spec, mutate.AdmittedSpec)
    return patch, AdmittedPod(metadata=metadata, spec=read)


def _status_updated(request: Request) -> Verdict:
    return Verdict(patch=mutate.selector(mpijob.decode(request.object)))


def _rounded(context: ReviewContext, request: Request) -> Verdict:
    """Return the change of a scale to a size that the job may have."""
    scale, job = _scales.decode(request.object), context.job(request.namespace, request.name)
    replicas = scale.spec.replicas
    if replicas < 1 or job is None or job.metadata.uid != scale.metadata.uid:
        return review.UNCHANGED
    if job.deleting or job.finished:
        return review.UNCHANGED
    after = allowed_sizes.rounded(job, replicas, user=request.user_info.username)
    if after == replicas:
        return review.UNCHANGED
    return Verdict(patch=json_patch.replacing(at="/spec/replicas", value=after))


def validating(context: ReviewContext) -> Mapping[Kind, Handler]:
    """Return the handlers for /validate."""
    return {
        _kind(CREATE, MPI_JOBS): partial(_job_judged, context),
        _kind(UPDATE, MPI_JOBS): partial(_job_judged, context),
        _kind(UPDATE, size.SCALES, "scale"): partial(_scale_judged, context),
    }


def _job_judged(context: ReviewContext, request: Request) -> Verdict:
    is_new = request.operation == CREATE
    faults, lost = operator_types.judge(request.object)
    faults_before = [] if is_new else operator_types.judge(request.old_object)[0]
    if faults:
        return validate.stops_the_operator(faults, faults_before)
    job = mpijob.decode(request.object)
    # A job that is mended is checked as a new one: its former version may not be readable.
    before = None if is_new or faults_before else mpijob.decode(request.old_object)
    if before and job.metadata.deleting:
        return review.UNCHANGED
    edit = _edit(job, before)
    _refuse_what_grows(edit, request)
    verdict = validate.judged(edit, context=context, lost=lost, dry_run=request.dry_run)
    if edit.old and edit.old.finished:
        return verdict
    told = [*_told_of_edit(context, request, edit, verdict)]
    if is_new:
        told += validate.dropped(_untold(job, lost), job)
    return _warning(verdict, *told)


def _untold(job: MPIJob, lost: Sequence[Dropped]) -> Sequence[Dropped]:
    """Return the fields that the operator drops, without those that come back or are told of."""
    if not lost:
        return ()
    told = template_fields.told(job)
    return [one for one in lost if one.field not in told]


def _edit(job: MPIJob, before: MPIJob | None) -> Edit:
    """Return both versions of an MPIJob, with their facts."""
    new = capabilities.of(job)
    if before is None:
        return Edit(job=job, new=new)
    old = capabilities.of(before)
    return Edit(job=job, new=validate.edited(new, old), before=before, old=old)


def _refuse_what_grows(edit: Edit, request: Request) -> None:
    """Raise `TooLarge` if we could not keep the facts of a queued job, and write to the job."""
    is_ours = request.user_info.username == names.CONTROLLER_USER
    if edit.new.queued and (edit.old is None or not is_ours):
        job_facts.kept_later(edit.new, before=edit.old)


def _told_of_edit(
    context: ReviewContext, request: Request, edit: Edit, verdict: Verdict
) -> Iterator[str]:
    """Yield warnings on what an edit brings about in the cluster, and in a job that has started."""
    new, old = edit.new, edit.old
    if not validate.refuses_size(verdict.refusals):
        more = new.workers - (old.workers if old else 0)
        yield from _shortages(context, request, new, more=more)
    if context.restores_labels:
        former = None if edit.before is None else request.old_object
        yield from pod_templates.new_rules(request.object, former, taken=context.taken)
    if old is None or not old.reported:
        return
    if old.elastic or new.elastic:
        queued = names.GATE_QUEUED in new.gates
        adopted = validate.becomes_elastic(new, old)
        yield from pod_templates.changed(
            request.object, request.old_object, queued=queued, adopted=adopted
        )


def _scale_judged(context: ReviewContext, request: Request) -> Verdict:
    after, before = _scales.decode(request.object), _scales.decode(request.old_object)
    job = context.job(request.namespace, request.name)
    verdict = validate.scaled(after, before, job, context=context, dry_run=request.dry_run)
    if validate.refuses_size(verdict.refusals):
        return verdict
    more = after.spec.replicas - before.spec.replicas
    return _warning(verdict, *_shortages(context, request, job, more=more))


def _shortages(
    context: ReviewContext, request: Request, job: JobFacts | None, *, more: int
) -> tuple[str, ...]:
    # Most edits leave the size alone, and a cluster may have many quotas.
    if job is None or more <= 0:
        return ()
    return tuple(size.shortages(job, context.quotas(request.namespace), more=more))


def _kind(operation: str, resource: Resource, sub_resource: str = "") -> Kind:
    return resource.group, resource.version, resource.kind, sub_resource, operation


def _warning(verdict: Verdict, *warnings: str) -> Verdict:
    return replace(verdict, warnings=(*verdict.warnings, *warnings))
