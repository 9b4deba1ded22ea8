"""Parts of every object that is read from the API: its struct's base, its owner, times, and a pod's volumes."""

from datetime import datetime

import msgspec

from mpijob_elastic.kube.meta import Identity, ObjectMeta
from mpijob_elastic.kube.resources import MPI_JOBS


class Wire(msgspec.Struct, frozen=True, rename="camel", kw_only=True, gc=False):
    """An immutable part of an object; camelCase on the wire, unknown fields skipped, never in a reference cycle."""


class Item(Wire, frozen=True):
    """A key of a ConfigMap and its file."""

    key: str = ""
    path: str = ""


class ConfigMapVolume(Wire, frozen=True):
    """A volume's `configMap`; without `items` every key is a file."""

    name: str = ""
    items: list[Item] | None = None
    optional: bool | None = None


class Volume(Wire, frozen=True):
    """An entry of a pod's `spec.volumes`."""

    name: str = ""
    config_map: ConfigMapVolume | None = None


def seconds(text: str | None) -> float | None:
    """Return an RFC 3339 time as seconds since the epoch; None if there is none or it is unreadable."""
    if not text:
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None


class Owned(Identity, frozen=True, gc=False):
    """An object's identity and the MPIJob that controls it: all that a cache keeps of the metadata.

    job, job_uid: "" if no MPIJob controls it. api_version: of the controlling reference.
    """

    job: str = ""
    job_uid: str = ""
    api_version: str = ""


def owned(metadata: ObjectMeta) -> Owned:
    """Return the metadata with its owner."""
    owner = metadata.controller
    is_job = owner is not None and owner.kind == MPI_JOBS.kind and owner.api_version.startswith(MPI_JOBS.group + "/")
    return Owned(
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        resource_version=metadata.resource_version,
        job=owner.name if owner and is_job else "",
        job_uid=owner.uid if owner and is_job else "",
        api_version=owner.api_version if owner and is_job else "",
    )
