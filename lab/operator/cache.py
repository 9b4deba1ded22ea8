"""A copy of one kind of objects, kept by list and watch; whatever goes wrong, it lists again."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, Literal, Protocol, TypeVar

import msgspec

from lab.operator.kinds import Resource
from lab.operator.wire import Key
from mpijob_elastic.kube.errors import KubeError, Unreachable
from mpijob_elastic.kube.writer import ApiWriter

SILENCE = 90.0  # seconds without a line; the API server sends a bookmark every minute
PAUSE = 0.5  # seconds before it lists again
PATIENCE = 1.0  # seconds to wait for one change

log = logging.getLogger(__name__)

Change = Literal["added", "changed", "deleted"]


class Keyed(Protocol):
    """What a cache can hold."""

    @property
    def key(self) -> Key:
        """Its namespace and name."""

    @property
    def version(self) -> int:
        """Its resourceVersion."""


T = TypeVar("T", bound=Keyed)


class _Version(msgspec.Struct, rename="camel"):
    resource_version: str


class _List(msgspec.Struct):
    metadata: _Version
    items: list[msgspec.Raw] | None = None


class _Line(msgspec.Struct):
    type: str
    object: msgspec.Raw


class Cache(Generic[T]):
    """The objects of one resource; `notify` is called after each change in it."""

    def __init__(self, *, resource: Resource, kind: type[T], notify: Callable[[Change, T], None]) -> None:
        self.resource = resource
        self.items: dict[Key, T] = {}
        self.synced = asyncio.Event()
        self._version = 0
        self._moved = asyncio.Event()
        self._decode = msgspec.json.Decoder(kind).decode
        self._notify = notify

    async def catch_up(self, version: int) -> None:
        """Wait until a change is in the copy, as long as the API server may reasonably take."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                while self._version < version:
                    await self._moved.wait()

    async def run(self, client: ApiWriter, *, namespace: str) -> None:
        """Keep the copy, of one namespace or of all (""), until cancelled."""
        path = self.resource.path(namespace)
        while True:
            try:
                await self._list(client, path)
                await self._follow(client, path)
            except (KubeError, msgspec.DecodeError) as error:
                log.warning("listing %s again: %s", self.resource.plural, error)
                await asyncio.sleep(PAUSE)

    async def _list(self, client: ApiWriter, path: str) -> None:
        answer = msgspec.json.decode(await client.get(path), type=_List)
        listed = {item.key: item for item in map(self._decode, answer.items or ())}
        for key in self.items.keys() - listed.keys():
            self._remove(key)
        for item in listed.values():
            self._put(item)
        self._advance(int(answer.metadata.resource_version))
        self.synced.set()

    async def _follow(self, client: ApiWriter, path: str) -> None:
        query = {"watch": "1", "allowWatchBookmarks": "1", "resourceVersion": str(self._version)}
        async with client.stream(path, query=query, silence=SILENCE) as lines:
            async for line in lines:
                self._apply(msgspec.json.decode(line, type=_Line))

    def _apply(self, line: _Line) -> None:
        match line.type:
            case "ADDED" | "MODIFIED":
                item = self._decode(line.object)
                self._put(item)
            case "DELETED":
                item = self._decode(line.object)
                self._remove(item.key)
            case "ERROR":
                raise Unreachable(f"the watch ended: {bytes(line.object).decode()}")
            case _:  # a bookmark
                return
        self._advance(item.version)

    def _advance(self, version: int) -> None:
        self._version = version
        self._moved.set()
        self._moved = asyncio.Event()

    def _put(self, item: T) -> None:
        old = self.items.get(item.key)
        if item != old:
            self.items[item.key] = item
            self._notify("changed" if old else "added", item)

    def _remove(self, key: Key) -> None:
        if item := self.items.pop(key, None):
            self._notify("deleted", item)
