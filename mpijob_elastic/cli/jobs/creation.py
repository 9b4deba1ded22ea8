"""Create jobs: as a dry run or for good, and then wait for the training or follow the log."""

import asyncio
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import msgspec

from mpijob_elastic import names
from mpijob_elastic.cli.connection import reached
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.jobs import (
    at_work,
    logs,
    pods,
    size_request,
    snapshot,
    table,
    waiting,
    write_change,
)
from mpijob_elastic.cli.jobs.at_work import AtWork, Leader
from mpijob_elastic.cli.jobs.logs import Wanted
from mpijob_elastic.cli.jobs.write_change import MANAGER, BegunChange, JobChange, Patience
from mpijob_elastic.cli.target import Where
from mpijob_elastic.install import Refused
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import MPI_JOBS
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.telemetry.terminal import say

Object = dict[str, Any]
# Whether nothing is contacted, the API server only tries, or the job is created.
DryRun = Literal["client", "server", "none"]
# How the API server begins to say that the namespace of an object does not exist.
_NO_NAMESPACE = "namespaces "


@dataclass(frozen=True, kw_only=True)
class Creation:
    """How to create a job, and what to do then."""

    #: Who is asked, and whether anything is written.
    dry_run: DryRun = "none"
    #: What to print about the job.
    output: str = "text"
    #: How to wait until the job trains; None not to wait.
    patience: Patience | None = None
    #: Follow the launcher's log to the end of the job.
    logs: bool = False
    #: What is wrong with the job and does not prevent it, in words; "" for nothing.
    warning: str = ""


async def create(where: Where, body: Object, asked: Creation) -> Exit:
    """Create a job.

    Raises Refused if the name exists, or where nobody would look after the job, and other
    `errors.KubeError`.
    """
    if asked.dry_run == "client":
        _print(_placed(body, where.namespace), asked, "")
        return Exit.DONE
    async with reached(where) as (client, namespace):
        assert namespace is not None
        working = await at_work.check_change(client, namespace, now=time.time(), creates=True)
        is_dry = asked.dry_run != "none"
        _refuse_uninstalled(working, is_dry=is_dry)
        name = await _create(client, namespace, body, dry_run=asked.dry_run == "server")
        shown = {**body, "metadata": {**body["metadata"], "name": name}}
        here = f"{name} -n {namespace}"
        _print(_placed(shown, namespace), asked, here, leads=not working.trouble)
        if is_dry:
            return Exit.DONE
        end = Exit.DONE
        if asked.patience:
            with _beside(asked):
                end = await _wait_for_training(client, namespace, name, working, asked.patience)
    if not asked.logs:
        return end
    # The log goes on to the end of the job, so what the wait has seen counts no more.
    with _beside(asked), _told_of_ctrl_c(namespace, name):
        return await _follow_log(where, name)


def _beside(asked: Creation) -> AbstractContextManager[object]:
    """Send what is said about a created job past the programs that read it on standard output."""
    return nullcontext() if asked.output == "text" else redirect_stdout(sys.stderr)


def _placed(body: Object, namespace: str | None) -> Object:
    """Return a job with its namespace, so that kubectl creates it there; None if none was given."""
    if namespace is None:
        return body
    return {**body, "metadata": {**body["metadata"], "namespace": namespace}}


def _refuse_uninstalled(working: AtWork, *, is_dry: bool) -> None:
    """Warn of what is wrong with the controllers.

    Raises Refused where nobody would look after a job, unless it is only tried.
    """
    trouble = working.trouble
    if working.doubt:
        trouble = f"{working.doubt}. An elastic job that is created now may lack its host list"
    if not trouble:
        return
    if working.installed or is_dry:
        say(f"Warning: {trouble}; {working.advice}", err=True)
        return
    raise Refused(
        f"{trouble}; {working.advice}. No job was created: `kubectl create -f` creates one that is "
        "not elastic"
    )


