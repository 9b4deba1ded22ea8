"""Parking at admission: placeholders for parked workers, and refusals of impossible parking; pure.

A LimitRange refuses a placeholder, because the placeholder asks for 0: `min` refuses any request
below it, and `maxLimitRequestRatio` refuses a request of 0. It does not matter if a worker names
the resource: the API server refuses a pod that does not, or fills in a default before the webhook
makes it 0.
https://github.com/kubernetes/kubernetes/blob/v1.34.1/plugin/pkg/admission/limitranger/admission.go
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

import msgspec

from mpijob_elastic import names
from mpijob_elastic.admission import json_patch, mutate, size
from mpijob_elastic.admission.interface import CapabilityAdmission, Lookup
from mpijob_elastic.admission.json_patch import Patch
from mpijob_elastic.admission.mutate import AdmittedPod
from mpijob_elastic.admission.review import Refusal
from mpijob_elastic.admission.size import QuotaFacts
from mpijob_elastic.kube.meta import Identity
from mpijob_elastic.kube.resources import LIMIT_RANGES
from mpijob_elastic.model import phrases, requests
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.json_parts import Wire
from mpijob_elastic.model.mpijob import MPIJob, Resources

_FIELD = f"metadata.annotations[{names.PARKED}]"
_NAMES_A_NODE = (
    "workers whose template names a node (nodeName) cannot be parked: no gate holds them; use "
    "nodeSelector, or unpark all workers first"
)
# Every placeholder names these resources: a ResourceQuota refuses pods that do not, and a
# LimitRange fills in its own values where they are absent.
_USUAL = ("cpu", "memory")
# A pod that asks for 0 is BestEffort. Where a ResourceQuota with that scope takes no such pod, the
# operator would make nothing of the job, so the placeholder asks for this much memory.
# https://kubernetes.io/docs/concepts/policy/resource-quotas/#quota-scopes
_ONE_BYTE = "1"

# The types of limits that concern pods; others are for volume claims and images.
_LIMITED = ("Container", "Pod")


class _Limit(Wire, frozen=True):
    type: str = ""
    min: dict[str, str] | None = None
    max_limit_request_ratio: dict[str, str] | None = None


class _Spec(Wire, frozen=True):
    limits: list[_Limit] | None = None


class _LimitRange(Wire, frozen=True):
    metadata: Identity
    spec: _Spec = _Spec()


class LimitFacts(Wire, frozen=True):
    """All that is kept of a LimitRange."""

    metadata: Identity
    #: The first part that refuses a placeholder, "" if none does.
    refuses: str


_decoder = msgspec.json.Decoder(_LimitRange)


def limit_range(raw: bytes) -> LimitFacts:
    """Return the facts in a LimitRange's JSON. Raises msgspec.DecodeError for anything else."""
    found = _decoder.decode(raw)
    return LimitFacts(metadata=found.metadata, refuses=next(_parts(found.spec), ""))


def _parts(spec: _Spec) -> Iterator[str]:
    for limit in spec.limits or ():
        parts = {"min": limit.min, "maxLimitRequestRatio": limit.max_limit_request_ratio}
        for part, amounts in parts.items() if limit.type in _LIMITED else ():
            for resource, amount in requests.readable(amounts).items():
                if amount > 0:
                    yield f"{part} of {resource} for each {limit.type}"


# The resources of a namespace that parking looks up, and the readers of their JSON.
WATCHES = {LIMIT_RANGES: limit_range}


def placeholder(pod: AdmittedPod, job: JobFacts, quotas: Iterable[QuotaFacts]) -> Patch:
    """Return the patch that lets a parked worker hold nothing; none for any other pod."""
    index = names.worker_index(pod.metadata.name, job=job.metadata.name)
    is_parked = index in job.skips and mutate.role_of(pod, job) == names.ROLE_WORKER
    if not is_parked or pod.spec.node_name or _is_of_another_operator(pod, job):
        return ()
    there = [gate.name for gate in pod.spec.scheduling_gates or ()]
    gates = [{"name": gate} for gate in dict.fromkeys((*there, names.GATE_PARKED))]
    containers = {"containers": pod.spec.containers, "initContainers": pod.spec.init_containers}
    emptied = {
        f"/spec/{field}/{at}/resources": _nothing(container.resources)
        for field, found in containers.items()
        for at, container in enumerate(found or ())
    }
    if any(quota.best_effort for quota in quotas):
        for amounts in emptied.get("/spec/containers/0/resources", {}).values():
            amounts["memory"] = _ONE_BYTE
    return json_patch.adding(at="/spec/schedulingGates", value=gates) + tuple(
        operation
        for at, asked in emptied.items()
        for operation in json_patch.adding(at=at, value=asked)
    )


