"""A cache of the objects of one resource that never goes backward.

Four sources feed the cache: a list, the watch that follows the list, answers to our own writes, and
completed deletions. The sources overlap and may repeat old news, so everything is ordered by
resourceVersion (see `meta.revision`):

- an object is replaced only by a later version of itself, or by a later object of its name;
- a watch event that is not later than the position of the stream (or of the list before it) is
  ignored as a repetition;
- a list removes objects that it does not hold, unless they were written after the list was taken;
- a list older than the position is refused (`StaleList`);
- a forgotten object stays away, in spite of late news of it, until its deletion is seen, or until a
  list that was begun afterwards still holds it;
- `on_change` is called once for each change, after it, and never with two equal versions.

No input or output here.
"""

import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from mpijob_elastic.kube.meta import Identity, KubeObject, revision

T = TypeVar("T", bound=KubeObject)
Key = tuple[str, str]


class StaleList(Exception):
    """A list is older than the cache: it came from an API server that lags behind."""


@dataclass(kw_only=True)
class Listing:
    """A list in progress, page by page, so that there is never a second copy of the cache."""

    #: Uids that were forgotten before the list was begun.
    forgotten_before: frozenset[str]
    #: Version of the list.
    taken: int = 0
    #: Namespaces and names of the objects listed so far.
    listed: set[Key] = field(default_factory=set)


class Store(Generic[T]):
    """The objects by namespace and name; `on_change` gets (old, new), where None means absent."""

    def __init__(self, on_change: Callable[[T | None, T | None], None]) -> None:
        self._on_change = on_change
        self._objects: dict[Key, T] = {}
        # Uids of objects that are gone, while news of them may still arrive.
        self._forgotten: set[str] = set()
        self.position = 0

    def get(self, namespace: str, name: str) -> T | None:
        """Return the object as last seen."""
        return self._objects.get((namespace, name))

    def values(self) -> Collection[T]:
        """Return every object as last seen: a live view, so do not await while iterating."""
        return self._objects.values()

    def put(self, new: T) -> None:
        """Store an object that the API server returned, if it is later than the known version."""
        meta = new.metadata
        key = (meta.namespace, meta.name)
        old = self._objects.get(key)
        if meta.uid in self._forgotten or (old is not None and _revision(old) >= _revision(new)):
            return
        self._objects[key] = new
        self._on_change(old, new)

    def written(self, new: T) -> None:
        """Store the answer to our own write, unless the watch is later: the object may be gone."""
        if _revision(new) > self.position:
            self.put(new)

    def forget(self, namespace: str, name: str, uid: str) -> None:
        """Remove an object that is gone according to the API server.

        A terminating pod is not gone: pass the answer to its deletion to `written` instead.
        """
        old = self.get(namespace, name)
        if old is not None and old.metadata.uid == uid:
            # The deletion of an absent object was already seen, and will not be seen again.
            self._forgotten.add(uid)
            self._remove((namespace, name))

    def event(self, meta: Identity, new: T | None) -> bool:
        """Apply a watch event on the object of `meta`; `new` is None if it is gone.

        Return True if that was news.
        """
        reached = revision(meta.resource_version)
        if reached <= self.position:
            return False
        self.position = reached
        if new is not None:
            self.put(new)
        else:
            self._forgotten.discard(meta.uid)
            self._remove((meta.namespace, meta.name), until=reached)
        return True

    def bookmark(self, resource_version: str) -> bool:
        """Note that the stream has reached this version.

        Return False if the version is older than the position.
        """
        reached = revision(resource_version)
        at_least = reached >= self.position
        self.position = max(self.position, reached)
        return at_least

    def begin_list(self) -> Listing:
        """Begin a list, before the list is requested."""
        return Listing(forgotten_before=frozenset(self._forgotten))

    def list_page(self, listing: Listing, resource_version: str, page: Iterable[T]) -> None:
        """Add a page of a list; all pages have the same version. Raises StaleList."""
        listing.taken = revision(resource_version)
        if listing.taken < self.position:
            raise StaleList(
                f"the list is of version {listing.taken}, the cache has reached {self.position}"
            )
        for new in page:
            meta = new.metadata
            listing.listed.add((meta.namespace, meta.name))
            if meta.uid in listing.forgotten_before:
                self._forgotten.discard(meta.uid)
            self.put(new)

    def end_list(self, listing: Listing) -> None:
        """Complete a list: objects that it does not hold are gone."""
        self._forgotten -= listing.forgotten_before
        for key in self._objects.keys() - listing.listed:
            self._remove(key, until=listing.taken)
        self.position = listing.taken

    def _remove(self, key: Key, *, until: float = math.inf) -> None:
        old = self._objects.get(key)
        if old is not None and _revision(old) <= until:
            del self._objects[key]
            self._on_change(old, None)


def _revision(item: KubeObject) -> int:
    return revision(item.metadata.resource_version)
