"""An API server in memory, so that transports can be tested through thousands of histories.

It keeps to what the API promises (https://kubernetes.io/docs/reference/using-api/api-concepts/) for
any resource: one counter of revisions, lists in pages that are all of one moment, watches from a
revision with bookmarks and 410 once history was compacted, preconditions on resourceVersion. No
validation, no authorisation, no selectors unless it is told so. The tests on the lab hold the same
clients against the real one.

    async with TinyApi() as api:                   over HTTP: api.kubeconfig
        await api.create(PODS.path("n"), "a")
    api = TinyApi()                                in process: a client without sockets, in any event loop
    client = DirectClient(api.answer)

Objects are kept as text, so a hundred thousand of them fit; `load` takes in texts that are made
when they are read.
"""

import asyncio
import bisect
import json
import ssl
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Self

import jsonpatch
from aiohttp import web

from mpijob_elastic import names
from mpijob_elastic.install import webhook_call
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import JSON
from mpijob_elastic.kube.writer import JSON_PATCH
from tests.doubles.direct import Sent
from tests.faults.kubeconfig import write_plain

Object = dict[str, Any]
Text = bytes | Callable[[], bytes]

# A text that is sent as lists in one another, too deep for a JSON module to write.
DEEP = "DEEP"
_DEEP = b"[" * 9_000 + b"]" * 9_000
_MARKED = {"metadata": {"annotations": {names.PUT_BACK: "true"}}}
# The real server compresses what is larger.
_COMPRESSED_FROM = 128 * 1024


class Objects(MutableMapping[str, Object]):
    """What is stored, by path of the object. `texts` holds the JSON of each, or what makes it."""

    def __init__(self) -> None:
        self.texts: dict[str, Text] = {}

    def __getitem__(self, path: str) -> Object:
        found: Object = json.loads(self.text(path))
        return found

    def __setitem__(self, path: str, item: Object) -> None:
        self.texts[path] = _json(item)

    def __delitem__(self, path: str) -> None:
        del self.texts[path]

    def __contains__(self, path: object) -> bool:
        return path in self.texts

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts)

    def __len__(self) -> int:
        return len(self.texts)

    def __ior__(self, more: Mapping[str, Object]) -> Self:
        self.update(more)
        return self

    def text(self, path: str) -> bytes:
        """Return the JSON of an object."""
        return _read(self.texts[path])


