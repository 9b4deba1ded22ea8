"""What is said of a scale: `kubectl scale`, an HPA, or any other client of mpijobs/scale; pure.

The review holds nothing but the size, so the job is looked up among those that are kept. One that is not known is let
through with a warning: the controller holds every rule that safety needs.
"""

from __future__ import annotations

from datetime import datetime

from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.model.mpijob import Wire
from webhook.rules import deadline, preview, size_bounds
from webhook.rules.job_size import JobSize
from webhook.rules.review import Refusal, Verdict

FIELD = "spec.replicas"
SCALES = Resource(group="autoscaling", version="v1", plural="mpijobs/scale", kind="Scale")
UNKNOWN = "mpijob-elastic does not know this job, so its bounds were not checked"


class ScaleSpec(Wire, frozen=True):
    """`spec`; absent means 0."""

    replicas: int = 0


class Scale(Wire, frozen=True):
    """An autoscaling/v1 Scale: its metadata are the job's."""

    metadata: ObjectMeta
    spec: ScaleSpec = ScaleSpec()


def updated(scale: Scale, before: Scale, job: JobSize | None, *, now: datetime, dry_run: bool) -> Verdict:
    """The verdict on a changed Scale; `job` is the MPIJob behind it as last seen."""
    after = scale.spec.replicas
    if after == before.spec.replicas:
        return Verdict()
    if job is None or job.metadata.uid != scale.metadata.uid:
        return Verdict(warnings=(UNKNOWN,))
    if job.deleting:
        return Verdict()
    refusal = _refusal(job, after)
    if refusal:
        return Verdict(refusals=(refusal,))
    shown = preview.change(job, before=before.spec.replicas, after=after) if dry_run else None
    kept = _kept(job, before=before.spec.replicas, after=after)
    late = deadline.growth(job, before=before.spec.replicas, after=after, now=now)
    return Verdict(warnings=(*((shown,) if shown else kept), *preview.doubts(job, after), *late))


def _refusal(job: JobSize, replicas: int) -> Refusal | None:
    if job.finished:
        over = f"{replicas} is too late: the job has finished; create it anew to run it at that size"
        return Refusal(field=FIELD, message=over)
    if replicas < 1:
        few = f"{replicas} is below 1, the fewest workers that mpi-operator accepts; delete the job to stop it"
        return Refusal(field=FIELD, message=few)
    return size_bounds.refusal(replicas, job.policy, field=FIELD)


def _kept(job: JobSize, *, before: int, after: int) -> tuple[str, ...]:
    if after < before and job.started and not job.elastic:
        return ("this job is not elastic, so its surplus workers keep running",)
    return ()
