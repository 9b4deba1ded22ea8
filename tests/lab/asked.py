"""The rights that commands need for what they ask of the API server, while they run in this process."""

import re
from collections.abc import Mapping
from typing import Any

import pytest

from mpijob_elastic.cli.rights import UserRight
from mpijob_elastic.kube.reader import ApiReader

_PATH = re.compile(
    r"/apis?/(?:(?P<group>[^/]+\.[^/]+|apps|policy|autoscaling)/)?(?P<version>v[^/]+)"
    r"/namespaces/(?P<namespace>[^/]+)/(?P<plural>[^/]+)(?:/(?P<name>[^/]+)(?:/(?P<part>[^/]+))?)?"
)
_VERBS = {"POST": "create", "PATCH": "patch", "DELETE": "delete", "PUT": "update"}


class Asked:
    """Notes the rights; those on objects outside of the namespace of jobs are left out."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._rights: set[UserRight] = set()
        call, stream, socket = ApiReader._call_api, ApiReader.stream, ApiReader.websocket

        async def called(reader: ApiReader, method: str, path: str, **options: Any) -> bytes:
            self._note(method, path, options.get("query"))
            return await call(reader, method, path, **options)

        def streamed(reader: ApiReader, path: str, **options: Any) -> Any:
            self._note("GET", path, options["query"])
            return stream(reader, path, **options)

        def opened(reader: ApiReader, path: str, **options: Any) -> Any:
            self._note("GET", path, None)
            return socket(reader, path, **options)

        monkeypatch.setattr(ApiReader, "_call_api", called)
        monkeypatch.setattr(ApiReader, "stream", streamed)
        monkeypatch.setattr(ApiReader, "websocket", opened)

    def taken(self) -> frozenset[UserRight]:
        """Return the rights that were needed since the last call."""
        taken, self._rights = self._rights, set()
        return frozenset(taken)

    def _note(self, method: str, path: str, query: Mapping[str, str] | None) -> None:
        found = _PATH.fullmatch(path)
        if found is None or found["namespace"] != "ml":
            return
        resource = "/".join(filter(None, (found["plural"], found["part"])))
        verb = _VERBS.get(method, "get" if found["name"] else "list")
        if (query or {}).get("watch"):
            verb = "watch"
        self._rights.add(UserRight(found["group"] or "", resource, verb))
