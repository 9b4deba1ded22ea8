"""Change the shown job as the commands do, with the same checks, words and progress.

The page requests a change twice. The first request is only tried, and the answer says in words what
the change would do. The change is made once a second request brings these words back, if they still
hold.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Literal

import msgspec
from aiohttp import web

from mpijob_elastic import names
from mpijob_elastic.cli.dashboard.streams import Channel
from mpijob_elastic.cli.jobs import write_change
from mpijob_elastic.cli.jobs.at_work import AtWork, Leader
from mpijob_elastic.cli.jobs.live import Key
from mpijob_elastic.cli.jobs.size_request import SizeRequest, resuming, size_decision, suspending
from mpijob_elastic.cli.jobs.write_change import Decide, Patience
from mpijob_elastic.install.server import check_rights
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import MPI_JOBS
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model import phrases
from mpijob_elastic.model.bounds import MOST_WORKERS
from mpijob_elastic.model.job import JobView

# Waits as long as a command does by default.
PATIENCE = Patience(wait=True, seconds=600.0, look=True)
# The most bytes of a request.
LARGEST = 4096
_DECIDE: Mapping[str, Callable[[int], Decide]] = {
    "scale": lambda size: size_decision(SizeRequest(to=size), waits=False),
    "park": lambda index: size_decision(SizeRequest(grows=False, pods=[str(index)]), waits=False),
    "unpark": lambda index: size_decision(SizeRequest(grows=True, pods=[str(index)]), waits=False),
    "suspend": lambda _: suspending,
    "resume": lambda _: resuming,
}


class PostedChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The change that a request of the page asks for."""

    change: Literal["scale", "park", "unpark", "suspend", "resume"]
    #: The new size for `scale`, the worker's index for `park` and `unpark`.
    number: Annotated[int, msgspec.Meta(ge=0, le=MOST_WORKERS)] = 0
    #: The words to which the user agreed, "" to get these words.
    confirmed: str = ""


_read = msgspec.json.Decoder(PostedChange).decode


async def requested(request: web.Request) -> PostedChange:
    """Return the change that a request asks for. Raises `web.HTTPException` for anything else."""
    if request.content_type != "application/json":
        raise web.HTTPUnsupportedMediaType(text="a change is JSON")
    try:
        return _read(await request.read())
    except msgspec.DecodeError as error:
        raise web.HTTPBadRequest(text=f"no such change: {error}") from None


async def may(client: ApiReader, key: Key) -> bool:
    """Return True if this user may change the job."""
    with suppress(errors.KubeError):
        await check_rights(client, [(MPI_JOBS, key[0], "patch")], name=key[1])
        return True
    return False


def consequence(asked: PostedChange, view: JobView) -> str:
    """Return who leaves by a change, and how long that may take; "" if nobody leaves."""
    leaving = [names.worker(view.name, index) for index in _leaving(asked, view)]
    if not leaving:
        return ""
    who, limit = phrases.listed(leaving), phrases.duration(view.facts.policy.drain_timeout)
    if len(leaving) == 1:
        return f"{who} leaves: it drains for at most {limit}, and then is deleted."
    return f"{who} leave: they drain for at most {limit}, and then are deleted."


def _leaving(asked: PostedChange, view: JobView) -> Sequence[int]:
    """Return the indices of the workers that leave, the last first."""
    wanted = list(view.wanted)
    staying = {
        "scale": wanted[: asked.number],
        "park": [index for index in wanted if index != asked.number],
        "suspend": [],
    }.get(asked.change, wanted)
    there = {worker.index for worker in view.workers}
    return sorted(there.intersection(wanted).difference(staying), reverse=True)


def _warned(working: AtWork, words: str) -> str:
    """Return the words about a change, after a warning if nobody carries it out now."""
    if not working.trouble:
        return words
    trouble = working.trouble[:1].upper() + working.trouble[1:]
    return f"{trouble}; {working.advice}. {words}".strip()


async def make(client: ApiWriter, key: Key, asked: PostedChange, channel: Channel) -> None:
    """Send what a change would do; or, once confirmed, make the change and send its progress.

    Raises Refused where nobody would ever carry it out, or where the change is impossible, and
    other `errors.KubeError`.
    """
    working = await write_change.refuse_uninstalled(client, key[0], [key[1]])
    decide = _DECIDE[asked.change](asked.number)
    if not asked.confirmed:
        tried = await write_change.write(client, *key, decide, dry_run=True)
        channel.put("foretold", _warned(working, consequence(asked, tried.snapshot.view)))
        channel.put("asks" if tried.change.patch else "says", tried.change.says)
        return
    same = write_change.same_decision(decide, asked.confirmed, since="you were asked")
    begun = await write_change.write(client, *key, same, waits=True)
    channel.put("says", begun.change.says)
    _, lines = await write_change.outcome(
        client,
        begun,
        PATIENCE,
        lambda progress: channel.put("progress", str(progress)),
        leader=Leader(working),
    )
    channel.put("ended", lines)
