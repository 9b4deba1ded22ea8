"""A kind for tests: metadata and one field."""

import msgspec

from mpijob_elastic.kube.meta import ObjectMeta


class Item(msgspec.Struct, frozen=True, kw_only=True):
    metadata: ObjectMeta
    value: int = 0


def item(name: str, revision: int, *, uid: str = "u", value: int = 0) -> Item:
    meta = ObjectMeta(namespace="n", name=name, uid=uid, resource_version=str(revision))
    return Item(metadata=meta, value=value)


def state(items: object) -> dict[str, tuple[str, str]]:
    """Name to uid and version, which is all that two equal caches must agree on."""
    return {one.metadata.name: (one.metadata.uid, one.metadata.resource_version) for one in items}  # type: ignore[attr-defined]
