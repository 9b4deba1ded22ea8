"""Parts of objects in JSON: the base struct, owners, field managers, times, and parts of a pod."""

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Protocol

import msgspec

from mpijob_elastic.kube.meta import Identity, ObjectMeta, OwnedIdentity
from mpijob_elastic.kube.resources import MPI_JOBS, PODS, Resource
from mpijob_elastic.model.bounds import LATEST


class Wire(msgspec.Struct, frozen=True, rename="camel", kw_only=True, gc=False):
    """An immutable part of an object, in camelCase on the wire.

    Unknown fields are skipped. A part is never in a reference cycle.
    """


class Reference(Wire, frozen=True):
    """A field that names another object, in the same namespace."""

    kind: str = ""
    name: str = ""
    api_version: str = ""


class Item(Wire, frozen=True):
    """A key of a ConfigMap and its file."""

    key: str = ""
    path: str = ""


class ConfigMapVolume(Wire, frozen=True):
    """A volume's `configMap`; without `items` every key is a file."""

    name: str = ""
    items: list[Item] | None = None
    optional: bool | None = None


class LifecycleHook(Wire, frozen=True):
    """A handler of `lifecycle`; only its presence counts."""


class Lifecycle(Wire, frozen=True):
    """`lifecycle` of a container."""

    pre_stop: LifecycleHook | None = None


class SchedulingGate(Wire, frozen=True):
    """An entry of a pod's `spec.schedulingGates`."""

    name: str = ""


class SchedulingGroup(Wire, frozen=True):
    """A pod's `spec.schedulingGroup`; only its presence counts."""


class EmptyDirVolume(Wire, frozen=True):
    """A volume's `emptyDir`; only its presence counts."""


class Volume(Wire, frozen=True):
    """An entry of a pod's `spec.volumes`."""

    name: str = ""
    config_map: ConfigMapVolume | None = None
    empty_dir: EmptyDirVolume | None = None


class _OfWorkers(msgspec.Struct, frozen=True):
    replicas: msgspec.Raw = msgspec.field(name="f:replicas", default=msgspec.Raw())


class _OfReplicas(msgspec.Struct, frozen=True):
    worker: _OfWorkers = msgspec.field(name="f:Worker", default=_OfWorkers())


class _OfSpec(msgspec.Struct, frozen=True):
    replicas: _OfReplicas = msgspec.field(name="f:mpiReplicaSpecs", default=_OfReplicas())


class _OfMetadata(msgspec.Struct, frozen=True):
    annotations: dict[str, msgspec.Raw] = msgspec.field(name="f:annotations", default_factory=dict)


class _Fields(msgspec.Struct, frozen=True):
    metadata: _OfMetadata = msgspec.field(name="f:metadata", default=_OfMetadata())
    spec: _OfSpec = msgspec.field(name="f:spec", default=_OfSpec())
    status: msgspec.Raw = msgspec.field(name="f:status", default=msgspec.Raw())
    data: dict[str, msgspec.Raw] = msgspec.field(name="f:data", default_factory=dict)


class Managed(Wire, frozen=True):
    """An entry of `managedFields`.

    Read are the annotations, the size and the status of an MPIJob, and the texts of a ConfigMap;
    other fields are skipped. https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management
    """

    manager: str = ""
    subresource: str = ""
    time: str | None = None
    fields_v1: _Fields = _Fields()

    @property
    def at(self) -> float:
        """When the manager last wrote: seconds since the epoch, 0 if nobody knows."""
        return seconds(self.time) or 0.0


def seconds(text: str | None) -> float | None:
    """Return an RFC 3339 time as seconds since the epoch; None if it is absent or unreadable.

    A time before the epoch or after `LATEST` counts as unreadable: users can write such a time, and
    no calendar may hold it in UTC.
    """
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        return None
    return at if 0.0 <= at <= LATEST else None


def timestamp(at: float) -> str:
    """Return a time (seconds since the epoch) as RFC 3339 of the API server: UTC, whole seconds."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Owned(Identity, frozen=True, gc=False):
    """An object's identity and its controlling MPIJob: all that a cache keeps of the metadata."""

    #: Name of that MPIJob; "" if no MPIJob controls the object.
    job: str = ""
    #: Its uid; "" if no MPIJob controls the object.
    job_uid: str = ""
    #: `apiVersion` of the controlling reference; "" likewise.
    api_version: str = ""


_MOST_OWNING = 4
# As many texts as 100,000 pods of 5,000 jobs share, each at most as long as a name.
_MOST_SHARED = 2**15
_LONGEST_SHARED = 253
_shared = lru_cache(maxsize=_MOST_SHARED)(str)


def shared(text: str) -> str:
    """Return an equal text that other objects hold already.

    This is not `sys.intern`, because Python 3.12 would keep the text for ever.
    """
    return _shared(text) if len(text) <= _LONGEST_SHARED else text


class Fact(Protocol):
    """The facts that were read of an object of a job."""

    @property
    def metadata(self) -> Owned:
        """The object's identity and owner."""


def owned(metadata: OwnedIdentity) -> Owned:
    """Return the metadata with its owner."""
    by = metadata.shortened().controller  # the API server bounds no text of a reference
    is_job = (
        by is not None
        and by.kind == MPI_JOBS.kind
        and by.api_version.startswith(MPI_JOBS.group + "/")
    )
    # The objects of a job share these texts.
    job, job_uid, api_version = (by.name, by.uid, by.api_version) if by and is_job else ("", "", "")
    return Owned(
        namespace=shared(metadata.namespace),
        name=metadata.name,
        uid=metadata.uid,
        resource_version=metadata.resource_version,
        job=shared(job),
        job_uid=shared(job_uid),
        api_version=shared(api_version),
    )


def controller(job: Identity) -> dict[str, object]:
    """Return the reference by which an MPIJob controls an object that we create for it.

    It has no blockOwnerDeletion: that would need the right to change finalizers of MPIJobs where
    OwnerReferencesPermissionEnforcement is on, as on OpenShift.
    """
    return {**owner(MPI_JOBS, job), "controller": True}


def owner(resource: Resource, ref: Identity) -> dict[str, object]:
    """Return the reference to an owner that does not control the object."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": ref.name,
        "uid": ref.uid,
    }


def owning_pods(metadata: ObjectMeta) -> tuple[str, ...]:
    """Return the uids of the first pods that own an object.

    We write at most two such owners, so a few are enough.
    """
    return tuple(one.uid for one in metadata.owner_references or () if one.kind == PODS.kind)[
        :_MOST_OWNING
    ]


def is_news(old: Fact | None, new: Fact | None) -> bool:
    """Return False if only the resourceVersion of the facts differs.

    Most writes of others change nothing that we read: the operator counts pods in a job's status,
    and kubelets add to the status of pods.
    """
    if old is None or new is None:
        return True
    as_before = msgspec.structs.replace(
        old.metadata, resource_version=new.metadata.resource_version
    )
    older: Any = old  # a struct, which a protocol cannot express
    return bool(msgspec.structs.replace(older, metadata=as_before) != new)
