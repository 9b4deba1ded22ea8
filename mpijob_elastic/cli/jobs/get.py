"""`get`: read, report, print."""

import difflib
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

import msgspec
import yaml

from mpijob_elastic.cli.jobs import fetch, table
from mpijob_elastic.cli.jobs.report import build
from mpijob_elastic.cli.jobs.selection import Selection
from mpijob_elastic.cli.jobs.snapshot import Snapshot
from mpijob_elastic.cli.target import Target, Where, reached
from mpijob_elastic.kube import errors
from mpijob_elastic.model import phrases


class NoSuchJob(errors.KubeError):
    """There is no such job; the message names similar or existing jobs."""


async def get(where: Where, *, job: str | None, output: str) -> None:
    """Print a job, or all jobs that `where` names. Raises `errors.KubeError`."""
    async with reached(where) as target:
        everything = Selection(namespace=target.namespace)
        snapshots = [await find(target, job)] if job else await fetch.fetch(target.client, everything)
    now = time.time()
    reports = [build(snapshot, now=now) for snapshot in snapshots]
    if not reports:
        print(f"No MPIJobs found{_in(target.namespace)}.", file=sys.stderr)  # noqa: T201
    if output in WRITERS:
        print(WRITERS[output](reports[0] if job else {"items": reports}))  # noqa: T201
    elif reports:
        moment, everywhere = datetime.fromtimestamp(now, UTC), target.namespace is None
        page = table.jobs(reports, now=moment, namespaces=everywhere, wide=output == "wide")
        print("\n".join(table.details(reports[0], now=moment) if job else page))  # noqa: T201


async def find(target: Target, job: str) -> Snapshot:
    """Return a job. Raises NoSuchJob and other `errors.KubeError`."""
    found = await fetch.fetch(target.client, Selection(namespace=target.namespace, job=job))
    if not found:
        raise NoSuchJob(f"no MPIJob {job}{_in(target.namespace)}; {await _hint(target, job)}")
    return found[0]


async def _hint(target: Target, job: str) -> str:
    here: list[str] = []
    with suppress(errors.KubeError):
        here = await fetch.job_names(target.client, target.namespace)
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
    return yaml.safe_dump(msgspec.to_builtins(value), sort_keys=False, allow_unicode=True).rstrip()


WRITERS: dict[str, Callable[[object], str]] = {"json": _json, "yaml": _yaml}
