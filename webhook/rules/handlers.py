"""Handlers: one for each kind that the webhook configurations name; pure.

/mutate only ever adds or replaces fields of ours, so it never refuses. /validate refuses only mistakes in fields of
ours, and a job that stops the operator for all jobs. Any other object that we cannot decode passes with a warning: what
the API server accepts must not fail because of us.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain

import msgspec

from mpijob_elastic import capabilities, names
from mpijob_elastic.kube import cost
from mpijob_elastic.kube.resources import CONFIG_MAPS, MPI_JOBS, PODS, Resource
from mpijob_elastic.model import mpijob
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.mpijob import MPIJob
from webhook.rules import (
    mutate,
    operator_faults,
    pod_security,
    pod_templates,
    quota,
    review,
    scheduling_gates,
    size,
    validate,
    worker_grace,
)
from webhook.rules.context import Answer, ReviewContext, answered
from webhook.rules.review import CREATE, UPDATE, Refusal, Request, Verdict

Handler = Callable[[Request], Verdict]
# Group, version, kind, the subresource or "", and the operation.
Kind = tuple[str, str, str, str, str]


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
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        warning = f"mpijob-elastic could not read this {request.kind.kind[:32]} and let it pass: {error}"
        return Answer(verdict=Verdict(warnings=(warning,)), outcome="unreadable")
    return answered(verdict)


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
        changes = (
            mutate.launcher(pod, job),
            pod_templates.missing_labels(pod, job, taken=taken),
            pod_security.restored(pod, job),
            scheduling_gates.missing(pod, job),
            worker_grace.fitting(pod, job),
        )
        own = (one.patched(pod, job) for one in context.rooms) if job else ()
        return Verdict(patch=tuple(chain(*changes, *own)))

    def status_updated(request: Request) -> Verdict:
        return Verdict(patch=mutate.selector(mpijob.decode(request.object)))

    return {
        _kind(CREATE, PODS): pod_created,
        _kind(CREATE, CONFIG_MAPS): config_created,
        _kind(UPDATE, MPI_JOBS, "status"): status_updated,
    }


def validating(context: ReviewContext) -> Mapping[Kind, Handler]:
    """Return the handlers for /validate."""
    scales = msgspec.json.Decoder(size.Scale)

    def job_created(request: Request) -> Verdict:
        job = mpijob.decode(request.object)
        new = capabilities.of(job)
        doubts = (said for one in context.rooms for said in one.warnings(job, new, context.lookup))
        verdict = _with(validate.created(job, new, context.rooms), tuple(doubts))
        verdict = _with(verdict, _shortages(context, request, new, more=new.replicas))
        return _refusing(verdict, _mistakes(context, job, new, None))

    def job_updated(request: Request) -> Verdict:
        job, before = mpijob.decode(request.object), mpijob.decode(request.old_object)
        if job.metadata.deleting or before.finished:
            return review.UNCHANGED
        new, old = capabilities.of(job), capabilities.of(before)
        verdict = validate.updated(job, before, new=new, old=old, rooms=context.rooms, dry_run=request.dry_run)
        verdict = _with(verdict, _shortages(context, request, new, more=new.replicas - old.replicas))
        verdict = _refusing(verdict, _mistakes(context, job, new, old))
        matters = old.reported and (old.elastic or new.elastic)
        if not matters:
            return verdict
        return _with(
            verdict, pod_templates.changed(request.object, request.old_object, queued=names.GATE_QUEUED in new.gates)
        )

    job_judged = partial(operator_faults.judged, job_created, job_updated)

    def scaled(request: Request) -> Verdict:
        after, before = scales.decode(request.object), scales.decode(request.old_object)
        job = context.job(request.namespace, request.name)
        verdict = size.scaled(after, before, job, dry_run=request.dry_run)
        return _with(verdict, _shortages(context, request, job, more=after.spec.replicas - before.spec.replicas))

    return {
        _kind(CREATE, MPI_JOBS): job_judged,
        _kind(UPDATE, MPI_JOBS): job_judged,
        _kind(UPDATE, size.SCALES, "scale"): scaled,
    }


def _mistakes(context: ReviewContext, job: MPIJob, new: JobFacts, old: JobFacts | None) -> Iterator[Refusal]:
    for one in context.rooms:
        yield from one.refusals(job, new, old, context.lookup)


def _shortages(context: ReviewContext, request: Request, job: JobFacts | None, *, more: int) -> tuple[str, ...]:
    if job is None or more <= 0:  # most edits leave the size alone, and a cluster may have many quotas
        return ()
    return tuple(quota.shortages(job, context.quotas(request.namespace), more=more))


def _kind(operation: str, resource: Resource, sub_resource: str = "") -> Kind:
    return resource.group, resource.version, resource.kind, sub_resource, operation


def _refusing(verdict: Verdict, refusals: Iterable[Refusal]) -> Verdict:
    return replace(verdict, refusals=(*verdict.refusals, *refusals))


def _with(verdict: Verdict, warnings: tuple[str, ...]) -> Verdict:
    return replace(verdict, warnings=(*verdict.warnings, *warnings)) if warnings else verdict
