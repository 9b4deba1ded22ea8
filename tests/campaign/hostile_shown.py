"""Hostile objects as the commands and the page read and show them, beside the job of somebody else.

`get -A`, `explain` and the page's list read the objects of all tenants. So whatever the object of
one tenant holds, the other jobs keep their lines, word for word. The job itself is shown as any
other if its MPIJob can be read, because every value is bounded where it is read, and is left out
otherwise.
"""

import copy
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from random import Random
from typing import Any

from mpijob_elastic import names
from mpijob_elastic.cli.dashboard import streams
from mpijob_elastic.cli.jobs import explain, report, snapshot, table
from mpijob_elastic.cli.jobs.snapshot import Snapshot
from mpijob_elastic.model.memory import Left, Memory, SizeChange
from mpijob_elastic.observe import facts_config
from tests.campaign import hostile_texts as texts
from tests.product.cli import worlds
from tests.product.cli.worlds import Object

# Names and owners keep the object where it is shown.
KEPT = frozenset({(), ("metadata",), ("metadata", "name"), ("metadata", "namespace")})
NOW = datetime.fromtimestamp(worlds.NOW, UTC)
ANNOTATIONS = {
    names.MIN_REPLICAS: "1",
    names.MAX_REPLICAS: "4",
    names.DRAIN_TIMEOUT: "60s",
    names.STATUS: "Late: waits",
    f"{names.PREFIX}scale-timeout": "60s",
    f"{names.PREFIX}sizes": "1,2,4",
    f"{names.PREFIX}change": "{}",
}
Reader = Callable[[bytes], Any]


class Shown:
    """A job of a tenant, of which one object is hostile, and a job of somebody else."""

    def __init__(self) -> None:
        hosts = worlds.workers(0, 1)
        memory = Memory(
            scale=SizeChange(before=1, after=2, at=worlds.CREATED),
            added_at=worlds.CREATED,
            left={names.worker("train", 2): Left(pod="", at=worlds.CREATED)},
        )
        config = worlds.config_map(hosts, memory=memory)
        mark = worlds.shown(config, at=worlds.CREATED)
        digest = mark.partition("@")[0]
        self._objects: list[tuple[str, Object, Reader]] = [
            (
                "jobs",
                worlds.mpi_job(annotations=ANNOTATIONS, startTime=worlds.CREATED_TEXT),
                snapshot.read_job,
            ),
            (
                "jobs",
                worlds.mpi_job(
                    conditions=("Created", "Succeeded"), completionTime=worlds.CREATED_TEXT
                ),
                snapshot.read_job,
            ),
            ("pods", worlds.launcher(refreshed=mark), snapshot.read_pod),
            # Times of the touch that no calendar holds, each with the right digest.
            *(
                ("pods", worlds.launcher(refreshed=f"{digest}@{touch}"), snapshot.read_pod)
                for touch in ("-1e308", "-1e15+3", "nan", "1e308+9", f"0+{'9' * 400}")
            ),
            ("pods", worlds.worker(0), snapshot.read_pod),
            ("pods", worlds.worker(1), snapshot.read_pod),
            # A worker that leaves: its drain is measured by the launcher's annotation.
            ("pods", worlds.worker(2), snapshot.read_pod),
            ("configs", config, facts_config.read_config),
            ("roles", worlds.role(hosts), facts_config.read_role),
        ]
        self._spots = [
            texts.spots(copy.deepcopy(found), KEPT) for _kind, found, _read in self._objects
        ]
        self._alone = self._lines(self._neighbour(), of="neighbour")

    def spoiled(self, random: Random, spoil: Callable[[Random, Any], bytes]) -> tuple[int, bytes]:
        """Return the number of an object, and its JSON with one value spoiled."""
        number = random.randrange(len(self._objects))
        return number, spoil(random, self._spots[number])

    def show(self, number: int, raw: bytes) -> str:
        """Show the tenant's job with this object; return what is wrong, "" for nothing."""
        kind, hostile, read = self._objects[number]
        objects = self._neighbour()
        objects[kind] += self._readable(read, raw)
        is_there = {_key(kind, hostile)}
        for its_kind, found, its_read in self._objects:
            key = _key(its_kind, found)
            if key not in is_there:
                is_there.add(key)
                objects[its_kind].append(its_read(texts.compact(found)))
        if self._lines(objects, of="neighbour") != self._alone:
            return "the lines of another job have changed"
        has_job = any(found.metadata.name == "train" for found in objects["jobs"])
        lines = self._lines(objects, of="train")
        if has_job and not lines:
            return "a job has no line"
        if any(report.UNREADABLE in line for line in lines):
            return "a value of a tenant is not bounded where it is read"
        return ""

    def _readable(self, read: Reader, raw: bytes) -> list[Any]:
        """Return the object as a list gives it: left out if it cannot be read (list_objects)."""
        try:
            return [snapshot.checked(read)(raw)]
        except Exception:  # noqa: BLE001 - as list_objects does
            return []

    def _neighbour(self) -> dict[str, list[Any]]:
        hosts = [names.worker("neighbour", 0)]
        found: dict[str, list[Any]] = {"roles": []}
        found["jobs"] = [snapshot.read_job(_raw(worlds.mpi_job(name="neighbour", replicas=1)))]
        pods = worlds.launcher(job="neighbour"), worlds.worker(0, job="neighbour")
        found["pods"] = [snapshot.read_pod(_raw(pod)) for pod in pods]
        config = worlds.config_map(hosts, job="neighbour")
        found["configs"] = [facts_config.read_config(_raw(config))]
        return found

    def _lines(self, objects: dict[str, list[Any]], *, of: str) -> list[str]:
        """Return all that is shown of a job."""
        return [
            line
            for found in snapshot.snapshots(**objects)
            for line in _shown(found)
            if found.view.name == of
        ]


def _shown(found: Snapshot) -> Iterator[str]:
    """Yield what `get`, `get JOB`, `explain` and the page's list show of a job."""
    shown = report.shown(found, now=worlds.NOW)
    yield from table.jobs([shown], now=NOW, namespaces=True, wide=True)
    yield from table.details(shown, now=NOW)
    yield from table.serialized(shown, "json")
    yield from explain.text(explain.conclude(found, explain.Evidence(), now=worlds.NOW))
    yield from table.serialized(streams.row(found, now=worlds.NOW), "json")


def _key(kind: str, found: Object) -> tuple[str, str]:
    return kind, str(found["metadata"]["name"])


def _raw(found: Object) -> bytes:
    return json.dumps(found).encode()
