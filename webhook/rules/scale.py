"""Validate a scale by `kubectl scale`, an HPA, or any other client of mpijobs/scale; pure.

The review holds only the size, so the job comes from the watch cache. An unknown job is let through with a warning: the
controller checks every rule that safety needs.
"""

from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.wire import Wire
from webhook.rules import size
from webhook.rules.review import Refusal, Verdict

FIELD = "spec.replicas"
SCALES = Resource(group="autoscaling", version="v1", plural="mpijobs/scale", kind="Scale")
UNKNOWN = "mpijob-elastic does not know this job yet, so its bounds were not checked"


class ScaleSpec(Wire, frozen=True):
    """`spec`; an absent size means 0."""

    replicas: int = 0


class Scale(Wire, frozen=True):
    """An autoscaling/v1 Scale: its metadata is the job's."""

    metadata: ObjectMeta
    spec: ScaleSpec = ScaleSpec()


def updated(scale: Scale, before: Scale, job: JobFacts | None, *, dry_run: bool) -> Verdict:
    """Return the verdict on a changed Scale; `job` is its MPIJob as last seen."""
    after = scale.spec.replicas
    if after == before.spec.replicas:
        return Verdict()
    if job is None or job.metadata.uid != scale.metadata.uid:
        return Verdict(warnings=(UNKNOWN,))
    if job.deleting:
        return Verdict()
    refusal = _refusal(job, after, before=before.spec.replicas)
    if refusal:
        return Verdict(refusals=(refusal,))
    shown = size.change(job, before=before.spec.replicas, after=after) if dry_run else None
    if not shown and after < before.spec.replicas and job.reported and not job.elastic:
        shown = "this job is not elastic, so its surplus workers keep running"
    return Verdict(warnings=(*((shown,) if shown else ()), *size.doubts(job, after)))


def _refusal(job: JobFacts, replicas: int, *, before: int) -> Refusal | None:
    if job.finished:
        over = f"{replicas} is too late: the job has finished; create it again to run it at that size"
        return Refusal(field=FIELD, message=over)
    if replicas < 1:
        few = f"{replicas} is below 1, the smallest size that mpi-operator accepts; delete the job to stop it"
        return Refusal(field=FIELD, message=few)
    return size.refusal(replicas, job, before=size.excess(before, job), field=FIELD)