class ParkingAdmission(CapabilityAdmission):
    """What the webhook does for parked workers.

    If LimitRanges cannot be read, for example without the right, parking is allowed with a warning.
    The webhook treats the queues of Volcano in the same way, and everything else that it cannot
    read.
    """

    def refusals(
        self, _job: MPIJob, new: JobFacts, old: JobFacts | None, lookup: Lookup
    ) -> Iterator[Refusal]:
        """Yield the first reason why these workers cannot be parked.

        A reason that held before the edit refuses nothing.
        """
        parks = (
            not old
            or old.skips != new.skips
            or names.GATE_QUEUED in {*new.gates}.difference(old.gates)
        )
        # The operator makes the next pod of a parked worker from the new template.
        is_placed = parks or not (old and old.names_node)
        before = {*_reasons_of_size(old)} if old and not parks else set()
        # A queue may stop a job with parked workers: that write is not refused.
        reasons = (
            *_reasons_of_size(new, old),
            *(_reasons_of_queue(new) if parks else ()),
            *([_NAMES_A_NODE] if is_placed and new.names_node else ()),
            *_reasons_of_limits(new, old, lookup),
        )
        if new.skips and (why := next((why for why in reasons if why not in before), "")):
            yield Refusal(field=_FIELD, message=why)

    def scale_refusals(self, new: JobFacts, old: JobFacts, lookup: Lookup) -> Iterator[Refusal]:
        """Yield the first reason why the size is impossible beside the parked workers."""
        before = {*_reasons_of_size(old)}
        reasons = (*_reasons_of_size(new, old), *_reasons_of_limits(new, old, lookup))
        if new.skips and (why := next((why for why in reasons if why not in before), "")):
            yield Refusal(field=size.SCALE_FIELD, message=why)

    def warnings(
        self, _job: MPIJob, new: JobFacts, old: JobFacts | None, lookup: Lookup
    ) -> Iterator[str]:
        """Yield a warning if the namespace may refuse placeholders.

        Either its LimitRanges cannot be read, or it refuses placeholders of workers that are parked
        already.
        """
        yield from _beyond_the_size(new, old)
        limits, parks = _refusing(new, lookup) if new.skips else (), _parks_more(new, old)
        if limits is None and parks:
            yield (
                "the LimitRanges of this namespace could not be read: a LimitRange with min "
                "or maxLimitRequestRatio refuses the placeholders of parked workers, and "
                "then the operator makes no pods"
            )
        for limit in () if parks else (limits or ())[:1]:
            yield (
                f"LimitRange {limit.metadata.name} sets {limit.refuses}: if the placeholder "
                "of a parked worker is lost, a new one is refused, and the operator makes no "
                "other pod; unpark all workers"
            )


def _is_of_another_operator(pod: AdmittedPod, job: JobFacts) -> bool:
    """Tell whether another operator manages the job: the controller deletes its placeholders."""
    return names.is_handed_over(job.notices) or names.LABEL_REPLICA_INDEX in pod.metadata.labels


def _reasons_of_size(new: JobFacts, old: JobFacts | None = None) -> Iterator[str]:
    """Yield why so many workers cannot be parked; `old`: too few that become no fewer may be."""
    least = _least(new)
    is_as_before = old is not None and _is_too_few(old) and new.workers >= old.workers
    if _is_too_few(new) and not is_as_before:
        source = (
            f"{names.MIN_REPLICAS} ({least})"
            if new.policy.min_replicas
            else "the smallest size (1)"
        )
        yield (
            f"leaves {new.workers} of {new.replicas} workers, below "
            f"{source}; park fewer, or add workers"
        )
    rules = (known.size_rule for known in new.asked)
    if any(rule.chooses for rule in rules if rule):
        yield "autoscaling counts parked workers, too; remove mpijob-elastic/autoscale first"


def _least(job: JobFacts) -> int:
    return job.policy.min_replicas or 1


def _is_too_few(job: JobFacts) -> bool:
    """Tell whether fewer workers stay than must; a job without parked workers has other bounds."""
    return job.workers < min(_least(job), job.replicas)


def _reasons_of_queue(new: JobFacts) -> Iterator[str]:
    if new.queued:
        yield (
            "workers of a queued job cannot be parked, because their quota is "
            "asked for together; lower replicas"
        )


def _reasons_of_limits(new: JobFacts, old: JobFacts | None, lookup: Lookup) -> Iterator[str]:
    for limit in (_refusing(new, lookup) if _parks_more(new, old) else None) or ():
        yield (
            f"LimitRange {limit.metadata.name} sets {limit.refuses}, and refuses placeholders "
            "of parked workers, which ask for 0; lower replicas instead, or remove that limit"
        )


def _parks_more(new: JobFacts, old: JobFacts | None) -> bool:
    """Tell whether more workers are named as parked, or the size now reaches more of them."""
    if old is None:
        return bool(new.skips)
    return bool({*new.skips}.difference(old.skips) or _held(new).difference(_held(old)))


def _beyond_the_size(new: JobFacts, old: JobFacts | None) -> Iterator[str]:
    """Yield a warning if workers are named as parked now that the size does not reach."""
    named = {*new.skips}.difference(old.skips if old else ())
    if beyond := sorted(index for index in named if index >= new.replicas):
        indices, has = phrases.listed(map(str, beyond)), phrases.workers(new.replicas)
        yield (
            f"{names.PARKED} names {indices}, but the job has {has}, numbered from 0: no effect yet"
        )


def _held(job: JobFacts) -> frozenset[int]:
    """Return the indices of the placeholders."""
    return frozenset(index for index in job.skips if index < job.replicas)


def _refusing(job: JobFacts, lookup: Lookup) -> Sequence[LimitFacts] | None:
    """Return the LimitRanges that refuse placeholders, None if nobody can say (see `warnings`)."""
    with suppress(LookupError):
        found = lookup.within(LIMIT_RANGES, job.metadata.namespace)
        return [limit for limit in found if isinstance(limit, LimitFacts) and limit.refuses]
    return None


def _nothing(asked: Resources | None) -> Mapping[str, dict[str, str]]:
    named = {*(asked.limits or ()), *(asked.requests or ())} if asked else set()
    return {
        part: dict.fromkeys(sorted(named.union(_USUAL)), "0") for part in ("requests", "limits")
    }
