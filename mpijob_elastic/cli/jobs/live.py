"""Follow jobs with watch caches like the controller's, for a reader that waits for changes.

The objects of capabilities are read as `fetch` reads them, but followed too. The place of a job in
its queue changes with the objects of other jobs, so changes of such objects are taken in at most
once every `APART` seconds.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from random import Random
from typing import Any, Self, TypeVar

from mpijob_elastic import names
from mpijob_elastic.capabilities.shown import READINGS
from mpijob_elastic.cli.jobs.snapshot import (
    Seeing,
    SeenJob,
    SeenPod,
    Selection,
    Snapshot,
    Source,
    grouped,
    jobs,
    snapshots,
)
from mpijob_elastic.decide.shown import Reading, ReadingOf
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import ApiReader, list_objects
from mpijob_elastic.kube.watch import WatchCache
from mpijob_elastic.model.json_parts import Fact

F = TypeVar("F", bound=Fact)
# Namespace and name of a job.
Key = tuple[str, str]
# Seconds that the streams may take to end. The jobs have been shown, so nobody should wait longer.
CLOSING = 2.0
# The least seconds between two reads of a capability's objects.
APART = 0.5


class Live:
    """The selected jobs, followed inside the context; all jobs are listed once it is entered.

    Entering raises errors.Forbidden if this user may not follow what is needed, as `changes` does.
    with_role: this user may read Roles; they are left out if they may not be watched.
    """

    def __init__(self, client: ApiReader, selection: Selection, *, with_role: bool) -> None:
        self._client, self._selection = client, selection
        self._random = Random()  # noqa: S311 - jitter, no secret
        self._news: dict[Key, None] = {}
        self._changed = asyncio.Event()
        self._pods_of: dict[Key, dict[str, SeenPod]] = defaultdict(dict)
        self._seeing: dict[ReadingOf, Seeing | None] = {}
        self._jobs = self._watch(selection.jobs, self._job_changed)
        self._pods = self._watch(selection.pods, self._pod_changed)
        self._configs = self._watch(selection.configs, self._other_changed)
        self._roles = self._watch(selection.roles, self._other_changed) if with_role else None
        self._tasks: set[asyncio.Task[None]] = set()
        self._refusal: errors.Forbidden | None = None

    async def __aenter__(self) -> Self:
        caches = [cache for cache in (self._jobs, self._pods, self._configs, self._roles) if cache]
        for cache in caches:
            refused = self._leave_out_roles if cache is self._roles else self._end
            self._run(kept(cache, refused))
        try:
            await asyncio.gather(*(cache.synced.wait() for cache in caches))
            self._refuse()
        except BaseException:
            await self.__aexit__()
            raise
        self._news = dict.fromkeys(self.keys)
        return self

    async def __aexit__(self, *_error: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks, timeout=CLOSING)

    @property
    def keys(self) -> list[Key]:
        """The jobs, sorted by namespace and name."""
        return sorted(map(_key, self._jobs.store.values()))

    def snapshot(self, key: Key) -> Snapshot | None:
        """Return a job as last seen, None while the job does not exist."""
        namespace, name = key
        job = self._jobs.store.get(namespace, name)
        config = self._configs.store.get(namespace, names.config_map(name))
        role = self._roles.store.get(namespace, names.launcher(name)) if self._roles else None
        found = snapshots(
            jobs=[job] if job else [],
            pods=self._pods_of.get(key, {}).values(),
            configs=[config] if config else [],
            roles=([role] if role else []) if self._roles else None,
            seeing=[seen for seen in self._seeing.values() if seen],
        )
        return found[0] if found else None

    async def changes(self) -> list[Key]:
        """Wait for a change; return the jobs that changed since the last call, first all jobs.

        Raises errors.Forbidden once this user may not follow them.
        """
        await self._changed.wait()
        self._refuse()
        self._changed.clear()
        keys = list(self._news)
        self._news.clear()
        return keys

    def _end(self, refusal: errors.Forbidden) -> None:
        self._refusal = refusal
        self._changed.set()

    def _refuse(self) -> None:
        """Raise what was refused."""
        if self._refusal is not None:
            raise self._refusal

    def _leave_out_roles(self, _refusal: errors.Forbidden) -> None:
        self._roles = None
        self._note_all()

    def _note_all(self) -> None:
        for key in self.keys:
            self._note(key)

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.add(asyncio.create_task(work))

    def _watch(
        self, source: Source[F], changed: Callable[[F | None, F | None], None]
    ) -> WatchCache[F]:
        return WatchCache(
            self._client,
            source.resource,
            decode=source.read,
            on_change=changed,
            random=self._random,
            namespace=self._selection.namespace,
            label_selector=source.label,
            field_selector=source.field,
            ends_forbidden=True,
        )

    def _job_changed(self, old: SeenJob | None, new: SeenJob | None) -> None:
        if job := new or old:
            for reading_of in READINGS:
                if reading_of not in self._seeing and (reading := reading_of(job.facts)):
                    self._seeing[reading_of] = None
                    self._run(self._follow(reading_of, reading))
            self._note(_key(job))

    def _pod_changed(self, old: SeenPod | None, new: SeenPod | None) -> None:
        if old:
            self._pods_of[_of(old)].pop(old.metadata.name, None)
        if new:
            self._pods_of[_of(new)][new.metadata.name] = new
        self._other_changed(old, new)

    def _other_changed(self, old: Fact | None, new: Fact | None) -> None:
        for found in (old, new):
            if found is not None:
                self._note(_of(found))

    def _note(self, key: Key) -> None:
        self._news[key] = None
        self._changed.set()

    async def _follow(self, reading_of: ReadingOf, reading: Reading[Any]) -> None:
        """Follow the objects of a capability, unless this user may not read them."""
        try:
            await list_objects(
                self._client, reading.resource.path(self._selection.namespace), reading.read
            )
        except (errors.Forbidden, errors.NotFound):
            return
        except errors.KubeError:
            pass  # the watch tries again
        changed, refused = asyncio.Event(), asyncio.Event()
        source = Source(resource=reading.resource, read=reading.read)
        cache = self._watch(source, lambda _old, _new: changed.set())

        def refuse(_refusal: errors.Forbidden) -> None:
            refused.set()
            changed.set()

        self._run(kept(cache, refuse))
        await cache.synced.wait()
        seen: dict[str, tuple[Fact, int | None]] | None = None
        while not refused.is_set():
            changed.clear()
            objects, old = list(cache.store.values()), seen
            self._seeing[reading_of] = (reading.seeing(objects), grouped(objects))
            places = reading.places(objects)
            seen = {one.metadata.uid: (one, places.get(one.metadata.uid)) for one in objects}
            for key in self.keys if old is None else _differ(old, seen):
                self._note(key)
            await asyncio.sleep(APART)
            await changed.wait()
        self._seeing[reading_of] = None
        self._note_all()


async def kept(cache: WatchCache[Any], refused: Callable[[errors.Forbidden], None]) -> None:
    """Keep a cache until a right to do so is missing; then nobody waits for it any more."""
    try:
        await cache.run()
    except errors.Forbidden as refusal:
        refused(refusal)
        cache.synced.set()


async def follow(
    client: ApiReader, selection: Selection, *, with_role: bool
) -> AsyncGenerator[Snapshot | None]:
    """Yield the selected job now and after each change, None while the job does not exist.

    The generator is endless, so close it. Raises errors.Forbidden if this user may not follow it.
    """
    async with Live(client, selection, with_role=with_role) as live:
        while True:
            found = live.keys
            yield live.snapshot(found[0]) if found else None
            await live.changes()


async def check_reading(client: ApiReader, selection: Selection) -> bool:
    """Ask once for all that is followed; return whether this user may read Roles.

    A watch tries again for ever where nothing answers, so the errors come from here. Raises
    `errors.KubeError`.
    """
    await jobs(client, selection)
    for source in (selection.pods, selection.configs):
        await client.get(source.resource.path(selection.namespace), query={"limit": "1"})
    try:
        await client.get(selection.roles.resource.path(selection.namespace), query={"limit": "1"})
    except errors.Forbidden:
        return False
    return True


def _differ(
    old: Mapping[str, tuple[Fact, int | None]], new: Mapping[str, tuple[Fact, int | None]]
) -> set[Key]:
    """Return the jobs with an object that has changed, or whose place in the queue has changed."""
    uids = [uid for uid in old.keys() | new.keys() if old.get(uid) != new.get(uid)]
    changed = (found[uid][0].metadata for uid in uids for found in (old, new) if uid in found)
    return {(of.namespace, of.job) for of in changed}


def _of(found: Fact) -> Key:
    """Return the job to which an object belongs."""
    return found.metadata.namespace, found.metadata.job


def _key(job: SeenJob) -> Key:
    return job.metadata.namespace, job.metadata.name
