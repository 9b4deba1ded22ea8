"""Handlers: one for each kind that the webhook configurations name; pure.

/mutate only ever adds or replaces fields of ours, so it never refuses. /validate refuses only mistakes in fields of
ours, a job that stops the operator for all jobs, and one that would pass by its queue. Any other object that we cannot
decode passes with a warning: what the API server accepts must not fail because of us.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain

import msgspec

from mpijob_elastic import capabilities, names
from mpijob_elastic.kube import cost
from mpijob_elastic.kube.resources import CONFIG_MAPS, MPI_JOBS, PODS, Resource
from mpijob_elastic.model import job_facts, mpijob
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.mpijob import MPIJob
from webhook.rules import (
    mutate,
    operator_faults,
    pod_security,
    pod_templates,
    quota,
    review,
    size,
    validate,
    worker_grace,
)
from webhook.rules.context import Answer, ReviewContext, answered
from webhook.rules.review import CREATE, UPDATE, Refusal, Request, Verdict

_UNREADABLE = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)

Handler = Callable[[Request], Verdict]
# Group, version, kind, the subresource or "", and the operation.
Kind = tuple[str, str, str, str, str]
_scales = msgspec.json.Decoder(size.Scale)


def answer(request: Request, handlers: Mapping[Kind, Handler]) -> Answer:
    """Answer a request. Without a handler it passes unchanged; with unreadable objects it passes with a warning."""
    kind = request.kind
    handler = handlers.get((kind.group, kind.version, kind.kind, request.sub_resource, request.operation))
    if handler is None:
        return Answer(verdict=review.UNCHANGED, outcome="unchanged")
    try:
        for version in (request.object, request.old_object):
            cost.check(version)
        verdict = handler(request)
    except _UNREADABLE as error:
        verdict = _unread(request, str(error))
        if verdict.refusals:
            return answered(verdict)
        warning = f"mpijob-elastic could not read this {request.kind.kind[:32]} and let it pass: {error}"
        return Answer(verdict=Verdict(warnings=(warning,)), outcome="unreadable")
    return answered(verdict)


def _unread(request: Request, why: str) -> Verdict:
    if request.kind.kind != MPI_JOBS.kind or request.sub_resource:
        return review.UNCHANGED
    try:
        return validate.unread(request, why)
    except _UNREADABLE:
        return review.UNCHANGED


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

    taken = tuple(chain.from_iterable(one.taken for one in context.rooms))

    def pod_created(request: Request) -> Verdict:
        pod = pods.decode(request.object)
        owner = pod.metadata.controller
        job = context.job(request.namespace, owner.name) if owner else None
        if (
            job
            and job.skips
            and (emptied := next(filter(None, (one.placeholder(pod, job) for one in context.rooms)), ()))
        ):
            return Verdict(patch=(*pod_security.restored(pod, job), *emptied))
        changes = (
            mutate.launcher(pod, job),
            mutate.edl_mount(pod),
            pod_templates.missing_labels(pod, job, taken=taken),
            pod_security.restored(pod, job),
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
        if job is None or asked < 1 or not size.is_of(scale, job):
            return review.UNCHANGED
        for one in context.rooms:
            after = one.scaled(job, after, user=request.user_info.username)
        return review.UNCHANGED if after == asked else Verdict(patch=mutate.size(after))

    return {
        _kind(CREATE, PODS): pod_created,
        _kind(CREATE, CONFIG_MAPS): config_created,
        _kind(UPDATE, MPI_JOBS, "status"): status_updated,
        _kind(UPDATE, size.SCALES, "scale"): scaled,
    }


def validating(context: ReviewContext) -> Mapping[Kind, Handler]:
    """Return the handlers for /validate."""

    def job_created(request: Request) -> Verdict:
        job = mpijob.decode(request.object)
        new = _kept(capabilities.of(job))
        short = _shortages(context, request, new, more=new.workers)
        return _with(
            validate.created(job, new, context.rooms),
            *_doubts(context, job, new, None),
            *short,
            wrong=_mistakes(context, job, new, None),
        )

    def job_updated(request: Request) -> Verdict:
        job, before = mpijob.decode(request.object), mpijob.decode(request.old_object)
        if job.metadata.deleting:
            return review.UNCHANGED
        new, old = capabilities.of(job), capabilities.of(before)
        if request.user_info.username != names.CONTROLLER_USER:
            _kept(new, old)
        verdict = validate.updated(job, before, new=new, old=old, rooms=context.rooms, dry_run=request.dry_run)
        wrong = _mistakes(context, job, new, old)
        if old.finished:
            return _with(verdict, wrong=wrong)
        told = (
            *_doubts(context, job, new, old),
            *_shortages(context, request, new, more=new.workers - old.workers),
        )
        if old.reported and (old.elastic or new.elastic):
            queued = names.GATE_QUEUED in new.gates
            told += pod_templates.changed(request.object, request.old_object, queued=queued)
        return _with(verdict, *told, wrong=wrong)

    job_judged = partial(operator_faults.judged, job_created, job_updated)

    def scaled(request: Request) -> Verdict:
        after, before = _scales.decode(request.object), _scales.decode(request.old_object)
        job = context.job(request.namespace, request.name)
        verdict = size.scaled(after, before, job, dry_run=request.dry_run)
        if job and verdict.allowed and after.spec.replicas != before.spec.replicas and size.is_of(after, job):
            wrong = (
                fault for one in context.rooms for fault in one.scale_refusals(job, job.workers_of(after.spec.replicas))
            )
            verdict = _with(verdict, wrong=wrong)
        return _with(verdict, *_shortages(context, request, job, more=after.spec.replicas - before.spec.replicas))

    return {
        _kind(CREATE, MPI_JOBS): job_judged,
        _kind(UPDATE, MPI_JOBS): job_judged,
        _kind(UPDATE, size.SCALES, "scale"): scaled,
    }


def _kept(new: JobFacts, old: JobFacts | None = None) -> JobFacts:
    """Return the facts of a job. Raises `TooLarge` where we could not keep those of one in a queue, and write to it."""
    return job_facts.kept_later(new, before=old) if new.queued else new


def _doubts(context: ReviewContext, job: MPIJob, new: JobFacts, old: JobFacts | None) -> Iterator[str]:
    for one in context.rooms:
        yield from one.warnings(job, new, old, context.lookup)


def _mistakes(context: ReviewContext, job: MPIJob, new: JobFacts, old: JobFacts | None) -> Iterator[Refusal]:
    for one in context.rooms:
        yield from one.refusals(job, new, old, context.lookup)


def _shortages(context: ReviewContext, request: Request, job: JobFacts | None, *, more: int) -> tuple[str, ...]:
    if job is None or more <= 0:  # most edits leave the size alone, and a cluster may have many quotas
        return ()
    return tuple(quota.shortages(job, context.quotas(request.namespace), more=more))


def _kind(operation: str, resource: Resource, sub_resource: str = "") -> Kind:
    return resource.group, resource.version, resource.kind, sub_resource, operation


def _with(verdict: Verdict, *warnings: str, wrong: Iterable[Refusal] = ()) -> Verdict:
    return replace(verdict, warnings=(*verdict.warnings, *warnings), refusals=(*verdict.refusals, *wrong))
