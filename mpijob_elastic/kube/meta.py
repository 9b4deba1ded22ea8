"""The metadata every object has, as much of it as a controller uses.

A struct of one's own kind has a field `metadata`: an `ObjectMeta`, or a smaller struct that satisfies `Identity`.
Nothing here can take part in a reference cycle (strings, numbers, flat containers), so the garbage collector is told
not to look: with ten thousand pods that saves 16 bytes an object and the time of every full collection.
"""

from __future__ import annotations

from typing import Protocol

import msgspec


class Identity(Protocol):
    """What the watch cache needs to know of an object."""

    @property
    def namespace(self) -> str:
        """The namespace, "" for an object of the cluster's."""

    @property
    def name(self) -> str:
        """The name, unique in namespace and kind at one time."""

    @property
    def uid(self) -> str:
        """Unique over time too: a deleted and re-created object has another one."""

    @property
    def resource_version(self) -> str:
        """Of the object's last write; see `revision`."""


class KubeObject(Protocol):
    """Any struct with `metadata`."""

    @property
    def metadata(self) -> Identity:
        """Who the object is."""


class OwnerReference(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel"):
    """One of `metadata.ownerReferences`; at most one of them has `controller` true."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False


class ObjectMeta(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel"):
    """`metadata` of an object; the timestamps are RFC 3339 text as the API server wrote it (UTC, whole seconds).

    https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/object-meta/
    """

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()

    @property
    def deleting(self) -> bool:
        """Whether somebody has asked for the deletion; the object stays until its finalizers or kubelet are done."""
        return self.deletion_timestamp is not None

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that controls the object."""
        return next((owner for owner in self.owner_references if owner.controller), None)


def revision(resource_version: str) -> int:
    """A resourceVersion as the number it is, so that two of one resource can be ordered.

    KEP-5504 makes the order part of the API (decimal integers of any size, compared as such, within one resource);
    every API server on etcd has always kept to it. Raises ValueError where it is not a decimal number.
    """
    return int(resource_version)