class TinyApi:
    """See the module; an async context manager where it is to be served over HTTP.

    deletions, writes: the options of each deletion that was asked for, and each request that stored
    something. allows: answers each review of somebody's rights. hook: sees each request before it
    takes effect; may answer in the place of the store, or raise an `errors.ApiError`. warnings:
    sent with the answers to writes. selects: lists keep to their selectors. page: the most objects
    of a page whatever the client asks for. streams: serves the paths that end so (exec, for
    example) over HTTP. webhook: one of ours refuses the bad job by which a command asks for it.
    webhook_changes: one of ours annotates the job by which a command asks for that; None: as `webhook`.
    """

    def __init__(
        self, *, bookmark_every: float = 0.05, selects: bool = False, page: int = 10_000
    ) -> None:
        self.objects = Objects()
        self.deletions: list[Object] = []
        self.writes: list[tuple[str, str]] = []
        self.allows: Callable[[Object], bool] = lambda _: True
        self.hook: Callable[[Sent], object | None] = lambda _: None
        self.warnings: list[str] = []
        self.webhook = True
        self.webhook_changes: bool | None = None
        self.streams: dict[str, Callable[[web.Request], Any]] = {}
        self.revision = 100
        self._selects, self._page = selects, page
        self._compacted = 0
        self._bookmark_every = bookmark_every
        self._pages: dict[str, tuple[int, list[Text]]] = {}
        self._news = asyncio.Event()
        self._generation = 0
        # Each event as its revision, and as (collection, line) in the same place.
        self._revisions: list[int] = []
        self._events: list[tuple[str, bytes]] = []
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        port = await self.listen()
        self.kubeconfig = (
            Path(self._stack.enter_context(tempfile.TemporaryDirectory())) / "kubeconfig"
        )
        write_plain(self.kubeconfig, f"http://127.0.0.1:{port}")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def listen(self, tls: ssl.SSLContext | None = None) -> int:
        """Serve until the context is left, and return the port."""
        application = web.Application(client_max_size=2**24)
        application.router.add_route("*", "/{path:.*}", self._serve)
        runner = web.AppRunner(
            application, access_log=None, shutdown_timeout=0.01, handler_cancellation=True
        )
        await runner.setup()
        self._stack.push_async_callback(runner.cleanup)
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        port: int = runner.addresses[0][1]
        return port

    async def create(self, collection: str, name: str, **content: object) -> Object:
        """Store a new object and tell the watches."""
        return self.put(f"{collection}/{name}", content)

    async def update(self, collection: str, name: str, **content: object) -> Object:
        """Change fields of an object and tell the watches."""
        return self.put(
            f"{collection}/{name}", merged(self.objects[f"{collection}/{name}"], content)
        )

    async def delete(self, collection: str, name: str) -> Object:
        """Remove an object and tell the watches."""
        return self.remove(f"{collection}/{name}")

    async def end_streams(self) -> None:
        """End every watch, as the server does when its time is over."""
        self._generation += 1
        self._wake()

    def compact(self) -> None:
        """Forget history: a watch from an earlier revision is now answered with 410."""
        self._compacted = self.revision

    def load(self, texts: Iterable[tuple[str, int, Text]]) -> None:
        """Take in objects as (path, resourceVersion, JSON or what makes it), in the order of their versions."""
        for path, version, text in texts:
            self.revision = max(self.revision, version)
            self.objects.texts[path] = text
            self._tell(path, "ADDED", _read(text))

    def put(self, path: str, item: Object) -> Object:
        """Store an object at a new version and tell the watches."""
        kind = "MODIFIED" if path in self.objects else "ADDED"
        self.objects[path] = item = self._versioned(path, item)
        self._tell(path, kind, _json(item))
        return item

    def remove(self, path: str) -> Object:
        """Remove an object and tell the watches."""
        item = self._versioned(path, self.objects[path])
        del self.objects[path]
        self._tell(path, "DELETED", _json(item))
        return item

    def _versioned(self, path: str, item: Object) -> Object:
        self.revision += 1
        parts = path.split("/")
        namespace = parts[parts.index("namespaces") + 1] if "namespaces" in parts[:-2] else ""
        uid = self.objects[path].get("metadata", {}).get("uid") if path in self.objects else None
        born = {"name": parts[-1], "namespace": namespace, "uid": uid or str(uuid.uuid4())}
        metadata = {**born, **item.get("metadata", {}), "resourceVersion": str(self.revision)}
        return {**item, "metadata": metadata}

    def _tell(self, path: str, kind: str, text: bytes) -> None:
        self._revisions.append(self.revision)
        self._events.append((path.rpartition("/")[0], _line(kind, text)))
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def answer(self, sent: Sent) -> bytes:
        """Answer a request other than a watch, as to a client in this process.

        Raises errors.ApiError.
        """
        hooked = self.hook(sent)
        if hooked is not None:
            return hooked if isinstance(hooked, bytes) else _json(hooked)
        if sent.method == "GET" and "limit" in sent.query:
            return self._list(sent)
        if sent.method == "POST":
            return self._post(sent)
        if sent.path not in self.objects:
            raise refused(404, "NotFound", f"{sent.path} not found")
        if sent.method == "GET":
            return self.objects.text(sent.path)
        return _json(self._change(sent))

    def _post(self, sent: Sent) -> bytes:
        if sent.path.endswith("accessreviews"):
            return _json({"status": {"allowed": self.allows(sent.body["spec"])}})
        name = sent.body["metadata"]["name"]
        if name == webhook_call.NAME and "annotations" not in sent.body["metadata"]:
            changes = self.webhook if self.webhook_changes is None else self.webhook_changes
            return _json(merged(sent.body, _MARKED) if changes else sent.body)
        if name == webhook_call.NAME and self.webhook:
            webhook = f"mpijobs.webhook.{names.PROGRAM}"
            raise refused(
                400, "BadRequest", f'admission webhook "{webhook}" denied the request: no'
            )
        path = f"{sent.path}/{name}"
        if path in self.objects:
            raise refused(409, "AlreadyExists", path)
        if name == webhook_call.NAME:
            return _json(sent.body)  # a dry run
        self.writes.append((sent.method, path))
        return _json(self.put(path, sent.body))

    def _change(self, sent: Sent) -> Object:
        old = self.objects[sent.path]
        if sent.method == "DELETE":
            options = sent.body or {}
            self.deletions.append(options)
            _hold(options.get("preconditions", {}), old)
            self.writes.append((sent.method, sent.path))
            return self.remove(sent.path)
        new: Object = sent.body
        if sent.method == "PATCH" and sent.content_type == JSON_PATCH:
            try:
                new = jsonpatch.apply_patch(old, sent.body)
            except jsonpatch.JsonPatchException as error:
                raise refused(422, "Invalid", str(error)) from error
        elif sent.method == "PATCH":
            new = merged(old, sent.body)
        _hold(new.get("metadata", {}), old)
        self.writes.append((sent.method, sent.path))
        return self.put(sent.path, new)

    def _list(self, sent: Sent) -> bytes:
        token = sent.query.get("continue", "")
        taken, texts = self._pages.pop(token) if token else (self.revision, self._collection(sent))
        limit = min(int(sent.query["limit"]), self._page)
        page, rest = texts[:limit], texts[limit:]
        token = str(uuid.uuid4()) if rest else ""
        if rest:
            self._pages[token] = (taken, rest)
        metadata = _json({"resourceVersion": str(taken), "continue": token})
        return b'{"metadata":%s,"items":[%s]}' % (metadata, b",".join(map(_read, page)))

    def _collection(self, sent: Sent) -> list[Text]:
        paths = sorted(path for path in self.objects if within(sent.path, path.rpartition("/")[0]))
        if self._selects:
            paths = [path for path in paths if selected(self.objects[path], sent.query)]
        return [self.objects.texts[path] for path in paths]

    async def _serve(self, raw: web.Request) -> web.StreamResponse:
        for end, stream in self.streams.items():
            if raw.path.endswith(end):
                return await stream(raw)  # type: ignore[no-any-return]
        content = await raw.read()
        sent = Sent(
            method=raw.method,
            path=raw.path,
            query=raw.query,
            body=json.loads(content) if content else None,
            content_type=raw.headers.get("Content-Type", JSON),
        )
        try:
            if raw.query.get("watch") == "true":
                self.hook(sent)
                return await self._watch(raw)
            answer = await self.answer(sent)
        except errors.ApiError as error:
            return refusal(error.status, error.reason, error.message)
        response = web.Response(body=_sent(answer), content_type=JSON)
        for text in self.warnings if sent.method != "GET" else ():
            quoted = text.replace("\\", "\\\\").replace('"', '\\"')
            response.headers.add("Warning", f'299 - "{quoted}"')
        if len(answer) > _COMPRESSED_FROM:
            response.enable_compression()
        return response

    async def _watch(self, raw: web.Request) -> web.StreamResponse:
        reached, generation = int(raw.query.get("resourceVersion", self.revision)), self._generation
        response = web.StreamResponse(headers={"Content-Type": JSON})
        await response.prepare(raw)
        if reached < self._compacted:
            await response.write(
                _line("ERROR", _json({"kind": "Status", "code": 410, "reason": "Expired"}))
            )
            return response
        told = bisect.bisect(self._revisions, reached)
        ends = time.monotonic() + float(raw.query.get("timeoutSeconds", "inf"))
        while generation == self._generation and time.monotonic() < ends:
            news, reached, events = self._news, self.revision, self._events[told:]
            told += len(events)
            for collection, line in events:
                if within(raw.path, collection):
                    await response.write(_sent(line))
            try:
                await asyncio.wait_for(news.wait(), self._bookmark_every)
            except TimeoutError:
                await response.write(
                    _line("BOOKMARK", _json({"metadata": {"resourceVersion": str(reached)}}))
                )
        return response


