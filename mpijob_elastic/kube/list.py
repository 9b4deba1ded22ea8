"""Lists, page by page: the only place that follows `continue`."""

import logging
from collections.abc import AsyncIterator, Callable, Mapping
from types import MappingProxyType
from typing import TypeVar

from mpijob_elastic.kube import wire
from mpijob_elastic.kube.reader import USUAL, ApiReader, Timeouts
from mpijob_elastic.kube.wire import Page

T = TypeVar("T")

log = logging.getLogger(__name__)

# Objects of a page. Each may be 1.5 MiB, and a page takes 1.3 times its size: with 500 in a page, 300 of them took the
# controller above the limit of its Deployment, at each start.
PAGE = 50


async def pages(
    client: ApiReader, path: str, *, query: Mapping[str, str], size: int = PAGE, limits: Timeouts = USUAL
) -> AsyncIterator[Page]:
    """Give the pages of a list, `size` objects each; `query` selects. Raises as `ApiReader.get` does, for each page."""
    asked = {**query, "limit": str(size)}
    while True:
        page = await wire.read_page(await client.get(path, query=asked, limits=limits))
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
    """Return every object at `path` that matches the label `selector` and `query`. Raises as `ApiReader.get` does.

    An object that `read` refuses is logged and left out: its author must not stop what concerns others.
    """
    asked = {**query, "labelSelector": selector} if selector else query
    found = []
    async for page in pages(client, path, query=asked):
        for raw in page.items or ():
            try:
                found.append(read(raw))
            except Exception as error:  # noqa: BLE001 - whatever is wrong, it is wrong with this object alone
                meta = await wire.read_identity(raw)
                log.warning("%s: left out %s/%s, which cannot be read: %s", path, meta.namespace, meta.name, error)
    return found
