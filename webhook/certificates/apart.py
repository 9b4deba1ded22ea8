"""The rotation of certificates in a process of its own, which runs only while there is work.

The library of certificates takes 10 MiB, and has work for a second in weeks. At rest the webhook
compares the versions of what the process has read, and the time, every few seconds. Once one of
them has changed the process runs again, and does what `rotation` says, from the beginning.
"""

import asyncio
import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime

import msgspec

from mpijob_elastic import names
from mpijob_elastic.kube import envelopes, errors
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import MUTATING_WEBHOOKS, SECRETS, VALIDATING_WEBHOOKS
from webhook.certificates.handshakes import Handshakes, Unusable
from webhook.certificates.messages import Order, Rest, RotationNews, line, read_news

_log = logging.getLogger(__name__)

#: The kinds of our webhook configurations.
CONFIGURATIONS = (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)
_PROCESS = "webhook.certificates.apart_process"


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
        while True:
            rest = await self._rotate()
            if rest is None:
                await asyncio.sleep(self.order.timing.look_every)
            else:
                await self._while_at(rest)

    async def _rotate(self) -> Rest | None:
        """Run the process until it ends; return the rest that it found, None if it failed."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", _PROCESS),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            # A Ctrl-C on a terminal is for the webhook alone, which drains.
            start_new_session=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        rest = None
        try:
            process.stdin.write(line(replace(self.order, served=self.handshakes.pair)))
            async for said in process.stdout:
                news = read_news(said)
                self._take(news)
                rest = news.rest
            if code := await process.wait():
                _log.warning("certificates not checked: their process ended with %d", code)
        except (OSError, msgspec.DecodeError, Unusable) as error:
            _log.warning("certificates not checked: %s", error)
            return None
        finally:
            await _end(process)
        return rest

    def _take(self, news: RotationNews) -> None:
        """Serve what is new. Raises `Unusable`."""
        self.secret_path = news.secret_path or self.secret_path
        if news.served is not None and news.served != self.handshakes.pair:
            self.handshakes.put(news.served)
            _log.info("serving a new certificate until %s", news.served.until)

    async def _while_at(self, rest: Rest) -> None:
        """Return once there may be work again."""
        while rest.since <= self.wall().timestamp() < rest.until:
            await asyncio.sleep(self.order.timing.look_every)
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


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.kill()
        await process.wait()
