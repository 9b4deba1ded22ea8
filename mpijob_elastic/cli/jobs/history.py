"""`history`: read the changes of a job, and print them. A page may rely on `-o json`."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from mpijob_elastic import names
from mpijob_elastic.cli.connection import reached
from mpijob_elastic.cli.jobs import snapshot, table
from mpijob_elastic.cli.target import Where
from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import CONFIG_MAPS, MPI_JOBS
from mpijob_elastic.model import phrases
from mpijob_elastic.model.history import UNKNOWN, Change, entries, read_change
from mpijob_elastic.telemetry.terminal import say

_HEADER = (
    "WHEN",
    "CAUSE",
    "BY",
    "FROM→TO",
    "LISTED",
    "TRAINED",
    "LOST-S",
    "REPEATED",
    "CUT",
    "NOTE",
)


class _JobObject(msgspec.Struct):
    metadata: ObjectMeta


# The names in JSON of the fields of `Change`.
_NAMES = {
    "at": "when",
    "before": "from",
    "after": "to",
    "listed": "listedAfter",
    "trained": "trainedAfter",
    "lost": "secondsLost",
    "repeated": "stepsRepeated",
    "cut": "ranksCut",
    "sets_size": "setsSize",
}


class ChangeReport(msgspec.Struct, frozen=True, kw_only=True, rename=_NAMES):
    """A change of the size, with the fields of `Change`."""

    at: datetime
    cause: str
    by: str
    before: int
    after: int
    listed: float | None
    trained: float | None
    lost: float | None
    repeated: int | None
    cut: int
    note: str
    #: True if somebody asked for the size `after`; a loss of workers leaves that size as it is.
    sets_size: bool


class HistoryReport(msgspec.Struct, frozen=True, kw_only=True):
    """The changes of a job, the newest last."""

    namespace: str
    name: str
    changes: list[ChangeReport]


async def history(where: Where, *, job: str, output: str) -> None:
    """Print the changes of a job. Raises NoSuchJob and other `errors.KubeError`."""
    async with reached(where) as (client, namespace):
        report = await read(client, namespace or "", job)
    if lines := table.serialized(report, output):
        say(*lines)
    elif report.changes:
        now = None if output == "wide" else datetime.fromtimestamp(time.time(), UTC)
        say(*table.columns(_HEADER, (_row(change, now) for change in report.changes)))
    if not report.changes:
        say(
            f"no change of the size of {report.namespace}/{job} is recorded; mpijob-elastic "
            "records the changes of elastic jobs since it is installed",
            err=True,
        )


async def read(client: ApiReader, namespace: str, job: str) -> HistoryReport:
    """Return the changes of a job. Raises NoSuchJob and other `errors.KubeError`."""
    found = await client.find(MPI_JOBS.path(namespace, job))
    if found is None:
        raise await snapshot.no_such(client, namespace, job)
    mpi_job, config = (
        _metadata(found),
        _metadata(await client.find(CONFIG_MAPS.path(namespace, names.config_map(job)))),
    )
    owner = config.controller
    text = config.annotations.get(names.HISTORY, "") if owner and owner.uid == mpi_job.uid else ""
    changes = entries(text, read_change(mpi_job.annotations.get(names.CHANGE, "")))
    return HistoryReport(namespace=namespace, name=job, changes=list(map(_report, changes)))


def _metadata(raw: bytes | None) -> ObjectMeta:
    return msgspec.json.decode(raw, type=_JobObject).metadata if raw else ObjectMeta()


def _report(change: Change) -> ChangeReport:
    found = msgspec.structs.asdict(change)
    found["at"] = datetime.fromtimestamp(change.at, UTC)
    found["by"] = "" if change.by == UNKNOWN else change.by
    return ChangeReport(**found, sets_size=bool(change.by))


def _row(change: ChangeReport, now: datetime | None) -> Sequence[str]:
    return (
        f"{table.age(change.at, now=now)} ago" if now else f"{change.at:%Y-%m-%dT%H:%M:%SZ}",
        change.cause,
        change.by or table.NONE,
        f"{change.before}→{change.after}",
        _after(change.listed),
        _after(change.trained),
        table.NONE if change.lost is None else f"{change.lost:.0f}",
        table.NONE if change.repeated is None else str(change.repeated),
        str(change.cut or table.NONE),
        change.note or table.NONE,
    )


def _after(seconds: float | None) -> str:
    return table.NONE if seconds is None else phrases.duration(round(seconds))
