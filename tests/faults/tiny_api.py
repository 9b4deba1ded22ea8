"""An API server in memory, so that transports can be tested through thousands of histories.

It keeps to what the API promises (https://kubernetes.io/docs/reference/using-api/api-concepts/) for any resource:
one counter of revisions, lists in pages that are all of one moment, watches from a revision with bookmarks and 410
once history was compacted, preconditions on resourceVersion. No validation, no authorisation, no selectors.
The tests on the lab hold the same clients against the real one.
"""

import asyncio
import json
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Self

from aiohttp import web

from tests.faults.kubeconfig import write_plain

Object = dict[str, Any]

# A text that is sent as lists in one another, too deep for a JSON module to write.
DEEP = "DEEP"
_DEEP = "[" * 9_000 + "]" * 9_000


class TinyApi:
    """`objects` is what is stored, by path of the object; `history` every event as (revision, collection, event).

    `deletions` has the options of each deletion that was asked for. `allows` answers each review of somebody's rights.
    """

    def __init__(self, *, bookmark_every: float = 0.05) -> None:
        self.objects: dict[str, Object] = {}
        self.history: list[tuple[int, str, Object]] = []
        self.deletions: list[Object] = []
        self.allows: Callable[[Object], bool] = lambda _: True
        self.revision = 100
        self._compacted = 0
        self._bookmark_every = bookmark_every
        self._pages: dict[str, tuple[int, list[Object]]] = {}
        self._news = asyncio.Condition()
        self._generation = 0
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._serve)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.01, handler_cancellation=True)
        await runner.setup()
        self._stack.push_async_callback(runner.cleanup)
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.kubeconfig = Path(self._stack.enter_context(tempfile.TemporaryDirectory())) / "kubeconfig"
        write_plain(self.kubeconfig, f"http://127.0.0.1:{runner.addresses[0][1]}")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def create(self, collection: str, name: str, **content: object) -> Object:
        """Store a new object and tell the watches."""
        parts = collection.split("/")
        namespace = parts[parts.index("namespaces") + 1] if "namespaces" in parts[:-1] else ""
        metadata = {"name": name, "namespace": namespace, "uid": str(uuid.uuid4())}
        return await self._store(collection, "ADDED", {**content, "metadata": metadata})

    async def update(self, collection: str, name: str, **content: object) -> Object:
        """Change fields of an object and tell the watches."""
        old = self.objects[f"{collection}/{name}"]
        return await self._store(collection, "MODIFIED", merged(old, content))

    async def delete(self, collection: str, name: str) -> Object:
        """Remove an object and tell the watches."""
        return await self._store(collection, "DELETED", self.objects[f"{collection}/{name}"])

    async def end_streams(self) -> None:
        """End every watch, as the server does when its time is over."""
        self._generation += 1
        await self._tell()

    def compact(self) -> None:
        """Forget history: a watch from an earlier revision is now answered with 410."""
        self._compacted = self.revision

    async def _store(self, collection: str, kind: str, item: Object) -> Object:
        self.revision += 1
        item = merged(item, {"metadata": {"resourceVersion": str(self.revision)}})
        path = f"{collection}/{item['metadata']['name']}"
        if kind == "DELETED":
            del self.objects[path]
        else:
            self.objects[path] = item
        self.history.append((self.revision, collection, {"type": kind, "object": item}))
        await self._tell()
        return item

    async def _tell(self) -> None:
        async with self._news:
            self._news.notify_all()

    async def _serve(self, raw: web.Request) -> web.StreamResponse:
        path, sent = raw.path, json.loads(await raw.read() or b"{}")
        if raw.method == "GET" and raw.query.get("watch") == "true":
            return await self._watch(raw)
        if raw.method == "GET" and "limit" in raw.query:
            return self._list(raw)
        if raw.method == "POST" and path.endswith("accessreviews"):
            return web.json_response({"status": {"allowed": self.allows(sent["spec"])}})
        if raw.method == "POST":
            return await self._post(path, sent)
        return await self._one(raw.method, path, sent) if path in self.objects else refusal(404, "NotFound")

    async def _one(self, method: str, path: str, sent: Object) -> web.Response:
        if method in ("PATCH", "PUT"):
            return await self._change(method, path, sent)
        if method == "DELETE":
            self.deletions.append(sent)
            return web.json_response(await self.delete(*path.rsplit("/", 1)))
        return web.json_response(self.objects[path])

    async def _post(self, path: str, sent: Object) -> web.Response:
        name = sent["metadata"]["name"]
        if f"{path}/{name}" in self.objects:
            return refusal(409, "AlreadyExists")
        sent.pop("metadata")
        return web.json_response(await self.create(path, name, **sent))

    async def _change(self, method: str, path: str, sent: Object) -> web.Response:
        old = self.objects[path]
        if sent.get("metadata", {}).get("resourceVersion") not in (None, old["metadata"]["resourceVersion"]):
            return refusal(409, "Conflict")
        new = merged(old, sent) if method == "PATCH" else sent
        return web.json_response(await self._store(path.rpartition("/")[0], "MODIFIED", new))

    def _list(self, raw: web.Request) -> web.Response:
        taken, items = self._pages.pop(raw.query.get("continue", ""), (self.revision, self._collection(raw.path)))
        limit = int(raw.query["limit"])
        page, rest = items[:limit], items[limit:]
        token = str(uuid.uuid4()) if rest else ""
        if rest:
            self._pages[token] = (taken, rest)
        found = {"metadata": {"resourceVersion": str(taken), "continue": token}, "items": page}
        return web.json_response(text=_text(found))

    def _collection(self, path: str) -> list[Object]:
        return [item for place, item in sorted(self.objects.items()) if place.rsplit("/", 1)[0] == path]

    async def _watch(self, raw: web.Request) -> web.StreamResponse:
        reached, generation = int(raw.query["resourceVersion"]), self._generation
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(raw)
        if reached < self._compacted:
            await response.write(_line("ERROR", {"kind": "Status", "code": 410, "reason": "Expired"}))
            return response
        while generation == self._generation:
            for event in self._since(reached, raw.path):
                await response.write(_text(event).encode() + b"\n")
            if not await self._wait(reached := self.revision):
                await response.write(_line("BOOKMARK", {"metadata": {"resourceVersion": str(reached)}}))
        return response

    def _since(self, reached: int, path: str) -> Iterator[Object]:
        return (event for revision, collection, event in self.history if revision > reached and collection == path)

    async def _wait(self, reached: int) -> bool:
        try:
            async with asyncio.timeout(self._bookmark_every), self._news:
                if self.revision == reached:
                    await self._news.wait()
        except TimeoutError:
            return False
        return True


def merged(old: Object, patch: Object) -> Object:
    """The object after a JSON merge patch (RFC 7396)."""
    result = dict(old)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merged(result[key], value)
        else:
            result[key] = value
    return result


def refusal(status: int, reason: str) -> web.Response:
    """An error as the API server words it."""
    return web.json_response({"kind": "Status", "code": status, "reason": reason}, status=status)


def _line(kind: str, item: Object) -> bytes:
    return _text({"type": kind, "object": item}).encode() + b"\n"


def _text(item: Object) -> str:
    return json.dumps(item, separators=(",", ":")).replace(f'"{DEEP}"', _DEEP)
