"""Change the shown job as the commands do, with the same checks, words and progress.

The page requests a change twice. The first request is only tried, and the answer says in words what
the change would do. The change is made once a second request brings these words back, if they still
hold.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Literal

import msgspec
from aiohttp import web

from mpijob_elastic import names
from mpijob_elastic.cli.dashboard.streams import Channel
from mpijob_elastic.cli.jobs import at_work, write_change
from mpijob_elastic.cli.jobs.at_work import Leader
from mpijob_elastic.cli.jobs.live import Key
from mpijob_elastic.cli.jobs.size_request import SizeRequest, resuming, sized, suspending
from mpijob_elastic.cli.jobs.write_change import Decide, Patience
from mpijob_elastic.install import Refused
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
# So many workers that leave are named.
NAMED = 5
# The most bytes of a request.
LARGEST = 4096
_DECIDE: Mapping[str, Callable[[int], Decide]] = {
    "scale": lambda size: sized(SizeRequest(to=size), waits=False),
    "park": lambda index: sized(SizeRequest(grows=False, pods=[str(index)]), waits=False),
    "unpark": lambda index: sized(SizeRequest(grows=True, pods=[str(index)]), waits=False),
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


def foretold(asked: PostedChange, view: JobView) -> str:
    """Return who leaves by a change, and how long that may take; "" if nobody leaves."""
    leaving = [names.worker(view.name, index) for index in _leaving(asked, view)]
    if not leaving:
        return ""
    named = leaving[:NAMED]
    if more := len(leaving) - len(named):
        named.append(f"{more} more")
    limit = phrases.duration(view.facts.policy.drain_timeout)
    who = phrases.listed(named)
    if len(leaving) == 1:
        return f"{who} leaves: it drains for at most {limit}, and then is deleted."
    return f"{who} leave: they drain for at most {limit}, and then are deleted."


def _leaving(asked: PostedChange, view: JobView) -> Sequence[int]:
    """Return the indices of the workers that leave, the last first."""
    wanted = sorted(view.wanted, reverse=True)
    if asked.change == "suspend":
        return wanted
    if asked.change == "park":
        return [index for index in wanted if index == asked.number]
    if asked.change == "scale":
        return wanted[: max(0, len(wanted) - asked.number)]
    return ()


async def make(client: ApiWriter, key: Key, asked: PostedChange, channel: Channel) -> None:
    """Send what a change would do; or, once confirmed, make the change and send its progress.

    Nothing is tried or made where mpijob-elastic is not installed. Raises `errors.KubeError`.
    """
    working = await at_work.check_change(client, key[0], now=time.time())
    if not working.installed:
        raise Refused(f"{working.trouble}; {working.advice}")
    decide = _DECIDE[asked.change](asked.number)
    if not asked.confirmed:
        snapshot, found = await write_change.write(client, *key, decide, dry_run=True)
        channel.put("foretold", foretold(asked, snapshot.view))
        channel.put("asks" if found.patch else "says", found.says)
        return
    same = write_change.same_decision(decide, asked.confirmed, since="you were asked")
    snapshot, found = await write_change.write(client, *key, same)
    channel.put("says", found.says)
    _, lines = await write_change.outcome(
        client,
        snapshot,
        found,
        PATIENCE,
        lambda progress: channel.put("progress", str(progress)),
        leader=Leader(working),
    )
    channel.put("ended", lines)
