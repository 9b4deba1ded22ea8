"""`delete` and `prune`: delete jobs, or all finished jobs."""

import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import typer

from mpijob_elastic import names
from mpijob_elastic.cli.connection import reached
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.jobs import several, snapshot, table
from mpijob_elastic.cli.jobs.snapshot import Selection, Snapshot
from mpijob_elastic.cli.target import Where
from mpijob_elastic.decide import derive
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import MPI_JOBS
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model import phrases
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.phrases import workers
from mpijob_elastic.telemetry.terminal import say

# The API server takes the options of a deletion with a body from the body alone.
_DRY_RUN = {"dryRun": ["All"]}


@dataclass(frozen=True, kw_only=True)
class _Outcome:
    """What became of a job that was to be deleted."""

    #: In words, behind the job.
    says: str
    #: The exit code.
    code: Exit = Exit.DONE


async def delete(
    where: Where, jobs: Sequence[str], *, yes: bool, missing_is_fine: bool = False
) -> Exit:
    """Delete jobs; if any of them trains, ask before, unless `yes`.

    missing_is_fine: a job that does not exist is no error. Raises `errors.KubeError` if the only
    job cannot be deleted. With several jobs the others are, unless the API server does not answer.
    """
    async with reached(where) as (client, namespace):
        chosen, end = list[Snapshot](), Exit.DONE
        for job in jobs:
            try:
                chosen.append(await snapshot.fetch_job(client, namespace, job))
            except snapshot.NoSuchJob as error:
                if missing_is_fine:
                    continue
                if len(jobs) == 1:
                    raise
                end = several.say_error(error)
        training = [found.view for found in chosen if _is_training(found)]
        if training and not (yes or _ask(_question(training, among=len(chosen)))):
            return Exit.REFUSED
        # A yes means these jobs, whatever their status is now.
        return max(end, await _delete(client, chosen, at_version=False))


def _is_training(found: Snapshot) -> bool:
    view = found.view
    return view.driver_running and not (view.facts.finished or view.facts.deleting)


def _question(training: Sequence[JobView], *, among: int) -> str:
    """Return the question whether to delete so many jobs, of which some train."""
    trains = [f"{view.name} trains on {workers(len(view.published_pods))}" for view in training]
    return f"{phrases.listed(trains)}. Delete {'it' if among == 1 else f'all {among} jobs'}?"


async def prune(where: Where, *, yes: bool, dry_run: bool, older_than: float = 0.0) -> Exit:
    """Delete all finished jobs; list them first, and ask unless `yes`.

    older_than: only those that were created so many seconds ago, or before. Raises
    `errors.KubeError`.
    """
    async with reached(where) as (client, namespace):
        over = [
            found
            for found in await snapshot.fetch(client, Selection(namespace=namespace))
            if _is_over(found) and _age(found) >= older_than
        ]
        if not over:
            say(f"No finished MPIJobs{snapshot.in_words(namespace)}.", err=True)
            return Exit.DONE
        say(*table.columns(("NAMESPACE", "NAME", "STATE", "AGE"), map(_row, over)))
        if dry_run:
            say("Dry run: nothing was deleted.")
            return Exit.DONE
        if not (yes or _ask(f"Delete {len(over)} finished MPIJob{'s' * (len(over) > 1)}?")):
            return Exit.REFUSED
        return await _delete(client, over, at_version=True)


def _is_over(found: Snapshot) -> bool:
    """Tell whether a job has ended for good, and no capability keeps it."""
    facts = found.view.facts
    return (
        facts.finished
        and not facts.deleting
        and not found.fault
        and not derive(found.view, now=time.time()).wishes.keeps
    )


def _age(found: Snapshot) -> float:
    """Return for how many seconds a job has been there."""
    return time.time() - found.job.facts.created_at


def _row(found: Snapshot) -> tuple[str, ...]:
    created = datetime.fromtimestamp(found.job.facts.created_at, UTC)
    age = table.age(created, now=datetime.now(UTC))
    return found.view.namespace, found.view.name, found.job.state, age


async def _delete(client: ApiWriter, chosen: Sequence[Snapshot], *, at_version: bool) -> Exit:
    """Delete these jobs, after a dry run for all; one that must stay holds back no other.

    at_version: delete a job only if it is still as it was read. Raises `errors.KubeError` if there
    is only one job, or if the API server does not answer.
    """
    end, rest = Exit.DONE, list(chosen)
    for options in (_DRY_RUN, {}):
        tried, rest = rest, []
        for found in tried:
            try:
                outcome = await _outcome(client, found, options, at_version=at_version)
            except errors.ApiError as error:
                if len(chosen) == 1:
                    raise
                end = max(end, several.say_error(error))
                continue
            rest.append(found)
            if not options:
                say(f"MPIJob {found.view.namespace}/{found.view.name} {outcome.says}")
                end = max(end, outcome.code)
    return end


async def _outcome(
    client: ApiWriter, found: Snapshot, options: Mapping[str, object], *, at_version: bool
) -> _Outcome:
    """Delete a job, and return what became of it. Raises `errors.KubeError`."""
    ref = found.view.ref
    try:
        await client.delete_object(
            MPI_JOBS.path(ref.namespace, ref.name),
            uid=ref.uid,
            resource_version=ref.resource_version if at_version else None,
            options=options,
        )
    except errors.NotFound:
        return _Outcome(says="was deleted already")
    except errors.Conflict:
        return _Outcome(says="has changed meanwhile, so it stays", code=Exit.OTHERWISE)
    return _Outcome(says="deleted")


def need_terminal() -> None:
    """Say so where nobody can be asked. Raises typer.Exit."""
    if sys.stdin.isatty():
        return
    said = "there is no terminal to ask on, so nothing was deleted; give --yes"
    say(f"{names.PROGRAM}: {said}", err=True)
    raise typer.Exit(Exit.USAGE)


def _ask(question: str) -> bool:
    """Ask on the terminal whether to go on."""
    need_terminal()
    # With asyncio's own handler, Ctrl-C would take effect only after an answer to the question.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        is_confirmed = typer.confirm(question)
    except typer.Abort:
        say("", "Interrupted: nothing was deleted.", err=True)
        raise typer.Exit(Exit.INTERRUPTED) from None
    finally:
        signal.signal(signal.SIGINT, handler)
    if not is_confirmed:
        say("Not confirmed: nothing was deleted.", err=True)
    return is_confirmed
