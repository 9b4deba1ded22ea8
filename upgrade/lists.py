"""Lists of any kind, page by page."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from mpijob_elastic.kube import errors, wire
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import Resource

T = TypeVar("T")

PAGE = 500


async def all_of(
    client: ApiReader,
    resource: Resource,
    read: Callable[[bytes], T],
    *,
    namespace: str | None = None,
    selector: str = "",
) -> list[T]:
    """Every object of a kind, in all namespaces unless one is given. Raises `errors.KubeError`."""
    query = {"limit": str(PAGE)} | ({"labelSelector": selector} if selector else {})
    found: list[T] = []
    while True:
        page = wire.read_page(await client.get(resource.path(namespace), query=query))
        found += [read(raw) for raw in page.items or ()]
        if not page.metadata.continue_:
            return found
        query["continue"] = page.metadata.continue_


async def all_readable(
    client: ApiReader, resource: Resource, read: Callable[[bytes], T], *, selector: str = ""
) -> list[T] | None:
    """The same; None where this account may not list them or the kind is not served. Raises `errors.KubeError`."""
    try:
        return await all_of(client, resource, read, selector=selector)
    except (errors.Forbidden, errors.NotFound):
        return None
