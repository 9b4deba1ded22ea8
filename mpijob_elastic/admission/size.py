"""Rules of a job's size, and ResourceQuotas that are too small for it; pure.

The rules hold for edits of the MPIJob and of its scale subresource. Texts are short, because
kubectl shows each warning on one line: https://kubernetes.io/blog/2020/09/03/warnings/ recommends
120 characters.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import msgspec

from mpijob_elastic import names
from mpijob_elastic.admission.review import MOST, Refusal
from mpijob_elastic.kube.meta import Identity, ObjectMeta
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.model import devices, phrases, requests
from mpijob_elastic.model.bounds import MOST_WORKERS
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.json_parts import Wire
from mpijob_elastic.model.launch_command import MPIRUN

# The most workers that are named; the rest is counted.
_NAMED = 3
# The largest size of an elastic job that names none: this many workers, or this many times its
# --max-np if that is more. [operator] The operator makes all workers of a size in one go, 5 a
# second, so a typing error in the size holds up all jobs for hours.
_LARGE, _LARGER = 1_000, 10
SCALES = Resource(group="autoscaling", version="v1", plural="mpijobs/scale", kind="Scale")
WORKER_FIELD = "spec.mpiReplicaSpecs.Worker"
REPLICAS_FIELD = f"{WORKER_FIELD}.replicas"
SCALE_FIELD = "spec.replicas"
# The effect of a smaller and of a larger size on a job that is not elastic.
KEPT = "this job is not elastic, so its surplus workers keep running"
UNUSED = "this job is not elastic, so no rank runs in the new workers, which hold their resources"
UNKNOWN = "mpijob-elastic does not know this job yet, so its bounds were not checked"


def bounds(job: JobFacts) -> tuple[int, int]:
    """Return the smallest and the largest size of a job; 0 if there is no smallest size."""
    if job.policy.enabled is False:
        return 0, MOST_WORKERS
    low = job.policy.min_replicas or 0
    usual = max(_LARGE, _LARGER * job.max_np_workers, low) if job.elastic else MOST_WORKERS
    return low, min(job.policy.max_replicas or usual, MOST_WORKERS)


def excess(replicas: int, job: JobFacts) -> int:
    """Return the number of workers by which a size is out of bounds.

    The size 0 has a rule of its own (`zero_refusal`).
    """
    if replicas == 0 and job.policy.zero_suspends:
        return 0
    low, high = bounds(job)
    return max(low - replicas if low else 0, replicas - high, 0)


def refusal(
    replicas: int, job: JobFacts, *, before: int = 0, field: str, had_bounds: bool
) -> Refusal | None:
    """Return the refusal of a size that is out of bounds, with the bound and its source.

    field: the path of the size. had_bounds: the job had these bounds before, so a command
    can set others. None if the size is within bounds, or no further out of bounds than the size
    `before` was (see `excess`).
    """
    low, high = bounds(job)
    if excess(replicas, job) <= before:
        return None
    annotation = f"metadata.annotations[{names.MAX_REPLICAS}]"
    sizes = f"{low or 1} to {high}"
    option = "--min" if replicas <= high else "--max"
    by = _by_command(job, f"{option} {replicas}") if had_bounds else ""
    more = f", or change the annotation{by}"
    if replicas <= high:
        why = f"below metadata.annotations[{names.MIN_REPLICAS}] ({low})"
        sizes = sizes if job.policy.max_replicas else f"{low} or more"
    elif high == MOST_WORKERS:
        why, more = f"above {high}, the largest size", ""
    elif job.policy.max_replicas:
        why = f"above {annotation} ({high})"
    else:
        why, more = (
            f"above {high}, the largest size without {annotation}",
            ", or set the annotation",
        )
    return Refusal(field=field, message=f"{replicas} is {why}; use {sizes}{more}")


def _by_command(job: JobFacts, options: str) -> str:
    """Return the command that changes a bound, as the end of a sentence; "" if it refuses to."""
    if not job.acts_elastic:
        return ""
    on = f"{job.metadata.name} -n {job.metadata.namespace}"
    return f": `{names.PROGRAM} set bounds {on} {options}`"


def zero_refusal(job: JobFacts, *, field: str) -> Refusal | None:
    """Return the refusal of the size 0; None if 0 suspends the job."""
    found = (why for why, holds in _against_zero(job) if holds)
    message = next(found, None)
    return Refusal(field=field, message=message) if message else None


def _against_zero(job: JobFacts) -> Iterator[tuple[str, bool]]:
    """Yield each reason against the size 0, and whether it holds."""
    yield (
        f"0 is below 1, the smallest size that mpi-operator accepts; annotate the job "
        f"{names.SCALE_TO_ZERO}: suspend, so that 0 suspends it, or delete the job to stop it",
        not job.policy.zero_suspends,
    )
    then = "0 suspends the job"
    yield f"{then}, and only an elastic job can be suspended", not job.acts_elastic
    yield (
        f"{then}, and pods whose template names their node cannot wait; use nodeSelector",
        job.names_node,
    )
    yield f"{then}, but this job is in a queue, which decides when it runs", job.queued
    yield f"{then}, but some of its workers are parked; bring them back first", bool(job.skips)
    # [operator] The Role of a job that starts without workers names none, and so allows exec into
    # all pods.
    yield (
        f"{then}, but mpi-operator has not started it; set {names.SUSPEND}, and a size of at "
        "least 1",
        not job.reported,
    )


def doubts(job: JobFacts, replicas: int) -> Iterator[str]:
    """Yield warnings on the limits of the driver's options, if that size does not fit them."""
    launch = job.launch
    if launch is None or launch.program in MPIRUN or launch.refusal:
        return
    if not job.elastic or job.is_at_zero:
        return
    slots, least = replicas * job.slots, launch.effective_min_np
    if launch.max_np is not None and slots > launch.max_np:
        unused = slots - launch.max_np
        stay = "stays" if unused == 1 else "stay"
        yield (
            f"{launch.program}'s --max-np is {launch.max_np}, but {_asked(slots)}: "
            f"{unused} {stay} unused"
        )
    if least is not None and slots < least:
        option = f"{launch.program}'s {launch.least_option}"
        yield f"{option} is {least}, but {_asked(slots)}: training waits for more"


