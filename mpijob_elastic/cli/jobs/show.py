"""`get`: show jobs of one or more clusters, or a page on one job."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from msgspec.structs import replace

from mpijob_elastic.cli import exit_codes
from mpijob_elastic.cli.connection import reached
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.jobs import at_work, progress_looks, snapshot, table
from mpijob_elastic.cli.jobs.at_work import AtWork
from mpijob_elastic.cli.jobs.report import JobReport, shown
from mpijob_elastic.cli.jobs.snapshot import Selection, Snapshot
from mpijob_elastic.cli.target import Where
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import MPI_JOBS
from mpijob_elastic.loading import load
from mpijob_elastic.telemetry import terminal
from mpijob_elastic.telemetry.terminal import say

# Needed only to say what went wrong.
_RIGHTS = "mpijob_elastic.cli.rights"


class Write(Protocol):
    """Returns the text of jobs in a format that names fields."""

    def __call__(self, reports: Sequence[JobReport], *, single: bool, headers: bool) -> str:
        """Return the text, with its line breaks.

        single: a job is printed as it is, without a list around it. headers: with the names of
        columns.
        """


@dataclass(frozen=True, kw_only=True)
class JobsAsked:
    """What `get` is asked for, and how to print it."""

    #: The names of jobs; none for all jobs.
    jobs: Sequence[str] = ()
    #: A job that does not exist is no error.
    missing_is_fine: bool = False
    #: A selector for the labels of MPIJobs, "" for all.
    labels: str = ""
    #: The format.
    output: str = "table"
    #: Print the names of the columns.
    headers: bool = True
    #: Puts the jobs into an order; None for namespaces and names.
    arrange: Callable[[Sequence[JobReport]], list[JobReport]] | None = None
    #: Returns the text of a format that names fields; None for the other formats.
    write: Write | None = None

    @property
    def wide(self) -> bool:
        """Whether all columns are wanted."""
        return self.output == "wide"

    @property
    def tabular(self) -> bool:
        """Whether people are to read it."""
        return self.output in {"table", "wide"}

    @property
    def single(self) -> bool:
        """Whether one job is asked for, so that programs get it without a list around it."""
        return len(self.jobs) == 1

    @property
    def paged(self) -> bool:
        """Whether a page on one job is asked for, and not its row."""
        return self.single and self.headers and self.tabular

    @property
    def whole(self) -> bool:
        """Whether a job is shown with all that is known of it."""
        return self.single and self.output != "name"


@dataclass(frozen=True, kw_only=True)
class FoundJobs:
    """What was found in one cluster."""

    #: The jobs.
    reports: list[JobReport]
    #: What is wrong with each job that was not found.
    missing: list[errors.KubeError]


async def get(clusters: Sequence[Where], asked: JobsAsked) -> Exit:
    """Print jobs of one or more clusters.

    Of several clusters, each cluster that cannot be read is named on standard error, and so is
    each of several jobs that does not exist. Raises `errors.KubeError` if the only cluster cannot
    be read, or the only job.
    """
    several, end, reports = len(clusters) > 1, Exit.DONE, list[JobReport]()
    read = await asyncio.gather(
        *(_read(where, asked) for where in clusters), return_exceptions=several
    )
    for where, found in zip(clusters, read, strict=True):
        if isinstance(found, FoundJobs):
            reports += found.reports
            end = max([end, *map(exit_codes.of, found.missing)])
            say(*(f"mpijob-elastic: {error}" for error in found.missing), err=True)
            continue
        if not isinstance(found, errors.KubeError):
            raise found
        say(f"mpijob-elastic: context {where.context}: {load(_RIGHTS).in_words(found)}", err=True)
        end = max(end, exit_codes.of(found))
    if asked.arrange:
        reports = asked.arrange(reports)
    _print(reports, asked, contexts=several, namespaces=several or clusters[0].all_namespaces)
    return end


def _print(
    reports: Sequence[JobReport], asked: JobsAsked, *, contexts: bool, namespaces: bool
) -> None:
    if asked.single and not reports:
        return
    whole = reports[0] if asked.single else {"items": reports}
    if asked.write:
        terminal.put(asked.write(reports, single=asked.single, headers=asked.headers))
    elif lines := table.serialized(whole, asked.output):
        say(*lines)
    elif asked.output == "name":
        say(*map(name, reports))
    elif reports and asked.paged:
        say(*table.details(reports[0], now=datetime.now(UTC), whole=asked.wide))
    elif reports:
        page = table.jobs(
            reports,
            now=datetime.now(UTC),
            contexts=contexts,
            namespaces=namespaces,
            wide=asked.wide,
        )
        say(*page[0 if asked.headers else 1 :])


def name(report: JobReport) -> str:
    """Return the name of a job as kubectl takes it."""
    return f"mpijob.{MPI_JOBS.group}/{report.name}"


async def _read(where: Where, asked: JobsAsked) -> FoundJobs:
    """Return the reports on the jobs that are asked for in a cluster.

    Raises `errors.KubeError`.
    """
    refused, missing = "", list[errors.KubeError]()
    async with reached(where) as (client, namespace):
        if asked.jobs:
            found, missing = await _named(client, namespace, asked)
        else:
            selection = Selection(namespace=namespace, labels=asked.labels)
            found = await snapshot.fetch(client, selection)
        working = await at_work.check(client, now=time.time())
        if asked.output != "name":
            found, refused = await progress_looks.with_lines(client, found, whole=asked.whole)
    warn(where, working)
    if refused:
        say(
            "Warning: progress is not shown, because your account may not exec into pods of "
            f"namespace {refused} (pods/exec){_of(where)}",
            err=True,
        )
    if asked.tabular and not (found or missing or asked.jobs):
        say(none_found(where, namespace), err=True)
    now = time.time()
    reports = [report_on(one, where, working, now=now, whole=asked.whole) for one in found]
    return FoundJobs(reports=reports, missing=missing)


async def _named(
    client: ApiReader, namespace: str | None, asked: JobsAsked
) -> tuple[list[Snapshot], list[errors.KubeError]]:
    """Return the jobs that are asked for by name, and the error of each that does not exist.

    Raises `errors.KubeError` for other errors, and if the only job does not exist.
    """
    found, missing = list[Snapshot](), list[errors.KubeError]()
    for job in asked.jobs:
        try:
            found.append(await snapshot.fetch_job(client, namespace, job))
        except snapshot.NoSuchJob as error:
            if asked.missing_is_fine:
                continue
            if asked.single:
                raise
            missing.append(error)
    return found, missing


def report_on(
    found: Snapshot, where: Where, working: AtWork, *, now: float, whole: bool
) -> JobReport:
    """Return the report on a job in a cluster.

    now: seconds since the epoch. whole: with what only looks into all workers can tell.
    """
    report = shown(found, now=now)
    if working.trouble:
        report = replace(report, next=[f"nothing: {working.trouble}"], next_look=None)
    return replace(
        report,
        context=where.context or "",
        elastic=report.elastic and working.installed,
        needs_restart=report.needs_restart and working.installed,
        # The list looks into one worker of each job, which is too few to tell.
        goodput=report.goodput if whole else None,
    )


def none_found(where: Where, namespace: str | None) -> str:
    """Return kubectl's sentence for an empty list."""
    here = f" in {namespace} namespace." if namespace else ""
    return f"No resources found{here}{_of(where)}"


def warn(where: Where, working: AtWork) -> None:
    """Print that nobody carries out changes in a cluster, unless somebody does."""
    if working.trouble:
        say(f"Warning: {working.trouble}{_of(where)}", err=True)


def _of(where: Where) -> str:
    """Return the context in words for a warning, "" where the user names no context."""
    return f" (context {where.context})" if where.context else ""
