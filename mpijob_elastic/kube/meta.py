"""The metadata of objects, as far as a controller uses it, and a bound on the cost of reading.

The struct of a kind has a field `metadata`: an `ObjectMeta`, or another `Identity`. No value here
can be part of a reference cycle (strings, numbers, flat containers), so the garbage collector skips
them all: with ten thousand pods that saves 16 bytes an object and the time of every full
collection.

The cost of reading an object is bounded before it is read, because reading holds up everything
else: msgspec skips fields that nobody asked for in 2 ms a MiB, but a field or an item that it keeps
costs up to a hundred times as much.
"""

from typing import Protocol

import msgspec

# Characters of a name. The API server has this limit, but does not check names in references.
LONGEST_NAME = 253


class Identity(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel"):
    """The metadata that the watch cache needs."""

    name: str = ""
    #: "" for cluster-scoped objects.
    namespace: str = ""
    #: Unique over time too, because a recreated object has another uid.
    uid: str = ""
    #: Version of the object's last write, see `revision`.
    resource_version: str = ""


class KubeObject(Protocol):
    """Any struct with `metadata`."""

    @property
    def metadata(self) -> Identity:
        """The object's identity."""


class OwnerReference(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel"):
    """An entry of `metadata.ownerReferences`; at most one entry has `controller` true."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False


class OwnedIdentity(Identity, frozen=True, gc=False):
    """An identity with the object's owners."""

    owner_references: tuple[OwnerReference, ...] | None = ()

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that controls the object."""
        for owner in self.owner_references or ():
            if owner.controller:
                return owner
        return None

    def shortened(self) -> "OwnedIdentity":
        """Return the identity with no owner but the controlling owner.

        An owner with a text that is too long for a name of an object is left out, too.
        """
        owner = self.controller
        texts = (owner.api_version, owner.kind, owner.name, owner.uid) if owner else ()
        kept = (owner,) if owner and max(map(len, texts)) <= LONGEST_NAME else ()
        return OwnedIdentity(
            name=self.name,
            namespace=self.namespace,
            uid=self.uid,
            resource_version=self.resource_version,
            owner_references=kept,
        )


class ObjectMeta(OwnedIdentity, frozen=True, gc=False):
    """`metadata` of an object.

    Timestamps are RFC 3339 texts as the API server wrote them (UTC, whole seconds).
    https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/object-meta/
    """

    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}

    @property
    def deleting(self) -> bool:
        """True once the deletion was requested.

        The object stays until its finalizers or its kubelet are done.
        """
        return self.deletion_timestamp is not None


def revision(resource_version: str) -> int:
    """Return a resourceVersion as a number, so that two versions of one resource can be ordered.

    KEP-5504 makes the order part of the API (decimal integers of any size, within one resource);
    every API server on etcd has always followed it. Raises ValueError for any other text.
    """
    return int(resource_version)


# Fields of an object. A Role of 10,000 workers has as many names; to read 15,000 takes up to 5 ms.
MOST_VALUES = 15_000
# The bytes that the API server writes before a field, and in a list before a text, an object or a
# null. They are rare in texts, where quotes are escaped.
_MARKS = (b',"', b",{", b",n")


class TooLarge(msgspec.DecodeError):
    """An object would take too long to read."""


def check_cost(raw: bytes | msgspec.Raw, *, most: int = MOST_VALUES) -> None:
    """Raise `TooLarge` if an object has more than `most` fields and list items.

    Its JSON has no space between its parts.
    """
    if len(memoryview(raw)) > most and sum(map(bytes(raw).count, _MARKS)) > most:
        raise TooLarge(f"it has more than {most:,} fields or list items")