def _asked(slots: int) -> str:
    return "1 slot is asked for" if slots == 1 else f"{slots} slots are asked for"


def change(job: JobFacts, *, before: int, after: int) -> str | None:
    """Return a sentence on the effect of scaling; None if nothing changes."""
    if before == after:
        return None
    scale = f"would scale {before}→{after}"
    if not job.reported:
        return f"{scale} before the job starts"
    if after == 0 and job.policy.zero_suspends:
        return f"{scale}: the job is suspended, and its pods go"
    grows, count = after > before, abs(after - before)
    indices = range(before, after) if grows else range(after, before)[::-1]
    workers = ", ".join(f"worker-{index}" for index in indices[:_NAMED])
    if count > _NAMED:
        workers += f" and {count - _NAMED} more"
    ending, verb = ("s", "is") if count == 1 else ("", "are")
    if not job.acts_elastic:
        does = f"start{ending} unused" if grows else f"keep{ending} running"
        return f"{scale}: {workers} {does}, because the job is not elastic"
    if grows:
        return f"{scale}: {workers} {verb} created, and published once Ready"
    limit = phrases.duration(job.policy.drain_timeout)
    return f"{scale}: {workers} drain{ending} for at most {limit}, then {verb} deleted"


class ScaleSpec(Wire, frozen=True):
    """`spec`; an absent size means 0."""

    replicas: int = 0


class ScaleObject(Wire, frozen=True):
    """An autoscaling/v1 Scale: its metadata is the job's."""

    metadata: ObjectMeta
    spec: ScaleSpec = ScaleSpec()


class _ScopedBy(Wire, frozen=True):
    scope_name: str = ""


class _ScopeSelector(Wire, frozen=True):
    match_expressions: list[_ScopedBy] | None = None


class _QuotaSpec(Wire, frozen=True):
    scopes: list[str] | None = None
    scope_selector: _ScopeSelector | None = None

    def scope_names(self) -> frozenset[str]:
        selected = (self.scope_selector and self.scope_selector.match_expressions) or ()
        return frozenset((*(self.scopes or ()), *(one.scope_name for one in selected)))


class _Quota(Wire, frozen=True):
    metadata: Identity
    spec: _QuotaSpec = _QuotaSpec()
    status: dict[str, Any] = msgspec.field(default_factory=dict)


class QuotaFacts(Wire, frozen=True):
    """A ResourceQuota."""

    metadata: Identity
    #: What the quota has left, by its keys; none if the quota has scopes, because only some pods
    #: count there.
    left: Mapping[str, int]
    #: True if only pods without requests and limits count there (scope BestEffort).
    best_effort: bool = False


_quotas = msgspec.json.Decoder(_Quota)
_BEST_EFFORT = "BestEffort"


def read_quota(raw: bytes) -> QuotaFacts:
    """Return the quota in its JSON. Raises msgspec.DecodeError for anything else.

    https://kubernetes.io/docs/concepts/policy/resource-quotas/
    """
    quota = _quotas.decode(raw)
    hard, used = (requests.readable(quota.status.get(part)) for part in ("hard", "used"))
    has_scopes = quota.spec.scopes or quota.spec.scope_selector
    left = {} if has_scopes else {name: amount - used[name] for name, amount in hard.items()}
    best_effort = _BEST_EFFORT in quota.spec.scope_names()
    return QuotaFacts(metadata=quota.metadata, left=left, best_effort=best_effort)


def shortages(job: JobFacts, quotas: Iterable[QuotaFacts], *, more: int) -> Iterator[str]:
    """Yield a warning for each of the first few amounts that do not suffice for `more` workers.

    Nothing is refused: others may free what lacks, and quotas are changed.
    """
    every = ((quota.metadata.name, *amount) for quota in quotas for amount in quota.left.items())
    asked = ((name, key, left, job.worker_counts.get(key, 0) * more) for name, key, left in every)
    for name, key, left, asks in islice(
        (found for found in asked if 0 < found[3] > found[2]), MOST
    ):
        has, need = requests.rendered(max(0, left)), requests.rendered(asks)
        who, fails = f"{more} more workers need", "some"
        if more == 1:
            who, fails = "1 more worker needs", "it"
        yield (
            f"ResourceQuota {name} has {has} {key} left, and {who} {need}: {fails} will not be "
            f"{_fate(key)}"
        )


def _fate(key: str) -> str:
    """Return what a pod lacks whose ResourceQuota is used up.

    The devices of a class count for the claim that the scheduler makes once it has found a node.
    """
    return "scheduled" if key.endswith(devices.CLASS_QUOTA) else "created"