def _print(body: Object, asked: Creation, here: str, *, leads: bool = True) -> None:
    """Print what was created, or would be.

    here: the words that name the job in a command. leads: whether a controller is at work, as far
    as that is known.
    """
    if asked.warning:
        say(f"Warning: {asked.warning}", err=True)
    name, is_dry = body["metadata"].get("name", ""), asked.dry_run != "none"
    if asked.output == "name":
        say(f"mpijob.{MPI_JOBS.group}/{name}")
    elif lines := table.serialized(body, _format(asked)):
        say(*lines)
    elif is_dry:
        say(f"MPIJob {name} created (server dry run)")
    elif asked.patience or asked.logs:
        say(f"MPIJob {name} created.")
    else:
        later = "" if leads else " An elastic job trains once a controller runs."
        say(f"MPIJob {name} created.{later} Follow it, and see what its workers wait for:")
        say(f"  mpijob-elastic watch {here}", f"  mpijob-elastic explain {here}")


def _format(asked: Creation) -> str:
    """Return the format; without an API server the job itself is what there is to print."""
    is_job = asked.dry_run == "client" and asked.output == "text"
    return "yaml" if is_job else asked.output


async def _create(
    client: ApiWriter, namespace: str, body: Mapping[str, Any], *, dry_run: bool
) -> str:
    """Create a job, and return its name.

    Raises Refused if the name exists, and NotServed in a cluster without MPIJobs.
    """
    query = {**MANAGER, "dryRun": "All"} if dry_run else MANAGER
    try:
        made = await client.create_object(MPI_JOBS.path(namespace), body=body, query=query)
    except errors.AlreadyExists:
        name = body["metadata"]["name"]
        raise Refused(
            f"there is an MPIJob {namespace}/{name}: `mpijob-elastic watch {name} -n {namespace}` "
            "shows it. Choose another name, or, to end that job, "
            f"`mpijob-elastic delete {name} -n {namespace}`"
        ) from None
    except errors.NotFound as error:
        if error.message.startswith(_NO_NAMESPACE):
            raise
        raise snapshot.not_served(client) from error
    except asyncio.CancelledError:
        shows = f"`mpijob-elastic get -n {namespace}` shows it"
        say(f"Interrupted. It is unknown whether an MPIJob was created; {shows}.", err=True)
        raise
    name = msgspec.json.decode(made)["metadata"]["name"]
    assert isinstance(name, str)
    return name


@contextmanager
def _told_of_ctrl_c(namespace: str, name: str) -> Iterator[None]:
    """Say after Ctrl-C that the job which was created goes on."""
    try:
        yield
    except asyncio.CancelledError:
        shows = f"`mpijob-elastic watch {name} -n {namespace}` shows it"
        say(f"Interrupted. The job goes on: {shows}.", err=True)
        raise


async def _wait_for_training(
    client: ApiWriter, namespace: str, name: str, working: AtWork, patience: Patience
) -> Exit:
    """Wait until a rank runs in each worker. Raises `errors.KubeError`."""
    with _told_of_ctrl_c(namespace, name):
        found = await snapshot.fetch_job(client, namespace, name)
    end = write_change.end_without_wait(working, patience, found.view)
    if end is not None:
        return end
    asked = JobChange(
        patch=None,
        says="",
        goal=partial(waiting.trains, size=found.view.replicas),
        ended=size_request.trains_now,
    )
    # The job is new, so all warnings are about it.
    begun = BegunChange(snapshot=found, change=asked, warnings={})
    return await write_change.say_outcome(client, begun, patience, Leader(working))


async def _follow_log(where: Where, name: str) -> Exit:
    """Print the launcher's log to the end of a job; return whether the job succeeded."""
    await logs.logs(where, job=name, wanted=Wanted(follow=True))
    async with reached(where) as (client, namespace):
        assert namespace is not None
        found = await pods.find_job(client, namespace, name)
    return Exit.DONE if found.state == names.CONDITION_SUCCEEDED else Exit.REFUSED
