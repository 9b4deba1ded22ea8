"""Lists, page by page: the only place that follows `continue`."""

from collections.abc import AsyncIterator, Callable, Mapping
from types import MappingProxyType
from typing import TypeVar

from mpijob_elastic.kube import wire
from mpijob_elastic.kube.reader import USUAL, ApiReader, Limits
from mpijob_elastic.kube.wire import Page

T = TypeVar("T")

PAGE = 500


async def pages(
    client: ApiReader, path: str, *, query: Mapping[str, str], size: int = PAGE, limits: Limits = USUAL
) -> AsyncIterator[Page]:
    """Give the pages of a list, `size` objects each; `query` selects. Raises as `ApiReader.get` does, for each page."""
    asked = {**query, "limit": str(size)}
    while True:
        page = wire.read_page(await client.get(path, query=asked, limits=limits))
        yield page
        if not page.metadata.continue_:
            return
        asked["continue"] = page.metadata.continue_


async def list_objects(
    client: ApiReader,
    path: str,
    read: Callable[[bytes], T],
    *,
    selector: str = "",
    query: Mapping[str, str] = MappingProxyType({}),
) -> list[T]:
    """Return every object at `path` that matches the label `selector` and `query`. Raises as `ApiReader.get` does."""
    asked = {**query, "labelSelector": selector} if selector else query
    return [read(raw) async for page in pages(client, path, query=asked) for raw in page.items or ()]
