"""An API server in memory, behind the transport's own interface, whose answers come when the test says so.

Every request is in flight twice: before it takes effect and before its answer arrives. At both points the coroutine
that sent it is suspended, so a test can interleave several replicas in any order, or end one there.
"""

import copy
from collections.abc import Coroutine, Generator, Mapping
from typing import Any

import jsonpatch
import msgspec

from mpijob_elastic import names
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import JSON, USUAL, Limits
from mpijob_elastic.kube.resources import MUTATING_WEBHOOKS, SECRETS, VALIDATING_WEBHOOKS
from mpijob_elastic.kube.writer import JSON_PATCH, MERGE_PATCH, ApiWriter

Object = dict[str, Any]
SECRET = SECRETS.path(names.NAMESPACE, names.CERTIFICATE_SECRET)
CONFIGURATIONS = tuple(
    resource.path(name=names.WEBHOOK_CONFIGURATION) for resource in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)
)


class _Turn:
    """Awaiting it hands control to the caller that drives the coroutine."""

    def __await__(self) -> Generator[None, None, None]:
        yield


class MemoryApi(ApiWriter):
    """A client answered from `objects` (by path), with resourceVersions as preconditions and two patch types."""

    def __init__(self) -> None:
        self.objects: dict[str, Object] = {}
        self.writes: list[tuple[str, str]] = []
        self.read_only: set[str] = set()
        self._version = 0

    async def _call_api(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        content_type: str = JSON,
        limits: Limits = USUAL,
    ) -> bytes:
        await _Turn()
        answer = msgspec.json.encode(self._done(method, path, msgspec.to_builtins(body), content_type))
        await _Turn()
        return answer

    def put(self, path: str, obj: Object) -> Object:
        """Store an object as its next version."""
        self._version += 1
        self.objects[path] = copy.deepcopy(obj)
        self.objects[path]["metadata"]["resourceVersion"] = str(self._version)
        return self.objects[path]

    def _done(self, method: str, path: str, body: Any, content_type: str) -> Object:
        if method == "POST":
            path = f"{path}/{body['metadata']['name']}"
            if path in self.objects:
                raise errors.AlreadyExists(status=409, reason="AlreadyExists", message=path)
        elif path not in self.objects:
            raise errors.NotFound(status=404, reason="NotFound", message=path)
        if method == "GET":
            return self.objects[path]
        if path in self.read_only:
            raise errors.Forbidden(status=403, reason="Forbidden", message=path)
        wanted = body if method == "POST" else self._patched(self.objects[path], body, content_type)
        self.writes.append((method, path))
        return self.put(path, wanted)

    def _patched(self, obj: Object, body: Any, content_type: str) -> Object:
        assert content_type in {JSON_PATCH, MERGE_PATCH}
        patched: Object = jsonpatch.apply_patch(obj, body) if content_type == JSON_PATCH else merged(obj, body)
        if patched["metadata"]["resourceVersion"] != obj["metadata"]["resourceVersion"]:
            raise errors.Conflict(status=409, reason="Conflict", message="the object has been modified")
        return patched


def merged(obj: Object, patch: Object) -> Object:
    """RFC 7386."""
    result = {key: value for key, value in obj.items() if patch.get(key, value) is not None}
    for key, value in patch.items():
        if isinstance(value, dict):
            result[key] = merged(result.get(key) or {}, value)
        elif value is not None:
            result[key] = value
    return result


def configuration(hooks: int) -> Object:
    """A webhook configuration as it is installed: without any caBundle."""
    return {"metadata": {"name": names.WEBHOOK_CONFIGURATION}, "webhooks": [{"clientConfig": {}} for _ in range(hooks)]}


def finish(coroutine: Coroutine[None, None, None]) -> None:
    """Drive a coroutine to its end, answering every request at once."""
    while advance(coroutine):
        pass


def advance(coroutine: Coroutine[None, None, None]) -> bool:
    """Drive a coroutine to its next suspension; False where it ended."""
    try:
        coroutine.send(None)
    except StopIteration:
        return False
    return True
