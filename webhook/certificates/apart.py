"""The rotation of certificates in a process of its own, which runs only while there is work.

The library of certificates takes 10 MiB, and has work for a second in weeks. At rest the webhook
compares the versions of what the process has read, and the time, every few seconds. Once one of
them has changed the process runs again, and does what `rotation` says, from the beginning.
"""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar

import msgspec

from mpijob_elastic import names
from mpijob_elastic.kube import envelopes, errors
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import MUTATING_WEBHOOKS, SECRETS, VALIDATING_WEBHOOKS
from webhook.certificates.handshakes import Handshakes
from webhook.certificates.messages import Order, Rest, RotationNews, line, read_news

_log = logging.getLogger(__name__)

#: The kinds of our webhook configurations.
CONFIGURATIONS = (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)
_PROCESS = "webhook.certificates.apart_process"
# Imports from where the webhook does, and not from the working directory, in which anything may
# lie. PYTHONPATH would reach credential plugins, too.
_START = """
import sys
sys.path[:] = sys.argv[2:]
import runpy
runpy.run_module(sys.argv[1], run_name="__main__")
"""
# Seconds that the process may be silent. It tells each look. To the first write, which another
# process goes on from, a look has five reads of at most 10 s and the write of at most 40 s.
_PATIENCE = 120.0
# The longest pause after failures, in seconds: a deleted Secret may wait so much longer.
_MOST_PAUSE = 60.0
# Enough to reach it, and too few for an overflow.
_MOST_DOUBLINGS = 10

T = TypeVar("T")


class _ProcessFailed(Exception):
    """The process did not end as it should; the text says how."""


# Starting a thread that waits for the process raises RuntimeError, as JSON that is too deep does.
# ValueError: a line that is too long or no text, and `Unusable`.
_FAULTS = (_ProcessFailed, OSError, RuntimeError, ValueError, msgspec.DecodeError)


def pause_after(failures: int, *, look_every: float) -> float:
    """Return the seconds to wait after so many failures, at least one, in a row."""
    doubled = look_every * 2.0 ** min(failures - 1, _MOST_DOUBLINGS)
    return max(look_every, min(doubled, _MOST_PAUSE))


@dataclass(kw_only=True)
class RotationApart:
    """Keeps `handshakes` at a certificate that the API server trusts; see `rotation`."""

    client: ApiReader
    handshakes: Handshakes
    order: Order
    wall: Callable[[], datetime]
    #: See `Content.secret_path`.
    secret_path: str = field(default="", init=False)

    async def run(self) -> None:
        """Rotate whenever there is work, until cancelled."""
        failures = 0
        while True:
            try:
                rest = await self._rotate()
            except _FAULTS as error:
                failures += 1
                pause = pause_after(failures, look_every=self.order.timing.look_every)
                _log.warning("certificates not checked: %s; again in %g s", error, pause)
                await asyncio.sleep(pause)
            else:
                failures = 0
                await self._while_at(rest)

    async def _rotate(self) -> Rest:
        """Run the process until it ends, and return the rest that it found.

        Raises one of `_FAULTS`; then the process has ended, too.
        """
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-c", _START, _PROCESS, *sys.path),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            # A Ctrl-C on a terminal is for the webhook alone, which drains.
            start_new_session=True,
        )
        try:
            return await self._work_of(process)
        except BaseException:
            await _end(process)
            raise

    async def _work_of(self, process: asyncio.subprocess.Process) -> Rest:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(line(replace(self.order, served=self.handshakes.pair)))
        rest = None
        while said := await _patiently(process.stdout.readline()):
            news = read_news(said)
            self._take(news)
            rest = news.rest
        if code := await _patiently(process.wait()):
            raise _ProcessFailed(f"their process ended with {code}")
        if rest is None:
            raise _ProcessFailed("their process ended before its work")
        return rest

    def _take(self, news: RotationNews) -> None:
        """Serve what is new. Raises `Unusable`."""
        self.secret_path = news.secret_path or self.secret_path
        if news.served is not None and news.served != self.handshakes.pair:
            self.handshakes.put(news.served)
            _log.info("serving a new certificate until %s", news.served.until)

    async def _while_at(self, rest: Rest) -> None:
        """Return once there may be work again, at the soonest when the next look is due."""
        while True:
            await asyncio.sleep(self.order.timing.look_every)
            if not rest.since <= self.wall().timestamp() < rest.until:
                return
            try:
                found = await self._versions()
            except errors.KubeError as error:
                _log.warning("certificates not checked: %s", error)
                continue
            if found != rest.versions:
                return

    async def _versions(self) -> list[str]:
        """Return what `Rest.versions` is now. Raises `errors.KubeError`."""
        paths = (
            SECRETS.path(self.order.namespace, names.CERTIFICATE_SECRET),
            *(kind.path(name=names.WEBHOOK_CONFIGURATION) for kind in CONFIGURATIONS),
        )
        found = [await self.client.find(path) for path in paths]
        return [_version(body) for body in found]


def _version(body: bytes | None) -> str:
    return "" if body is None else envelopes.read_stub(body).metadata.resource_version


async def _patiently(coming: Awaitable[T]) -> T:
    try:
        async with asyncio.timeout(_PATIENCE):
            return await coming
    except TimeoutError:
        raise _ProcessFailed(f"their process was silent for {_PATIENCE:g} s") from None


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a process and all that it has started, because it leads a session of its own."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
