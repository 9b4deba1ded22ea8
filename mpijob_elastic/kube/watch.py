"""A cache of one resource that lists once and then follows the watch for ever.

Each round lists if nothing is known (or the known version is too old), then watches until the
stream ends. The end of a round, and the next round:

| end of a round                                                   | next round                    |
|------------------------------------------------------------------|-------------------------------|
| the server ends the stream (it was asked to, after 5 to 10 min)  | goes on from the last version |
| no byte for 70 s: bookmarks come every 60 s, so the peer is dead | goes on from the last version |
| 429                                                              | goes on, after Retry-After    |
| refused, reset, 5xx, 403, ...                                    | goes on                       |
| 410 or 400, as answer or in the stream                           | lists                         |
| three streams in a row without a line (some proxies hide a 410)  | lists                         |

The old cache stays until a new list is complete. After a round that was healthy for a minute the
next round begins at once; after any other round it waits, from 0.4 s doubling to 30 s, so that no
answer can cause a hot loop.

Lists are requested and stored page by page. Streaming lists (`sendInitialEvents`) would be cheaper
for the server, but Kubernetes before 1.32 and older etcds do not serve them. Paged lists are needed
anyway, and one way is enough.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from random import Random
from typing import Generic, Never, TypeVar

import msgspec

from mpijob_elastic.kube import envelopes, errors
from mpijob_elastic.kube.meta import Identity, KubeObject, OwnedIdentity, check_cost
from mpijob_elastic.kube.queue import Backoff
from mpijob_elastic.kube.reader import PAGE, ApiReader, Timeouts, pages
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.kube.store import Key, StaleList, Store

T = TypeVar("T", bound=KubeObject)
# The JSON of an object.
Json = bytes | msgspec.Raw

log = logging.getLogger(__name__)

RETRY = Backoff(first=0.8, longest=30.0)


@dataclass(frozen=True, kw_only=True)
class WatchTimes:
    """The times of a watch, in seconds, and its counts.

    Stream lifetime and backoff are those of client-go's reflector.
    """

    #: Seconds without a byte after which the peer counts as dead. The API server sends a bookmark
    #: each minute on request (staging/src/k8s.io/apiserver, cacher.go).
    silence: float = 70.0
    #: Seconds that the head of an answer may take.
    opening: float = 20.0
    #: Seconds after which a round counts as healthy.
    healthy: float = 60.0
    #: Bounds of the lifetime that we ask for a stream, in seconds.
    shortest_stream: float = 300.0
    longest_stream: float = 600.0
    #: Seconds that a page of a list may take.
    list_timeout: float = 30.0
    #: Waits between rounds.
    retry: Backoff = RETRY
    #: So many streams without a line, in a row, lead to a list.
    barren_streams: int = 3
    #: Objects of a page of a list.
    page: int = PAGE


@dataclass(eq=False)
class WatchCache(Generic[T]):
    """The objects of one resource that match the selectors, as last seen.

    `store` holds the objects, and never goes backward. Give it the answers to our own writes
    (`written`). `synced` is set once all objects are listed.
    """

    client: ApiReader
    resource: Resource
    _: KW_ONLY
    #: Turns the JSON of an object (bytes-like) into a struct. An object that it refuses is logged,
    #: counted by `unreadable` and treated as absent, because we must not act on an object that we
    #: cannot read.
    decode: Callable[[bytes], T]
    random: Random
    #: Called synchronously with the old and the new object after each change; None means absent. It
    #: should only put keys into a queue. During the first list it is called for each object, before
    #: `synced` is set.
    on_change: Callable[[T | None, T | None], None] = lambda _old, _new: None
    #: Called with an object that `decode` refuses, the reason, and its JSON; and with "" and no
    #: JSON once the object can be read or is gone.
    on_unread: Callable[[OwnedIdentity, str, Json], None] = lambda _meta, _why, _raw: None
    #: None for all namespaces.
    namespace: str | None = None
    label_selector: str | None = None
    field_selector: str | None = None
    clock: Callable[[], float] = time.monotonic
    times: WatchTimes = WatchTimes()
    #: Whether `run` raises errors.Forbidden. A controller goes on, because a right may come.
    ends_forbidden: bool = False

    def __post_init__(self) -> None:
        """Begin without any object."""
        self.synced = asyncio.Event()
        self.store: Store[T] = Store(self.on_change)
        selectors = {"labelSelector": self.label_selector, "fieldSelector": self.field_selector}
        self._selectors = {name: value for name, value in selectors.items() if value}
        self._path = self.resource.path(self.namespace)
        self._alive = self.clock()
        self._barren = 0
        self._must_list = True
        self._unreadable: dict[Key, OwnedIdentity] = {}

    def restart(self) -> None:
        """Have the next run list everything again; not synced until then."""
        self.synced.clear()
        self._must_list = True

    @property
    def unreadable(self) -> int:
        """The number of objects that exist and cannot be read."""
        return len(self._unreadable)

    def age(self) -> float:
        """Return the seconds since the last proof that news arrives: an event, a bookmark, a list.

        Old news is no proof: the age also grows after the server's data was reset to an earlier
        state (an etcd restored from a backup). Only a new process helps then, so a health check
        uses this age.
        """
        return self.clock() - self._alive

    async def run(self) -> Never:
        """List and watch for ever; cancel to stop. See `ends_forbidden`."""
        failures = refused = 0
        while True:
            started, was_synced = self.clock(), self.synced.is_set()
            problem = await self._round()
            refused = self._refused(problem, refused, was_synced=was_synced)
            healthy = self.clock() - started >= self.times.healthy
            failures = 0 if healthy else failures + 1
            delay = self._delay(failures, problem)
            log.log(
                logging.WARNING if problem else logging.DEBUG,
                "watch of %s ended (%s); again in %.1f s",
                self._path,
                problem or "by the server",
                delay,
            )
            await asyncio.sleep(delay)

    def _refused(self, problem: Exception | None, before: int, *, was_synced: bool) -> int:
        """Return how many rounds in a row were refused. See `ends_forbidden`.

        A right may be away for a moment, as while a binding is made again: so after the first list
        one refusal ends nothing.
        """
        if not isinstance(problem, errors.Forbidden):
            return 0
        if self.ends_forbidden and (before or not was_synced):
            raise problem
        return before + 1

    def _delay(self, failures: int, problem: Exception | None) -> float:
        asked = problem.retry_after if isinstance(problem, errors.ApiError) else None
        ours = self.times.retry.delay(failures, self.random) if failures else 0.0
        return max(asked or 0.0, ours)

    async def _round(self) -> Exception | None:
        try:
            if self._must_list or self._barren >= self.times.barren_streams:
                await self._list()
            await self._watch()
        except (errors.Gone, errors.Invalid) as error:
            self._must_list = True
            return error
        except (errors.KubeError, StaleList, msgspec.DecodeError, RecursionError) as error:
            return error
        return None

    async def _list(self) -> None:
        listing = self.store.begin_list()
        before, self._unreadable = self._unreadable, {}
        limits = Timeouts(attempt=self.times.list_timeout, throttled=0)
        found = pages(
            self.client, self._path, query=self._selectors, size=self.times.page, limits=limits
        )
        async for page in found:
            version = page.metadata.resource_version
            self.store.list_page(listing, version, ())
            # One by one: an earlier object may decide whether a later object may be kept.
            for raw in page.items or ():
                if (item := (await self._read(raw))[1]) is not None:
                    self.store.list_page(listing, version, [item])
            self._alive = self.clock()
        self.store.end_list(listing)
        for key in before.keys() - self._unreadable.keys():
            self.on_unread(before[key], "", b"")
        self._must_list = False
        self._barren = 0
        self.synced.set()

    async def _watch(self) -> None:
        lifetime = self.random.uniform(self.times.shortest_stream, self.times.longest_stream)
        query = {
            **self._selectors,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": str(self.store.position),
            "timeoutSeconds": str(int(lifetime)),
        }
        opened = self.client.stream(
            self._path, query=query, silence=self.times.silence, opening=self.times.opening
        )
        async with opened as lines:
            self._barren += 1
            async for line in lines:
                await self._take(line)
                self._barren = 0

    async def _take(self, text: bytes) -> None:
        line = envelopes.read_line(text)
        if line.type == "ERROR":
            raise errors.from_event(line.object)
        if line.type == "BOOKMARK":
            current = self.store.bookmark(
                envelopes.read_stub(line.object).metadata.resource_version
            )
        else:
            meta, item = await self._read(line.object)
            gone = line.type == "DELETED"
            if item is not None or gone:
                self._readable_again((meta.namespace, meta.name))
            current = self.store.event(meta, None if gone else item)
        if current:
            self._alive = self.clock()

    def _readable_again(self, key: Key) -> None:
        meta = self._unreadable.pop(key, None)
        if meta is not None:
            self.on_unread(meta, "", b"")

    async def _read(self, raw: bytes) -> tuple[Identity, T | None]:
        try:
            check_cost(raw)
            item = self.decode(raw)
        except Exception as error:  # noqa: BLE001 - whatever is wrong, it is wrong with this object alone
            meta = await envelopes.read_identity(raw)
            key = (meta.namespace, meta.name)
            # A warning once a list, because the object's author may edit it all day.
            level = logging.DEBUG if key in self._unreadable else logging.WARNING
            self._unreadable[key] = meta = meta.shortened()
            self.on_unread(meta, str(error), raw)
            log.log(level, "ignoring %s %s/%s: %s", self.resource.plural, *key, error)
            return meta, None
        return item.metadata, item


def watches(
    make: Callable[..., WatchCache[T]], namespaces: Sequence[str]
) -> "WatchCache[T] | Watches[T]":
    """Return what `make(namespace=...)` makes for these namespaces; empty means all namespaces.

    An account may have rights in some namespaces only.
    """
    found = {namespace: make(namespace=namespace) for namespace in namespaces}
    return Watches(found) if len(found) > 1 else next(iter(found.values()), None) or make()


class Watches(Generic[T]):
    """The caches of several namespaces as one `WatchCache` with one `Store`.

    It is synced once each cache has listed its objects.
    """

    def __init__(self, caches: Mapping[str, WatchCache[T]]) -> None:
        self.synced = asyncio.Event()
        self.store = self
        self._caches = caches.values()
        self._stores = {namespace: cache.store for namespace, cache in caches.items()}

    def get(self, namespace: str, name: str) -> T | None:
        """Return the object as last seen."""
        return self._stores[namespace].get(namespace, name) if namespace in self._stores else None

    def values(self) -> Collection[T]:
        """Return every object as last seen."""
        return [found for store in self._stores.values() for found in store.values()]

    def written(self, new: T) -> None:
        """Store the answer to our own write."""
        self._stores[new.metadata.namespace].written(new)

    def forget(self, namespace: str, name: str, uid: str) -> None:
        """Remove an object that is gone."""
        self._stores[namespace].forget(namespace, name, uid)

    @property
    def unreadable(self) -> int:
        """The number of objects that exist and cannot be read."""
        return sum(cache.unreadable for cache in self._caches)

    def age(self) -> float:
        """Return the largest age of these caches (`WatchCache.age`)."""
        return max(cache.age() for cache in self._caches)

    def restart(self) -> None:
        """Have the next run list everything again; not synced until then."""
        self.synced.clear()
        for cache in self._caches:
            cache.restart()

    async def run(self) -> None:
        """List and watch for ever; cancel to stop."""
        async with asyncio.TaskGroup() as group:
            for cache in self._caches:
                group.create_task(cache.run())
            for cache in self._caches:
                await cache.synced.wait()
            self.synced.set()
