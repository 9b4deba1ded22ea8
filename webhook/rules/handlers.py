"""Which function answers for which kind and subresource: one table for /mutate, one for /validate.

Whatever a handler cannot read it lets through unchanged, with a warning that says why: an object that the API server
accepts must never fail because of us.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

import msgspec

from mpijob_elastic.kube.resources import CONFIG_MAPS, MPI_JOBS, PODS, Resource
from mpijob_elastic.model.mpijob import MPIJob
from webhook.rules import (
    hpa_facts,
    hpa_fit,
    job_size,
    mutate,
    pod_templates,
    review,
    scale,
    selector,
    startup_hostfile,
    validate,
)
from webhook.rules.hpa_facts import AUTOSCALERS
from webhook.rules.json_patch import Patch
from webhook.rules.pod_templates import Templates
from webhook.rules.review import Request, Verdict
from webhook.rules.review_context import NOTHING, ReviewContext
from webhook.rules.scale import Scale

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A verdict and one word for what it was, for metrics and logs."""

    verdict: Verdict
    outcome: str


Handler = Callable[[Request], Verdict]
# Group, version, kind, and the subresource or "".
Kind = tuple[str, str, str, str]


def answer(request: Request, handlers: Mapping[Kind, Handler]) -> Answer:
    """Answer one request: unchanged where no handler is for it, let through where its objects cannot be read."""
    kind = request.kind
    handler = handlers.get((kind.group, kind.version, kind.kind, request.sub_resource))
    if handler is None:
        return Answer(verdict=review.UNCHANGED, outcome="unchanged")
    try:
        verdict = handler(request)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        warning = f"mpijob-elastic let this {request.kind.kind[:32]} through unread: {error}"
        return Answer(verdict=Verdict(warnings=(warning,)), outcome="unreadable")
    return Answer(verdict=verdict, outcome=_outcome(verdict))


def _outcome(verdict: Verdict) -> str:
    if not verdict.allowed:
        return "rejected"
    if verdict.patch:
        return "patched"
    return "warned" if verdict.warnings else "unchanged"


def _kind(resource: Resource, sub_resource: str = "") -> Kind:
    return resource.group, resource.version, resource.kind, sub_resource


def _changing(operation: str, shape: type[T], change: Callable[[T], Patch]) -> Handler:
    decoder = msgspec.json.Decoder(shape)

    def handle(request: Request) -> Verdict:
        if request.operation != operation:
            return review.UNCHANGED
        return Verdict(patch=change(decoder.decode(request.object)))

    return handle


def _config_map(context: ReviewContext) -> Handler:
    decoder = msgspec.json.Decoder(mutate.ConfigMap)

    def handle(request: Request) -> Verdict:
        if request.operation != review.CREATE:
            return review.UNCHANGED
        config = decoder.decode(request.object)
        patch, owner = mutate.config_map(config), config.metadata.controller
        if not patch or owner is None:
            return Verdict(patch=patch)
        job = context.job(request.namespace, owner.name)
        return Verdict(patch=(*patch, *startup_hostfile.shortened(config, job)))

    return handle


def _mpi_job(context: ReviewContext) -> Handler:
    def handle(request: Request) -> Verdict:
        if request.operation == review.CREATE:
            return _created(request, context)
        if request.operation == review.UPDATE:
            return _updated(request, context)
        return review.UNCHANGED

    return handle


def _created(request: Request, context: ReviewContext) -> Verdict:
    job = _mpi_jobs.decode(request.object)
    verdict, scaling = validate.created(job), context.autoscalers(request.namespace, request.name)
    return _with(verdict, hpa_fit.of_job(job_size.of(job), scaling, now=context.now())) if scaling else verdict


def _updated(request: Request, context: ReviewContext) -> Verdict:
    job, before, now = _mpi_jobs.decode(request.object), _mpi_jobs.decode(request.old_object), context.now()
    verdict = validate.updated(job, before, now=now, dry_run=request.dry_run)
    if before.finished or job.metadata.deleting:
        return verdict
    scaling = context.autoscalers(request.namespace, request.name)
    if scaling:
        found = (hpa_fit.of_job(job_size.of(one), scaling, now=now) for one in (job, before))
        verdict = _with(verdict, hpa_fit.new(*found))
    changes = tuple(pod_templates.changed(_templates.decode(request.object), _templates.decode(request.old_object)))
    said = changes and job_size.of(before).started and job_size.of(job).elastic
    return _with(verdict, changes) if said else verdict


def _with(verdict: Verdict, warnings: Iterable[str]) -> Verdict:
    return replace(verdict, warnings=(*verdict.warnings, *warnings))


def _autoscaler(context: ReviewContext) -> Handler:
    def said(request: Request, raw: msgspec.Raw, now: datetime) -> Iterable[str]:
        one = hpa_facts.read(raw)
        if not one.scales_mpi_job:
            return ()
        where = request.namespace, one.spec.scale_target_ref.name
        there, job = context.autoscalers(*where), context.job(*where)
        return hpa_fit.of_autoscaler(one, there=there, job=job, now=now)

    def handle(request: Request) -> Verdict:
        now = context.now()
        if request.operation == review.CREATE:
            return Verdict(warnings=tuple(said(request, request.object, now)))
        if request.operation == review.UPDATE:
            before, after = (said(request, raw, now) for raw in (request.old_object, request.object))
            return Verdict(warnings=hpa_fit.new(after, before))
        return review.UNCHANGED

    return handle


def _scale(context: ReviewContext) -> Handler:
    decoder = msgspec.json.Decoder(Scale)

    def handle(request: Request) -> Verdict:
        if request.operation != review.UPDATE:
            return review.UNCHANGED
        after, before = decoder.decode(request.object), decoder.decode(request.old_object)
        job = context.job(request.namespace, request.name)
        return scale.updated(after, before, job, now=context.now(), dry_run=request.dry_run)

    return handle


def mutating(context: ReviewContext) -> Mapping[Kind, Handler]:
    """The table for /mutate."""
    return {
        _kind(PODS): _changing(review.CREATE, mutate.Pod, mutate.launcher),
        _kind(CONFIG_MAPS): _config_map(context),
        _kind(MPI_JOBS, "status"): _changing(review.UPDATE, MPIJob, selector.restore),
    }


def validating(context: ReviewContext) -> Mapping[Kind, Handler]:
    """The table for /validate."""
    return {
        _kind(MPI_JOBS): _mpi_job(context),
        _kind(scale.SCALES, "scale"): _scale(context),
        _kind(AUTOSCALERS): _autoscaler(context),
    }


_mpi_jobs = msgspec.json.Decoder(MPIJob)
_templates = msgspec.json.Decoder(Templates)

MUTATING = mutating(NOTHING)
VALIDATING = validating(NOTHING)
