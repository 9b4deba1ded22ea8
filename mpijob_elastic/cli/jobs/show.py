"""`get`: show a job, or all jobs of one or more clusters."""

import asyncio
import time
from collections.abc import Sequence
from datetime import UTC, datetime

from msgspec.structs import replace

from mpijob_elastic.cli import exit_codes
from mpijob_elastic.cli.connection import reached
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.jobs import at_work, progress_looks, snapshot, table
from mpijob_elastic.cli.jobs.at_work import AtWork
from mpijob_elastic.cli.jobs.report import JobReport, shown
from mpijob_elastic.cli.jobs.snapshot import Selection
from mpijob_elastic.cli.target import Where
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import MPI_JOBS
from mpijob_elastic.loading import load
from mpijob_elastic.telemetry.terminal import say

# Needed only to say what went wrong.
_RIGHTS = "mpijob_elastic.cli.rights"


async def get(clusters: Sequence[Where], *, job: str | None, output: str) -> Exit:
    """Print a job, or all jobs of one or more clusters.

    Of several clusters, each cluster that cannot be read is named on standard error. Raises
    `errors.KubeError` if the only cluster cannot be read.
    """
    several, end, reports = len(clusters) > 1, Exit.DONE, list[JobReport]()
    looks = output != "name"
    read = await asyncio.gather(
        *(_read(where, job, looks=looks) for where in clusters), return_exceptions=several
    )
    for where, found in zip(clusters, read, strict=True):
        if isinstance(found, list):
            reports += found
            continue
        if not isinstance(found, errors.KubeError):
            raise found
        say(f"mpijob-elastic: context {where.context}: {load(_RIGHTS).in_words(found)}", err=True)
        end = max(end, exit_codes.of(found))
    if lines := table.serialized(reports[0] if job and reports else {"items": reports}, output):
        say(*lines)
    elif output == "name":
        say(*(f"mpijob.{MPI_JOBS.group}/{report.name}" for report in reports))
    elif reports:
        moment = datetime.now(UTC)
        whole = several or clusters[0].all_namespaces
        page = table.jobs(
            reports, now=moment, contexts=several, namespaces=whole, wide=output == "wide"
        )
        is_wide = output == "wide"
        say(*(table.details(reports[0], now=moment, whole=is_wide) if job else page))
    return end


async def _read(where: Where, job: str | None, *, looks: bool) -> list[JobReport]:
    """Return the report on a job, or the reports on all jobs that `where` selects.

    looks: look into workers for the progress of the jobs.
    """
    refused = ""
    async with reached(where) as (client, namespace):
        if job:
            found = [await snapshot.fetch_job(client, namespace, job)]
        else:
            found = await snapshot.fetch(client, Selection(namespace=namespace))
        working = await at_work.check(client, now=time.time())
        if looks:
            found, refused = await progress_looks.with_lines(client, found, whole=job is not None)
    warn(where, working)
    if refused:
        say(
            "Warning: progress is not shown, because your account may not exec into pods of "
            f"namespace {refused} (pods/exec){_of(where)}",
            err=True,
        )
    if not found:
        here = snapshot.in_words(namespace)
        say(
            f"No MPIJobs found{here}{f' of context {where.context}' if where.context else ''}.",
            err=True,
        )
    now = time.time()
    reports = (shown(one, now=now) for one in found)
    return [
        replace(
            report,
            context=where.context or "",
            elastic=report.elastic and working.installed,
            needs_restart=report.needs_restart and working.installed,
            # The list looks into one worker of each job, which is too few to tell.
            goodput=report.goodput if job else None,
        )
        for report in reports
    ]


def warn(where: Where, working: AtWork) -> None:
    """Print that nobody carries out changes in a cluster, unless somebody does."""
    if working.trouble:
        say(f"Warning: {working.trouble}{_of(where)}", err=True)


def _of(where: Where) -> str:
    """Return the context in words for a warning, "" where the user names no context."""
    return f" (context {where.context})" if where.context else ""
