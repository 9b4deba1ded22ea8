"""Change the shown job as the commands do, with the same checks, words and progress.

The page requests a change twice. The first request is only tried, and the answer says in words what
the change would do and who leaves. The change is made once a second request brings the fingerprint
of both back, if they are still the same.
"""

import asyncio
import hashlib
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
from mpijob_elastic.cli.jobs.snapshot import Snapshot
from mpijob_elastic.cli.jobs.write_change import Decide, JobChange, Patience
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
# Seconds between two questions for the user's rights, while the first has no answer.
ASK_AGAIN = 5.0
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
    #: The fingerprint of what the user agreed to, "" to be told what that is.
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


async def tell_rights(client: ApiReader, key: Key, channel: Channel) -> None:
    """Send whether this user may change the job, once the API server says so."""
    while True:
        with suppress(errors.KubeError):
            channel.put("may", await _may(client, key))
            return
        await asyncio.sleep(ASK_AGAIN)


async def _may(client: ApiReader, key: Key) -> bool:
    """Return True if this user may change the job.

    Raises `errors.KubeError` if the same question may be answered a moment later.
    """
    try:
        await check_rights(client, [(MPI_JOBS, key[0], "patch")], name=key[1])
    except Refused:
        return False
    except errors.KubeError as error:
        if errors.may_pass(error):
            raise
        return False
    return True


def consequence(asked: PostedChange, view: JobView) -> str:
    """Return who leaves by a change, and how long that may take; "" if nobody leaves."""
    leaving = _leaving(asked, view)
    if not leaving:
        return ""
    who, limit = phrases.listed(leaving), phrases.duration(view.facts.policy.drain_timeout)
    if len(leaving) == 1:
        return f"{who} leaves: it drains for at most {limit}, and then is deleted."
    return f"{who} leave: they drain for at most {limit}, and then are deleted."


def fingerprint(asked: PostedChange, view: JobView, says: str) -> str:
    """Return a fingerprint of what a user agrees to.

    It is that of the change in words, and of all workers that leave: of many, the words name only
    the first.
    """
    leaving = ",".join(_leaving(asked, view))
    agreed = "\n".join((says, consequence(asked, view), leaving))
    return hashlib.sha256(agreed.encode()).hexdigest()


def _leaving(asked: PostedChange, view: JobView) -> Sequence[str]:
    """Return the workers that leave, the last first."""
    wanted = list(view.wanted)
    staying = {
        "scale": wanted[: asked.number],
        "park": [index for index in wanted if index != asked.number],
        "suspend": [],
    }.get(asked.change, wanted)
    there = {worker.index for worker in view.workers}
    leaving = sorted(there.intersection(wanted).difference(staying), reverse=True)
    return [names.worker(view.name, index) for index in leaving]


def _warned(working: AtWork, words: str) -> str:
    """Return the words about a change, after a warning if nobody carries it out now."""
    if not working.trouble:
        return words
    trouble = working.trouble[:1].upper() + working.trouble[1:]
    return f"{trouble}; {working.advice}. {words}".strip()


def _same(asked: PostedChange) -> Decide:
    """Return the decision for a change, which is refused unless it is what was confirmed."""
    decide = _DECIDE[asked.change](asked.number)

    async def same(client: ApiWriter, snapshot: Snapshot) -> JobChange:
        found = await decide(client, snapshot)
        if fingerprint(asked, snapshot.view, found.says) == asked.confirmed:
            return found
        now = ". ".join(filter(None, (found.says, consequence(asked, snapshot.view))))
        raise write_change.not_the_same(snapshot.view, now, since="you were asked")

    return same


async def make(client: ApiWriter, key: Key, asked: PostedChange, channel: Channel) -> None:
    """Send what a change would do; or, once confirmed, make the change and send its progress.

    Raises Refused where nobody would ever carry it out, or where the change is impossible, and
    other `errors.KubeError`.
    """
    working = await write_change.refuse_uninstalled(client, key[0], [key[1]])
    if not asked.confirmed:
        decide = _DECIDE[asked.change](asked.number)
        tried = await write_change.write(client, *key, decide, dry_run=True)
        view, says = tried.snapshot.view, tried.change.says
        channel.put("foretold", _warned(working, consequence(asked, view)))
        channel.put("confirms", fingerprint(asked, view, says))
        channel.put("asks" if tried.change.patch else "says", says)
        return
    begun = await write_change.write(client, *key, _same(asked), waits=True)
    channel.put("says", begun.change.says)
    _, lines = await write_change.outcome(
        client,
        begun,
        PATIENCE,
        lambda progress: channel.put("progress", str(progress)),
        leader=Leader(working),
    )
    channel.put("ended", lines)
