"""Handlers: one for each kind that the webhook configurations name; pure.

/mutate only ever adds or replaces fields of ours, so it never refuses. /validate refuses only
mistakes in fields of ours, a job that the operator cannot work with, and a job that would pass by
its queue. Any other object that we cannot decode passes with a warning: what the API server accepts
must not fail because of us.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import chain

import msgspec

from mpijob_elastic import capabilities, names
from mpijob_elastic.admission import json_patch, mutate, pod_templates, review, size, worker_grace
from mpijob_elastic.admission.interface import ReviewContext
from mpijob_elastic.admission.review import CREATE, UPDATE, Answer, Request, Verdict, answered
from mpijob_elastic.kube import meta
from mpijob_elastic.kube.resources import CONFIG_MAPS, MPI_JOBS, PODS, Resource
from mpijob_elastic.model import job_facts, mpijob, operator_types
from mpijob_elastic.model.job_facts import JobFacts
from webhook.rules import validate

_UNREADABLE = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)

Handler = Callable[[Request], Verdict]
# Group, version, kind, the subresource or "", and the operation.
Kind = tuple[str, str, str, str, str]
_scales = msgspec.json.Decoder(size.Scale)


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
            if (verdict := validate.unread(request, why)).refusals:
                return answered(verdict)
    warning = f"mpijob-elastic could not read this {request.kind.kind[:32]} and let it pass: {why}"
    return Answer(verdict=Verdict(warnings=(warning,)), outcome="unreadable")


def mutating(context: ReviewContext) -> Mapping[Kind, Handler]:
    """Return the handlers for /mutate."""
    configs, pods = msgspec.json.Decoder(mutate.ConfigMap), msgspec.json.Decoder(mutate.Pod)

    def config_created(request: Request) -> Verdict:
        config = configs.decode(request.object)
        patch, owner = mutate.config_map(config), config.metadata.controller
        if not patch or owner is None:
            return Verdict(patch=patch)
        job = context.job(request.namespace, owner.name)
        return Verdict(patch=(*patch, *mutate.startup_hostfile(config, job)))

    taken = context.taken

    def pod_created(request: Request) -> Verdict:
        pod = pods.decode(request.object)
        owner = pod.metadata.controller
        job = context.job(request.namespace, owner.name) if owner else None
        if job and job.skips:
            quotas = context.quotas(request.namespace)
            placeholders = (one.placeholder(pod, job, quotas) for one in context.rooms)
            if emptied := next(filter(None, placeholders), ()):
                return Verdict(patch=(*pod_templates.restored_security(pod, job), *emptied))
        changes = (
            mutate.launcher(pod, job),
            mutate.edl_mount(pod),
            pod_templates.missing_labels(pod, job, taken=taken) if context.restores_labels else (),
            pod_templates.restored_security(pod, job),
            mutate.gates(pod, job),
            worker_grace.fitting(pod, job),
        )
        own = (one.patched(pod, job) for one in context.rooms) if job else ()
        return Verdict(patch=tuple(chain(*changes, *own)))

    def status_updated(request: Request) -> Verdict:
        return Verdict(patch=mutate.selector(mpijob.decode(request.object)))

    def scaled(request: Request) -> Verdict:
        scale, job = _scales.decode(request.object), context.job(request.namespace, request.name)
        after = asked = scale.spec.replicas
        if (
            asked < 1
            or job is None
            or job.metadata.uid != scale.metadata.uid
            or job.deleting
            or job.finished
        ):
            return review.UNCHANGED
        for one in context.rooms:
            after = one.scaled(job, after, user=request.user_info.username)
        return (
            review.UNCHANGED
            if after == asked
            else Verdict(patch=json_patch.replacing(at="/spec/replicas", value=after))
        )

    return {
        _kind(CREATE, PODS): pod_created,
        _kind(CREATE, CONFIG_MAPS): config_created,
        _kind(UPDATE, MPI_JOBS, "status"): status_updated,
        _kind(UPDATE, size.SCALES, "scale"): scaled,
    }


def validating(context: ReviewContext) -> Mapping[Kind, Handler]:
    """Return the handlers for /validate."""

    def job_judged(request: Request) -> Verdict:
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
        new, old = capabilities.of(job), capabilities.of(before) if before else None
        new = validate.edited(new, old) if old else new
        if new.queued and (old is None or request.user_info.username != names.CONTROLLER_USER):
            # Raises `TooLarge` if we could not keep the job's facts, and write to the job.
            job_facts.kept_later(new, before=old)
        verdict = validate.judged(
            job, before, new=new, old=old, context=context, lost=lost, dry_run=request.dry_run
        )
        if old and old.finished:
            return verdict
        more = new.workers - (old.workers if old else 0)
        told = _shortages(
            context, request, new, more=0 if validate.refuses_size(verdict.refusals) else more
        )
        if context.restores_labels:
            former = None if before is None else request.old_object
            told += pod_templates.new_rules(request.object, former, taken=context.taken)
        if old and old.reported and (old.elastic or new.elastic):
            queued = names.GATE_QUEUED in new.gates
            told += pod_templates.changed(request.object, request.old_object, queued=queued)
        return _warning(verdict, *told, *(validate.dropped(lost, job) if is_new else ()))

    def scaled(request: Request) -> Verdict:
        after, before = _scales.decode(request.object), _scales.decode(request.old_object)
        job = context.job(request.namespace, request.name)
        verdict = validate.scaled(after, before, job, context=context, dry_run=request.dry_run)
        if validate.refuses_size(verdict.refusals):
            return verdict
        more = after.spec.replicas - before.spec.replicas
        return _warning(verdict, *_shortages(context, request, job, more=more))

    return {
        _kind(CREATE, MPI_JOBS): job_judged,
        _kind(UPDATE, MPI_JOBS): job_judged,
        _kind(UPDATE, size.SCALES, "scale"): scaled,
    }


def _shortages(
    context: ReviewContext, request: Request, job: JobFacts | None, *, more: int
) -> tuple[str, ...]:
    if (
        job is None or more <= 0
    ):  # most edits leave the size alone, and a cluster may have many quotas
        return ()
    return tuple(size.shortages(job, context.quotas(request.namespace), more=more))


def _kind(operation: str, resource: Resource, sub_resource: str = "") -> Kind:
    return resource.group, resource.version, resource.kind, sub_resource, operation


def _warning(verdict: Verdict, *warnings: str) -> Verdict:
    return replace(verdict, warnings=(*verdict.warnings, *warnings))
