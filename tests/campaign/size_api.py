"""Size: a small API server over TLS for a hundred thousand objects.

It lists in pages (compressed, as the real server compresses what is larger than 128 KiB), watches with bookmarks,
patches and deletes with preconditions, and answers exec: a worker above its job's size is idle, any other busy. There
is no admission and no authorisation. It plays the kubelet, for a pod whose deletion was asked for goes after its grace.
"""

import asyncio
import gzip
import json
import re
import ssl
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Self
from uuid import uuid4

import jsonpatch
from aiohttp import web

from lab.kubeconfig import Server, write_token_kubeconfig
from lab.pki import LOOPBACK, Authority
from mpijob_elastic import names
from mpijob_elastic.kube.exec import PROTOCOLS
from mpijob_elastic.kube.resources import CUSTOM_RESOURCE_DEFINITIONS, LEASES, MPI_JOBS, PODS, Resource
from mpijob_elastic.kube.writer import JSON_PATCH
from tests.campaign.size_fleet import Made, Object
from tests.doubles.api import merged, refusal

# Bytes from which the real server compresses a list; seconds between bookmarks.
COMPRESSED_FROM, BOOKMARKS = 128 * 1024, 50.0
_PATH = re.compile(r"/(?:api|apis/[^/]+)/v1[^/]*(?:/namespaces/([^/]+))?/([a-z]+)(?:/([^/]+))?(?:/([a-z]+))?")

Stored = Made | bytes