def within(asked: str, collection: str) -> bool:
    """Whether a request for `asked` covers `collection`: itself, or those of all namespaces."""
    if asked == collection:
        return True
    scope, namespaces, rest = collection.partition("/namespaces/")
    return bool(namespaces) and asked == f"{scope}/{rest.partition('/')[2]}"


def selected(item: Object, query: Any) -> bool:
    """Whether a list with these selectors holds the object: KEY, KEY=VALUE and their like, and fields by path."""
    labels = item["metadata"].get("labels", {})
    for term in filter(None, query.get("labelSelector", "").split(",")):
        key, equals, value = term.partition("=")
        if key not in labels or (equals and labels[key] != value):
            return False
    for term in filter(None, query.get("fieldSelector", "").split(",")):
        path, _, value = term.partition("=")
        found: Any = item
        for key in path.split("."):
            found = found.get(key, {})
        if found != value:
            return False
    return True


def merged(old: Object, patch: Object) -> Object:
    """The object after a JSON merge patch (RFC 7396)."""
    result = dict(old)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            before = result.get(key)
            result[key] = merged(before if isinstance(before, dict) else {}, value)
        else:
            result[key] = value
    return result


def refused(status: int, reason: str, message: str = "") -> errors.ApiError:
    """The error of the transport for such a refusal."""
    return errors.from_response(status, _json({"reason": reason, "message": message}), None)


def refusal(status: int, reason: str, message: str = "") -> web.Response:
    """A refusal as the API server words it."""
    body = {"kind": "Status", "code": status, "reason": reason, "message": message}
    return web.json_response(body, status=status)


def _hold(wanted: Object, old: Object) -> None:
    """Raise Conflict unless the object has this uid and resourceVersion, where they are given."""
    found = old.get("metadata", {})
    for key in ("uid", "resourceVersion"):
        if wanted.get(key, found.get(key)) != found.get(key):
            raise refused(409, "Conflict", "the object has been modified")


def _json(item: object) -> bytes:
    return json.dumps(item, separators=(",", ":")).encode()


def _read(text: Text) -> bytes:
    return text if isinstance(text, bytes) else text()


def _sent(text: bytes) -> bytes:
    return text.replace(b'"%s"' % DEEP.encode(), _DEEP) if DEEP.encode() in text else text


def _line(kind: str, text: bytes) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (kind.encode(), text)
