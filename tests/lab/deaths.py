"""Deaths at a write: of a controller, and of a command whose connection breaks; which writes are refused.

A run strikes every eighth write, and which of the eight is chosen by date, so eight days strike all
of them. With MPIJOB_ELASTIC_EVERY_WRITE=1 it strikes every write (`make long`), with
MPIJOB_ELASTIC_FIRST_WRITE=2 the 2nd, 10th...
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from lab.cluster import Cluster
from tests.faults.faults import Call, Request, Reset
from tests.faults.proxy import FaultProxy

T = TypeVar("T")
_ALL = bool(os.environ.get("MPIJOB_ELASTIC_EVERY_WRITE"))
_TODAY = datetime.now(UTC).toordinal() % 8 + 1
# Workers of pytest-xdist inherit the choice, even around midnight.
_FIRST = 1 if _ALL else int(os.environ.setdefault("MPIJOB_ELASTIC_FIRST_WRITE", str(_TODAY)))


def struck(most: int, *, every: int = 8) -> range:
    """Return the numbers of those of `most` writes that this run strikes: the nth of `every` n."""
    if _ALL:
        return range(1, most + 1)
    return range((_FIRST - 1) % every + 1, most + 1, every)


def drawn(cases: Sequence[T], *, every: int = 8) -> list[T]:
    """Return the cases that this run strikes, or whatever else it draws by date."""
    return [cases[number - 1] for number in struck(len(cases), every=every)]


@contextmanager
def naming(write: int) -> Iterator[None]:
    """Say with a failure which write was struck, and how to strike it again."""
    try:
        yield
    except Exception as error:
        error.add_note(
            f"The death was at write {write}: run this again with MPIJOB_ELASTIC_EVERY_WRITE=1,"
        )
        error.add_note(f"or with MPIJOB_ELASTIC_FIRST_WRITE={_FIRST} to strike the same writes.")
        raise


async def died(
    proxy: FaultProxy,
    controller: asyncio.Task[None],
    play: Coroutine[None, None, None],
    *,
    at: Callable[[Request], bool],
    nth: int,
    after: bool,
) -> bool:
    """Play until the controller behind the proxy dies at the nth such request from now on; return whether it did.

    after: the API server has heard of the request, and nobody hears the answer. The scenario ends
    with the controller.
    """
    dead, before = asyncio.Event(), proxy.count(at)

    async def die(_: Request) -> None:
        dead.set()

    def is_the_one(request: Request) -> bool:
        count = proxy.count(lambda other: at(other) and other.number <= request.number)
        return at(request) and count == before + nth

    with proxy.inject(Call(callback=die, after=after), on=is_the_one):
        done = asyncio.create_task(play)
        await asyncio.wait(
            {done, asyncio.create_task(dead.wait())}, return_when=asyncio.FIRST_COMPLETED
        )
        done.cancel()
        await asyncio.wait({done})
    await bury(proxy, controller)
    return dead.is_set()


async def bury(proxy: FaultProxy, controller: asyncio.Task[None]) -> None:
    """End a controller behind the proxy without another word of it to the API server."""
    with proxy.inject(Reset()):
        proxy.cut()
        controller.cancel()
        await asyncio.wait({controller})


async def killed_and_run_again(
    cluster: Cluster, command: Callable[[Path], Awaitable[object]]
) -> None:
    """Run a command with a kubeconfig, killed at one write after another, until it ends before it comes to that."""
    for write in struck(200):
        with naming(write):
            if await ended(cluster, command, before=write):
                return
    raise AssertionError("the command never ended")


async def ended(
    cluster: Cluster, command: Callable[[Path], Awaitable[object]], *, before: int
) -> bool:
    """Run a command whose connection breaks for good at its n-th change; return whether it ended before that.

    To be killed before a change is for the cluster what it is to be killed after the one before it.
    """
    count = 0
    broken = False

    def chosen(request: Request) -> bool:
        nonlocal count, broken
        count += 0 if broken or not _is_change(request) else 1
        broken = broken or count == before
        return broken

    async def nothing(_: Request) -> None:
        await asyncio.sleep(0)

    async with FaultProxy(cluster.kubeconfig) as proxy:
        with proxy.inject(Call(callback=nothing, after=True), on=chosen):
            await command(proxy.kubeconfig)
    return not broken


def _is_change(request: Request) -> bool:
    """Tell whether something is stored."""
    reviews = request.path.endswith("accessreviews")
    return request.write_number is not None and "dryRun" not in request.query and not reviews