class SmallApi:
    """An async context. calls: requests by verb, or subresource, and plural. version: the latest resourceVersion.

    Nothing that is posted is stored: those are Events.
    """

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()
        self._objects: dict[str, dict[str, dict[str, Stored]]] = defaultdict(lambda: defaultdict(dict))
        self.version = 1
        self._lists: dict[str, tuple[int, list[Stored]]] = {}
        self._history: dict[str, list[tuple[int, bytes]]] = defaultdict(list)
        self._watches: dict[str, set[asyncio.Queue[bytes]]] = defaultdict(set)
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        application = web.Application(client_max_size=2**24)
        application.router.add_route("*", "/{path:.*}", self._serve)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.01, handler_cancellation=True)
        await runner.setup()
        self._stack.push_async_callback(runner.cleanup)
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        authority = Authority(folder, "ca", now=datetime.now(UTC))
        pair = authority.issue("server", user="server", hosts=(LOOPBACK,))
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(pair.certificate, pair.key)
        await web.TCPSite(runner, LOOPBACK, 0, ssl_context=context).start()
        server = Server(url=f"https://{LOOPBACK}:{runner.addresses[0][1]}", ca=authority.certificate.read_bytes())
        self.kubeconfig = folder / "kubeconfig"
        write_token_kubeconfig(self.kubeconfig, server, user="controller", token="t", namespace=names.NAMESPACE)
        self.store(LEASES, names.NAMESPACE, names.LEASE, {"metadata": {"name": names.LEASE}})
        # As v0.2.3 installs it, without the subresource scale.
        definition = f"{MPI_JOBS.plural}.{MPI_JOBS.group}"
        self.store(CUSTOM_RESOURCE_DEFINITIONS, "", definition, {"metadata": {"name": definition}, "spec": {}})
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def load(self, objects: Iterable[tuple[Resource, Made]]) -> None:
        """Take in objects, and tell the watches."""
        for resource, made in objects:
            self.version = max(self.version, made.version)
            self._objects[resource.plural][made.namespace][made.name] = made
            if self._watches[resource.plural]:
                self._tell(resource.plural, "ADDED", made.version, made.text())

    def read(self, resource: Resource, namespace: str, name: str) -> Object:
        """Return an object. Raises KeyError."""
        found: Object = json.loads(_text(self._objects[resource.plural][namespace][name]))
        return found

    def count(self, resource: Resource) -> int:
        """Return how many objects there are."""
        return sum(map(len, self._objects[resource.plural].values()))

    def update(self, resource: Resource, namespace: str, name: str, content: Object) -> None:
        """Change an object by a merge patch, and tell the watches."""
        self.store(resource, namespace, name, merged(self.read(resource, namespace, name), content))

    def store(self, resource: Resource, namespace: str, name: str, item: Object) -> bytes:
        """Store an object at a new version, tell the watches, and return its JSON."""
        self.version += 1
        item["metadata"] |= {"namespace": namespace, "resourceVersion": str(self.version)}
        found = self._objects[resource.plural][namespace]
        kind, text = "MODIFIED" if name in found else "ADDED", json.dumps(item, separators=(",", ":")).encode()
        found[name] = text
        self._tell(resource.plural, kind, self.version, text)
        return text

    def _remove(self, namespace: str, name: str) -> None:
        self.version += 1
        item = self.read(PODS, namespace, name)
        item["metadata"]["resourceVersion"] = str(self.version)
        del self._objects[PODS.plural][namespace][name]
        self._tell(PODS.plural, "DELETED", self.version, json.dumps(item, separators=(",", ":")).encode())

    def _tell(self, plural: str, kind: str, version: int, text: bytes) -> None:
        line = b'{"type":"%s","object":%s}\n' % (kind.encode(), text)
        self._history[plural].append((version, line))
        for watch in self._watches[plural]:
            watch.put_nowait(line)

    async def _serve(self, raw: web.Request) -> web.StreamResponse:
        asked = _PATH.fullmatch(raw.path)
        if asked is None:
            return refusal(404, "NotFound")
        namespace, plural, name, subresource = asked.groups("")
        self.calls[subresource or raw.method, plural] += 1
        if raw.method == "POST":
            return web.json_response(await raw.json(), status=201)
        if not name:
            return await self._watch(raw, plural) if "watch" in raw.query else self._list(raw, plural, namespace)
        if name not in self._objects[plural][namespace]:
            return refusal(404, "NotFound")
        if subresource == "exec":
            return await self._exec(raw, namespace, name)
        return await self._one(raw, Resource(plural=plural, kind=""), namespace, name)

    async def _one(self, raw: web.Request, resource: Resource, namespace: str, name: str) -> web.Response:
        if raw.method == "PATCH":
            return await self._patch(raw, resource, namespace, name)
        if raw.method == "DELETE":
            return await self._delete(raw, namespace, name)
        return _json(_text(self._objects[resource.plural][namespace][name]))

    def _list(self, raw: web.Request, plural: str, namespace: str) -> web.Response:
        token = raw.query.get("continue")
        taken, items = self._lists.pop(token) if token else (self.version, self._selected(raw, plural, namespace))
        limit = int(raw.query["limit"])
        page, rest = items[:limit], items[limit:]
        token = str(uuid4()) if rest else ""
        if rest:
            self._lists[token] = (taken, rest)
        metadata = json.dumps({"resourceVersion": str(taken), "continue": token}).encode()
        body = b'{"kind":"List","metadata":%s,"items":[%s]}' % (metadata, b",".join(map(_text, page)))
        return _json(body)

    def _selected(self, raw: web.Request, plural: str, namespace: str) -> list[Stored]:
        if not namespace:
            return list(chain.from_iterable(found.values() for found in self._objects[plural].values()))
        found = self._objects[plural][namespace]
        job = re.search(rf"{names.LABEL_JOB_NAME}=([^,]+)", raw.query.get("labelSelector", ""))
        return [item for name, item in found.items() if not job or name.startswith((f"{job[1]}-w", f"{job[1]}-l"))]

    async def _watch(self, raw: web.Request, plural: str) -> web.StreamResponse:
        since = int(raw.query["resourceVersion"])
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(raw)
        lines: asyncio.Queue[bytes] = asyncio.Queue()
        for version, line in self._history[plural]:
            if version > since:
                lines.put_nowait(line)
        self._watches[plural].add(lines)
        try:
            while True:
                try:
                    await response.write(await asyncio.wait_for(lines.get(), BOOKMARKS))
                except TimeoutError:
                    metadata = {"metadata": {"resourceVersion": str(self.version)}}
                    await response.write(json.dumps({"type": "BOOKMARK", "object": metadata}).encode() + b"\n")
        finally:
            self._watches[plural].discard(lines)

    async def _patch(self, raw: web.Request, resource: Resource, namespace: str, name: str) -> web.Response:
        old, sent = self.read(resource, namespace, name), await raw.json()
        try:
            is_json_patch = raw.content_type == JSON_PATCH
            new = jsonpatch.apply_patch(old, sent) if is_json_patch else merged(old, sent)
        except jsonpatch.JsonPatchException:
            return refusal(422, "Invalid")
        if any(new["metadata"].get(key) != old["metadata"].get(key) for key in ("uid", "resourceVersion")):
            return refusal(409, "Conflict")
        return _json(self.store(resource, namespace, name, new))

    async def _delete(self, raw: web.Request, namespace: str, name: str) -> web.Response:
        pod, options = self.read(PODS, namespace, name), await raw.json()
        if any(pod["metadata"][key] != value for key, value in options.get("preconditions", {}).items()):
            return refusal(409, "Conflict")
        grace = options.get("gracePeriodSeconds", 30)
        going = {"deletionTimestamp": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}
        if "deletionTimestamp" not in pod["metadata"]:
            pod["metadata"] |= going | {"deletionGracePeriodSeconds": grace}
            asyncio.get_running_loop().call_later(grace, self._remove, namespace, name)
        return _json(self.store(PODS, namespace, name, pod))

    async def _exec(self, raw: web.Request, namespace: str, name: str) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(protocols=PROTOCOLS)
        await socket.prepare(raw)
        job, _, index = name.rpartition("-worker-")
        if job:
            size = self.read(MPI_JOBS, namespace, job)["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"]
            await socket.send_bytes(b"\x01busy\n" if int(index) < size else b"\x01idle\n")
        await socket.send_bytes(b'\x03{"status":"Success"}')
        await socket.close()
        return socket


def _text(item: Stored) -> bytes:
    return item if isinstance(item, bytes) else item.text()


def _json(text: bytes) -> web.Response:
    headers = {"Content-Type": "application/json"}
    if len(text) < COMPRESSED_FROM:
        return web.Response(body=text, headers=headers)
    return web.Response(body=gzip.compress(text, 1), headers={**headers, "Content-Encoding": "gzip"})
