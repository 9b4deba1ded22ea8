"""`get --watch`: the rows of jobs, and a row after each change, until Ctrl-C."""

import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from msgspec.structs import replace

from mpijob_elastic.cli.connection import reached
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.jobs import at_work, show, snapshot, table
from mpijob_elastic.cli.jobs.live import Key, Live, check_reading
from mpijob_elastic.cli.jobs.report import JobReport
from mpijob_elastic.cli.jobs.show import JobsAsked
from mpijob_elastic.cli.jobs.snapshot import Selection
from mpijob_elastic.cli.target import Where
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.telemetry import terminal
from mpijob_elastic.telemetry.terminal import say

# The state of a job in the row that is printed once the job is gone.
DELETED = "Deleted"
# All rows are compared as of this moment, because ages are no news.
_ONCE = datetime.fromtimestamp(0, UTC)


async def watch(where: Where, asked: JobsAsked) -> Exit:
    """Print jobs now and after each change, without an end. Raises `errors.KubeError`.

    Nothing is read by exec, so progress is not shown.
    """
    if asked.arrange:
        say("Warning: --watch is given, so --sort-by is ignored", err=True)
    async with reached(where) as (client, namespace):
        job = asked.jobs[0] if asked.single else None
        selection = Selection(namespace=namespace, job=job, labels=asked.labels)
        with_role = await check_reading(client, selection)
        if not asked.missing_is_fine:
            await _refuse_missing(client, namespace, asked.jobs)
        working = await at_work.check(client, now=time.time())
        show.warn(where, working)
        changed, printer = ChangedRows(asked), RowPrinter(asked, namespaces=where.all_namespaces)
        async with Live(client, selection, with_role=with_role) as live:
            if asked.tabular and not live.keys:
                say(show.none_found(where, namespace), err=True)
            while True:
                now, reports = time.time(), dict[Key, JobReport | None]()
                for key in await live.changes():
                    reports[key] = None
                    if found := live.snapshot(key):
                        reports[key] = show.report_on(
                            found, where, working, now=now, whole=asked.whole
                        )
                printer.print(list(changed.among(reports)))


async def _refuse_missing(client: ApiReader, namespace: str | None, jobs: Sequence[str]) -> None:
    """Raise NoSuchJob if a job does not exist."""
    for job in jobs:
        if not await snapshot.jobs(client, Selection(namespace=namespace, job=job)):
            raise await snapshot.no_such(client, namespace, job)


class ChangedRows:
    """Knows what was printed last of each job, and so what is new. Pure."""

    def __init__(self, asked: JobsAsked) -> None:
        self._asked = asked
        self._last: dict[Key, JobReport] = {}

    def among(self, reports: Mapping[Key, JobReport | None]) -> Iterator[JobReport]:
        """Yield the reports that are to be printed; None stands for a job that is gone."""
        for key, report in reports.items():
            if self._asked.jobs and key[1] not in self._asked.jobs:
                continue
            last = self._last.pop(key, None)
            if report:
                self._last[key] = report
            elif last:
                yield replace(last, state=DELETED)
                continue
            if report and not (last and self._is_same(last, report)):
                yield report

    def _is_same(self, last: JobReport, report: JobReport) -> bool:
        if self._asked.tabular:
            return _cells(last, self._asked, _ONCE) == _cells(report, self._asked, _ONCE)
        return replace(last, next_look=None) == replace(report, next_look=None)


class RowPrinter:
    """Prints reports one after the other, with columns as wide as their widest cell so far."""

    def __init__(self, asked: JobsAsked, *, namespaces: bool) -> None:
        self._asked, self._namespaces = asked, namespaces
        self._widths: list[int] = []
        self._is_first = True

    def print(self, reports: Sequence[JobReport]) -> None:
        """Print the reports; the names of the columns stand before the first."""
        if not reports:
            return
        headers, self._is_first = self._is_first and self._asked.headers, False
        if self._asked.tabular:
            self._table(reports, headers=headers)
        elif self._asked.write:
            for number, report in enumerate(reports):
                text = self._asked.write([report], single=True, headers=headers and not number)
                terminal.put(text)
        elif self._asked.output == "name":
            say(*map(show.name, reports))
        else:
            for report in reports:
                lead = ["---"] if self._asked.output == "yaml" else []
                say(*lead, *table.serialized(report, self._asked.output))

    def _table(self, reports: Sequence[JobReport], *, headers: bool) -> None:
        now = datetime.now(UTC)
        cells = [
            _cells(report, self._asked, now, namespaces=self._namespaces) for report in reports
        ]
        rows = [list(row.values()) for row in cells]
        if headers:
            rows = [list(cells[0]), *rows]
        self._widths, lines = table.aligned(rows, self._widths)
        say(*lines)


def _cells(
    report: JobReport, asked: JobsAsked, now: datetime, *, namespaces: bool = False
) -> dict[str, str]:
    return table.cells(report, now=now, namespaces=namespaces, wide=asked.wide)
