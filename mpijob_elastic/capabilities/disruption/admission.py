"""Evictions of workers: which evictions wait while the worker drains; pure.

Webhook and controller agree on an eviction by a mark on the pod (see `eviction`). In doubt an
eviction passes.
"""

import msgspec

from mpijob_elastic import names
from mpijob_elastic.admission.review import CREATE, UNCHANGED, Request, Verdict
from mpijob_elastic.capabilities.disruption import eviction
from mpijob_elastic.capabilities.disruption.eviction import EVICTION_MARK, Eviction
from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.json_parts import Volume, Wire, owned
from mpijob_elastic.model.mpijob import Condition

KIND = "Eviction"
# Seconds after which to try the eviction again. client-go tries again by itself, up to ten times,
# which takes longer than most drains.
_RETRY_AFTER = 1
DRAINING = Verdict(
    postponed=(
        "draining, retry: the worker leaves the training first, within the drain-timeout of its job"
    ),
    retry_after=_RETRY_AFTER,
)


class _Preconditions(Wire, frozen=True):
    uid: str | None = None


class _DeleteOptions(Wire, frozen=True):
    dry_run: list[str] | None = None
    preconditions: _Preconditions | None = None


class _Eviction(Wire, frozen=True):
    delete_options: _DeleteOptions | None = None


class _Spec(Wire, frozen=True):
    volumes: list[Volume] | None = None


class _Status(Wire, frozen=True):
    phase: str = ""
    conditions: list[Condition] | None = None


class EvictedPod(Wire, frozen=True):
    """A pod of the job."""

    metadata: ObjectMeta
    spec: _Spec = _Spec()
    status: _Status = _Status()


_evictions, _pods = msgspec.json.Decoder(_Eviction), msgspec.json.Decoder(EvictedPod)


def pod(raw: bytes) -> EvictedPod:
    """Return the pod in its JSON. Raises msgspec.DecodeError for anything else."""
    return _pods.decode(raw)


def may_wait(request: Request, job: JobFacts) -> bool:
    """Return True if the worker may be in a training that can go on without it.

    Raises msgspec.DecodeError.
    """
    if (request.kind.kind, request.sub_resource, request.operation) != (
        KIND,
        "eviction",
        CREATE,
    ) or request.dry_run:
        return False
    # kubectl asks for a dry run in the body, and the API server does not tell webhooks of that.
    is_tried_dry = bool(_options(request).dry_run)
    ours = job.policy.enabled is not False and not names.is_handed_over(job.notices)
    return ours and not (is_tried_dry or job.finished or job.deleting)


def tried(request: Request, worker: EvictedPod, job: JobFacts, *, now: float) -> Verdict | Eviction:
    """Return the verdict on the eviction of this pod, or the mark for a first try.

    Raises msgspec.DecodeError.
    """
    meant = _options(request).preconditions
    is_meant = meant is None or meant.uid in (None, worker.metadata.uid)
    is_worker = worker.metadata.labels.get(names.LABEL_JOB_ROLE) == names.ROLE_WORKER
    is_ours = is_worker and owned(worker.metadata).job_uid == job.metadata.uid
    if not (is_meant and is_ours and _is_ready(worker)) or worker.metadata.deleting:
        return UNCHANGED
    limit, mark = (
        job.policy.drain_timeout,
        eviction.parse(worker.metadata.annotations.get(EVICTION_MARK)),
    )
    if mark is None or not mark.is_live(drain_timeout=limit, now=now):
        return eviction.following(mark, drain_timeout=limit, now=now)
    return UNCHANGED if mark.released or now >= mark.at + limit else DRAINING


def is_training(launcher: EvictedPod, job: JobFacts) -> bool:
    """Return True if a driver runs that sees the host list, so that a worker can leave it."""
    volumes = (
        volume.config_map
        for volume in launcher.spec.volumes or ()
        if volume.name == names.CONFIG_VOLUME
    )
    items = (item.key for config in volumes if config for item in config.items or ())
    runs = launcher.status.phase == "Running" and not launcher.metadata.deleting
    return (
        runs
        and owned(launcher.metadata).job_uid == job.metadata.uid
        and names.KEY_DISCOVER_HOSTS in items
    )


def _options(request: Request) -> _DeleteOptions:
    return _evictions.decode(request.object).delete_options or _DeleteOptions()


def _is_ready(worker: EvictedPod) -> bool:
    conditions = worker.status.conditions or ()
    return worker.status.phase == "Running" and any(
        one.type == "Ready" and one.status == "True" for one in conditions
    )
