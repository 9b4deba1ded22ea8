"""The facts of a QueueUnit of KubeQueue, for the job that it queues or that its name is kept for."""

import msgspec

from mpijob_elastic.capabilities.kube_queue.api import UNIT_WORKERS, queue_unit_name
from mpijob_elastic.capabilities.kube_queue.facts import QueueUnit
from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.kube.resources import MPI_JOBS
from mpijob_elastic.model.wire import Wire, owned, owning_pods

# KubeQueue lists what lacks in each quota.
_LONGEST_SAID = 300


class _Consumer(Wire, frozen=True):
    kind: str = ""
    name: str = ""
    api_version: str = ""


class _Spec(Wire, frozen=True):
    consumer_ref: _Consumer | None = None
    queue: str = ""


class _Status(Wire, frozen=True):
    phase: str = ""
    message: str = ""


class _Unit(Wire, frozen=True):
    metadata: ObjectMeta
    spec: _Spec | None = None
    status: _Status | None = None


_decoder = msgspec.json.Decoder(_Unit)


def read(raw: bytes) -> QueueUnit:
    """Return the facts in a QueueUnit's JSON. Raises msgspec.DecodeError if it is none."""
    found = _decoder.decode(raw)
    spec, status, name = found.spec or _Spec(), found.status or _Status(), found.metadata.name
    consumer = spec.consumer_ref or _Consumer()
    is_job = consumer.kind == MPI_JOBS.kind and consumer.api_version == MPI_JOBS.api_version
    suffix = queue_unit_name("")
    job = name.removesuffix(suffix) if name.endswith(suffix) else consumer.name if is_job else ""
    workers = found.metadata.annotations.get(UNIT_WORKERS, "")
    return QueueUnit(
        metadata=msgspec.structs.replace(owned(found.metadata), job=job),
        workers=int(workers) if workers.isdecimal() else 0,
        phase=status.phase,
        queue=spec.queue,
        said=" ".join(status.message.split())[:_LONGEST_SAID],
        pods=owning_pods(found.metadata),
    )
