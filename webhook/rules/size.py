"""Rules of a job's size, for edits of the MPIJob and of its scale subresource; pure.

Texts are short, because kubectl shows each warning on one line: https://kubernetes.io/blog/2020/09/03/warnings/
recommends 120 characters.

The review of a scale, by `kubectl scale`, an HPA, or any other client of mpijobs/scale, holds only the size, so the job
comes from the watch cache. An unknown job is let through with a warning: the controller checks every rule that safety
needs.
"""

from collections.abc import Iterator

from mpijob_elastic import names
from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.model import durations
from mpijob_elastic.model.bounds import MOST_WORKERS
from mpijob_elastic.model.horovodrun import HOROVODRUN
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.wire import Wire
from webhook.rules.review import Refusal, Verdict

# So many workers are named; the rest is counted.
_NAMED = 3
# The largest size of an elastic job that names none: so many workers, or so many times its --max-np if that is more.
# [operator] makes all workers of a size in one go, 5 a second: a typing error in it holds up all jobs for hours.
_LARGE, _LARGER = 1_000, 10
SCALES = Resource(group="autoscaling", version="v1", plural="mpijobs/scale", kind="Scale")
REPLICAS_FIELD = "spec.mpiReplicaSpecs.Worker.replicas"
SCALE_FIELD = "spec.replicas"
UNKNOWN = "mpijob-elastic does not know this job yet, so its bounds were not checked"


def bounds(job: JobFacts) -> tuple[int, int]:
    """Return the smallest and the largest size of a job; 0 if nothing says how small."""
    if job.policy.enabled is False:
        return 0, MOST_WORKERS
    low = job.policy.min_replicas or 0
    usual = max(_LARGE, _LARGER * job.max_np_workers, low) if job.elastic else MOST_WORKERS
    return low, min(job.policy.max_replicas or usual, MOST_WORKERS)


def largest(job: JobFacts, *, annotation: str = names.MAX_REPLICAS) -> str:
    """Return the largest size and its source, in words."""
    _, high = bounds(job)
    if high == MOST_WORKERS:
        return f"{high}, the largest size"
    return f"{annotation} ({high})" if job.policy.max_replicas else f"{high}, the largest size without {annotation}"


def excess(replicas: int, job: JobFacts) -> int:
    """Return by how many workers a size is out of bounds."""
    low, high = bounds(job)
    return max(low - replicas if low else 0, replicas - high, 0)


def refusal(replicas: int, job: JobFacts, *, before: int = 0, field: str) -> Refusal | None:
    """Return why a size at the path `field` is out of bounds, with the bound and its source.

    None if it is within, or comes no further out of bounds than it was `before` (see `excess`).
    """
    low, high = bounds(job)
    if excess(replicas, job) <= before:
        return None
    why, verb = f"below metadata.annotations[{names.MIN_REPLICAS}] ({low})", "change"
    if replicas > high:
        why = f"above {largest(job, annotation=f'metadata.annotations[{names.MAX_REPLICAS}]')}"
        verb = "change" if job.policy.max_replicas else "set"
    more = "" if replicas > high == MOST_WORKERS else f", or {verb} the annotation"
    return Refusal(field=field, message=f"{replicas} is {why}; use {low or 1} to {high}{more}")


def doubts(job: JobFacts, replicas: int) -> Iterator[str]:
    """Yield what horovodrun's own limits make of that size."""
    launch = job.launch
    if launch is None or launch.program != HOROVODRUN or not job.elastic:
        return
    slots, least = replicas * job.slots, launch.effective_min_np
    if launch.max_np is not None and slots > launch.max_np:
        unused = slots - launch.max_np
        yield f"horovodrun's --max-np is {launch.max_np}, but {slots} slots are asked for: {unused} stay unused"
    if least is not None and slots < least:
        option = "-np" if launch.min_np is None else "--min-np"
        yield f"horovodrun's {option} is {least}, but {slots} slots are asked for: training waits for more"


def change(job: JobFacts, *, before: int, after: int) -> str | None:
    """Return what scaling would do; None if nothing changes."""
    if before == after:
        return None
    scale = f"would scale {before}→{after}"
    if not job.reported:
        return f"{scale} before the job starts"
    return f"{scale}: {_grow(job, range(before, after)) if after > before else _shrink(job, range(after, before))}"


def _grow(job: JobFacts, new: range) -> str:
    if not job.elastic:
        return f"{_few(new)} {_verb(new, 'starts', 'start')} unused, because the job is not elastic"
    return f"{_few(new)} {_verb(new, 'is', 'are')} created, and published once Ready"


def _shrink(job: JobFacts, gone: range) -> str:
    workers = _few(gone[::-1])
    if not job.elastic:
        return f"{workers} {_verb(gone, 'keeps', 'keep')} running, because the job is not elastic"
    limit = durations.render(job.policy.drain_timeout)
    return f"{workers} {_verb(gone, 'drains', 'drain')} for at most {limit}, then {_verb(gone, 'is', 'are')} deleted"


def _few(indices: range) -> str:
    rest = _count(indices) - _NAMED
    return ", ".join(f"worker-{index}" for index in indices[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def _verb(indices: range, singular: str, plural: str) -> str:
    return singular if _count(indices) == 1 else plural


def _count(indices: range) -> int:
    # len() fails beyond 2**63, and a size may be any number.
    return abs(indices.stop - indices.start)


class ScaleSpec(Wire, frozen=True):
    """`spec`; an absent size means 0."""

    replicas: int = 0


class Scale(Wire, frozen=True):
    """An autoscaling/v1 Scale: its metadata is the job's."""

    metadata: ObjectMeta
    spec: ScaleSpec = ScaleSpec()


def scaled(scale: Scale, before: Scale, job: JobFacts | None, *, dry_run: bool) -> Verdict:
    """Return the verdict on a changed Scale; `job` is its MPIJob as last seen."""
    after = scale.spec.replicas
    if after == before.spec.replicas:
        return Verdict()
    if job is None or job.metadata.uid != scale.metadata.uid:
        return Verdict(warnings=(UNKNOWN,))
    if job.deleting:
        return Verdict()
    refused = _scale_refusal(job, after, before=before.spec.replicas)
    if refused:
        return Verdict(refusals=(refused,))
    shown = change(job, before=before.spec.replicas, after=after) if dry_run else None
    if not shown and after < before.spec.replicas and job.reported and not job.elastic:
        shown = "this job is not elastic, so its surplus workers keep running"
    return Verdict(warnings=(*((shown,) if shown else ()), *doubts(job, job.workers_of(after))))


def is_of(scale: Scale, job: JobFacts) -> bool:
    """Tell whether a Scale is that of this job, which goes on."""
    return scale.metadata.uid == job.metadata.uid and not (job.deleting or job.finished)


def _scale_refusal(job: JobFacts, replicas: int, *, before: int) -> Refusal | None:
    if job.finished:
        over = f"{replicas} is too late: the job has finished; create it again to run it at that size"
        return Refusal(field=SCALE_FIELD, message=over)
    if replicas < 1:
        few = f"{replicas} is below 1, the smallest size that mpi-operator accepts; delete the job to stop it"
        return Refusal(field=SCALE_FIELD, message=few)
    before = excess(job.workers_of(before), job)
    return refusal(job.workers_of(replicas), job, before=before, field=SCALE_FIELD)
