"""`get`: read, report, print."""

import asyncio
import difflib
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime

import msgspec
import yaml
from msgspec.structs import replace

from mpijob_elastic.cli import exit_codes
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.jobs import snapshot, table
from mpijob_elastic.cli.jobs.report import JobReport, build
from mpijob_elastic.cli.jobs.snapshot import Selection, Snapshot
from mpijob_elastic.cli.target import Where, reached
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import MPI_JOBS
from mpijob_elastic.model import phrases
from mpijob_elastic.telemetry.terminal import say


class NoSuchJob(errors.KubeError):
    """There is no such job; the message names similar or existing jobs."""


async def get(clusters: Sequence[Where], *, job: str | None, output: str) -> Exit:
    """Print a job, or all jobs of one or more clusters; of several, each that cannot be read is told.

    Raises `errors.KubeError` where the only one cannot be read.
    """
    now, several, end, reports = time.time(), len(clusters) > 1, Exit.DONE, list[JobReport]()
    read = await asyncio.gather(*(_read(where, job, now=now) for where in clusters), return_exceptions=several)
    for where, found in zip(clusters, read, strict=True):
        if isinstance(found, list):
            reports += found
            continue
        if not isinstance(found, errors.KubeError):
            raise found
        say(f"mpijob-elastic: context {where.context}: {found}", err=True)
        end = max(end, exit_codes.of(found))
    if output in WRITERS:
        say(*WRITERS[output](reports[0] if job else {"items": reports}).split("\n"))
    elif output == "name":
        say(*(f"mpijob.{MPI_JOBS.group}/{report.name}" for report in reports))
    elif reports:
        moment = datetime.fromtimestamp(now, UTC)
        whole = several or clusters[0].all_namespaces
        page = table.jobs(reports, now=moment, contexts=several, namespaces=whole, wide=output == "wide")
        say(*(table.details(reports[0], now=moment) if job else page))
    return end


async def _read(where: Where, job: str | None, *, now: float) -> list[JobReport]:
    """Return the reports on a job, or on all that `where` names."""
    async with reached(where) as (client, namespace):
        everything = Selection(namespace=namespace)
        snapshots = [await find(client, namespace, job)] if job else await snapshot.fetch(client, everything)
    if not snapshots:
        say(f"No MPIJobs found{_in(namespace)}{f' of context {where.context}' if where.context else ''}.", err=True)
    return [replace(build(one, now=now), context=where.context or "") for one in snapshots]


async def find(client: ApiReader, namespace: str | None, job: str) -> Snapshot:
    """Return a job. Raises NoSuchJob and other `errors.KubeError`."""
    found = await snapshot.fetch(client, Selection(namespace=namespace, job=job))
    if not found:
        raise await no_such(client, namespace, job)
    return found[0]


async def no_such(client: ApiReader, namespace: str | None, job: str) -> NoSuchJob:
    """Return the error for a job that is not there, with the names of others."""
    return NoSuchJob(f"no MPIJob {job}{_in(namespace)}; {await _hint(client, namespace, job)}")


async def _hint(client: ApiReader, namespace: str | None, job: str) -> str:
    here: list[str] = []
    with suppress(errors.KubeError):
        here = [other.metadata.name for other in await snapshot.jobs(client, Selection(namespace=namespace))]
    near = difflib.get_close_matches(job, here, n=3)
    if near:
        return f"did you mean {' or '.join(near)}?"
    if here:
        return f"existing jobs: {phrases.listed(sorted(here))}"
    return "there are no MPIJobs; choose another namespace with -n, or list all with `mpijob-elastic get -A`"


def _in(namespace: str | None) -> str:
    return f" in namespace {namespace}" if namespace else ""


def _json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _yaml(value: object) -> str:
    # In ASCII: `say` escapes what does not print, and YAML knows escapes only in double quotes.
    return yaml.safe_dump(msgspec.to_builtins(value), sort_keys=False).rstrip()


WRITERS: dict[str, Callable[[object], str]] = {"json": _json, "yaml": _yaml}
