"""Writes to KubeQueue's QueueUnits, and the release of a job, one function each.

What a unit asks for is read live from the waiting pods, because only pods have the defaults, the
overhead and the priority. The phase of a unit is read live, too, before its job is released.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from mpijob_elastic import names
from mpijob_elastic.act.capability_writes import LiveWrites, check_size
from mpijob_elastic.capabilities.kube_queue import KubeQueue, facts
from mpijob_elastic.capabilities.kube_queue.facts import QUEUE_UNITS, QueueUnit
from mpijob_elastic.capabilities.kube_queue.wishes import CreateUnit, MarkRunning, ReleaseJob
from mpijob_elastic.decide.actions import Action
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import MPI_JOBS, PODS
from mpijob_elastic.model import requests
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.json_parts import controller, owner, timestamp
from mpijob_elastic.observe.watching import ByJob, JobKey, Watching

Object = dict[str, Any]


class QueueUnitWatch:
    """The watch of all QueueUnits, because others queue our jobs, too."""

    def __init__(self, watching: Watching) -> None:
        self._found: ByJob[QueueUnit] = watching.by_job(QUEUE_UNITS, facts.read)

    def seen(self, key: JobKey, view: JobView) -> KubeQueue | None:
        """Return what KubeQueue says of a job; None if KubeQueue has nothing to do with the job."""
        return KubeQueue.of(view.facts, self._found.of(key).values()) if self._found.known else None


@dataclass(kw_only=True, eq=False)
class QueueUnits(LiveWrites):
    """Carries out the writes that KubeQueue's extensions do for other kinds of jobs."""

    kinds = (CreateUnit, MarkRunning, ReleaseJob)

    async def perform(self, view: JobView, action: Action) -> None:
        """Carry out an action; see `CapabilityWriter`."""
        match action:
            case CreateUnit():
                await self._create(view, action)
            case MarkRunning():
                await self._mark(view, action.unit)
            case ReleaseJob():
                await self._release(view, action)

    async def _create(self, view: JobView, action: CreateUnit) -> None:
        job = await self.read(MPI_JOBS, view.name, view.namespace)
        pods = [await self.read(PODS, like.like.name, view.namespace) for like in action.pods]
        body = created(view, action, job=job, pods=pods, now=self.now())
        check_size(body)
        answer = await self.leader_writer.create_object(
            QUEUE_UNITS, namespace=view.namespace, body=body
        )
        self.seen.see(QUEUE_UNITS, answer)

    async def _mark(self, view: JobView, unit: QueueUnit) -> None:
        found = unit.metadata
        status = {
            "phase": facts.RUNNING,
            "message": "the job runs",
            "lastUpdateTime": timestamp(self.now()),
        }
        body = {"metadata": {"resourceVersion": found.resource_version}, "status": status}
        kinds: tuple[str | None, ...] = (
            "status",
            None,
        )  # before koord-queue, the status was no subresource
        for kind in kinds:
            with suppress(errors.NotFound):
                answer = await self.leader_writer.patch_object(
                    QUEUE_UNITS,
                    namespace=view.namespace,
                    name=found.name,
                    subresource=kind,
                    body=body,
                )
                return self.seen.see(QUEUE_UNITS, answer)
        return self.seen.see_gone(QUEUE_UNITS, view.namespace, found)

    async def _release(self, view: JobView, action: ReleaseJob) -> None:
        raw = await self.client.get(QUEUE_UNITS.path(view.namespace, action.unit.metadata.name))
        if facts.read(raw).phase not in facts.GRANTED:
            # A former leader has seen the job run since then, and somebody holds the job again.
            return self.seen.see(QUEUE_UNITS, raw)
        body = {"metadata": {"uid": view.ref.uid, "annotations": {facts.KUBEQUEUE_SUSPEND: None}}}
        answer = await self.leader_writer.patch_object(
            MPI_JOBS, namespace=view.namespace, name=view.name, body=body
        )
        self.seen.see(MPI_JOBS, answer)
        return self.events.emit(view, action.note)


def created(
    view: JobView, action: CreateUnit, *, job: Object, pods: Sequence[Object], now: float
) -> Object:
    """Return the new QueueUnit.

    job, pods: as just read; each pod is an example of its set of pods. The pods own the unit, too,
    as they own a Workload. koord-queue reads `request`, KubeQueue before it reads `resource`; its
    definition drops the field that it does not know. Without a `podSet` koord-queue grants all or
    nothing, and asks no extension for single pods. koord-queue finds queue and quota by annotations
    and labels, which its extensions copy from the job.
    """
    labels, annotations = (
        job["metadata"].get("labels") or {},
        job["metadata"].get("annotations") or {},
    )
    asked = requests.total(
        (requests.of_pod(pod["spec"]), like.count)
        for like, pod in zip(action.pods, pods, strict=True)
    )
    kind = {"apiVersion": MPI_JOBS.api_version, "kind": MPI_JOBS.kind}
    spec: Object = {
        "consumerRef": {**kind, "namespace": view.namespace, "name": view.name},
        "queue": next(
            (annotations[key] for key in facts.KUBEQUEUE_QUEUES if key in annotations), None
        ),
        "priority": pods[-1]["spec"].get("priority"),
        "priorityClassName": pods[-1]["spec"].get("priorityClassName"),
        "resource": asked,
        "request": asked,
    }
    metadata = {
        "name": action.name,
        "labels": {
            **{key: text for key, text in labels.items() if key.startswith(facts.KUBEQUEUE_LABELS)},
            names.LABEL_MANAGED_BY: names.PROGRAM,
        },
        "annotations": {
            **{
                key: text
                for key, text in annotations.items()
                if key.startswith(facts.KUBEQUEUE_ANNOTATIONS)
            },
            facts.UNIT_WORKERS: str(action.workers),
        },
        "ownerReferences": [
            controller(view.ref),
            *(owner(PODS, like.like) for like in action.pods),
        ],
    }
    return {
        "apiVersion": QUEUE_UNITS.api_version,
        "kind": QUEUE_UNITS.kind,
        "metadata": metadata,
        "spec": {key: value for key, value in spec.items() if value is not None},
        # Dropped where the status is a subresource.
        "status": {
            "phase": facts.ENQUEUED,
            "message": "made for the job",
            "lastUpdateTime": timestamp(now),
        },
    }
