"""Faults between a client and the API server, as values to give to `FaultProxy.inject`.

A fault overrides the moments at which it strikes; to strike it may wait, raise `Drop` to reset the
connection, or answer in the server's place. It says nothing of which requests it strikes: that is
the predicate given beside it.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request as the proxy got it; numbers count from 1, `at` is the event loop's time in seconds."""

    number: int
    write_number: int | None
    method: str
    path: str
    query: Mapping[str, str]
    at: float

    @property
    def watch(self) -> bool:
        """True if it opens a watch."""
        return self.query.get("watch") in {"true", "1"}


def everything(_: Request) -> bool:
    """Every request."""
    return True


def watches(request: Request) -> bool:
    """Requests that open a watch, and all that is streamed in answer to them."""
    return request.watch


def lists(request: Request) -> bool:
    """Requests for a collection, which a client that reads page by page always limits."""
    return not request.watch and "limit" in request.query


def writes(request: Request) -> bool:
    """Requests that change something."""
    return request.method in WRITES


class Drop(Exception):
    """Reset the client's connection."""


class Fault:
    """Breaks nothing."""

    async def asked(self, request: Request) -> web.Response | None:
        """Before the server hears of it; what is returned is answered in its place."""

    async def answered(self, request: Request, body: bytes) -> bytes:
        """After the server has done it and before the client hears of that; returns the body to hand on."""
        return body

    async def line(self, request: Request, line: bytes) -> bytes | None:
        """For each line of a watch; returns it to hand it on, None to lose it."""
        return line


@dataclass(frozen=True, kw_only=True)
class Lag(Fault):
    """Every line of a watch arrives this many seconds late; a watch opens as usual."""

    seconds: float

    async def line(self, request: Request, line: bytes) -> bytes:
        await asyncio.sleep(self.seconds)
        return line


class Delay(Lag):
    """Every request and every line takes this many seconds longer; the server hears of a request late."""

    async def asked(self, request: Request) -> None:
        await asyncio.sleep(self.seconds)


@dataclass(frozen=True, kw_only=True)
class Freeze(Fault):
    """Nothing passes in either direction until `thaw`; then all that waited does, as after a frozen network."""

    _thawed: asyncio.Event = field(default_factory=asyncio.Event)

    def thaw(self) -> None:
        """Let everything pass."""
        self._thawed.set()

    async def asked(self, request: Request) -> None:
        await self._thawed.wait()

    async def answered(self, request: Request, body: bytes) -> bytes:
        await self._thawed.wait()
        return body

    async def line(self, request: Request, line: bytes) -> bytes:
        await self._thawed.wait()
        return line


@dataclass(frozen=True, kw_only=True)
class Reset(Fault):
    """The connection breaks; with `after` only when the server has done what it was asked to."""

    after: bool = False

    async def asked(self, request: Request) -> None:
        if not self.after:
            await self.strike(request)

    async def answered(self, request: Request, body: bytes) -> bytes:
        await self.strike(request)
        return body

    async def strike(self, request: Request) -> None:
        """Break the connection."""
        raise Drop


@dataclass(frozen=True, kw_only=True)
class Call(Reset):
    """Call somebody, for example to kill the client at its n-th write, and then break the connection."""

    callback: Callable[[Request], Awaitable[None]]

    async def strike(self, request: Request) -> None:
        await self.callback(request)
        raise Drop


@dataclass(frozen=True, kw_only=True)
class Answer(Fault):
    """An error status instead of the server's answer; the server never hears of the request."""

    status: int
    reason: str = ""
    retry_after: int | None = None

    async def asked(self, request: Request) -> web.Response:
        told = {"code": self.status, "reason": self.reason, "message": "injected"}
        headers = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        return web.json_response(
            {"kind": "Status", "status": "Failure", **told}, status=self.status, headers=headers
        )


@dataclass(frozen=True, kw_only=True)
class LoseEvents(Fault):
    """Lines of a watch whose parsed content is chosen never arrive."""

    chosen: Callable[[dict[str, Any]], bool]

    async def line(self, request: Request, line: bytes) -> bytes | None:
        return None if self.chosen(json.loads(line)) else line


@dataclass(frozen=True, kw_only=True)
class EventError(Fault):
    """The next line of a watch becomes an error of this status in the stream, 410 for example."""

    status: int
    reason: str = ""

    async def line(self, request: Request, line: bytes) -> bytes:
        status = {"kind": "Status", "status": "Failure", "code": self.status, "reason": self.reason}
        return json.dumps({"type": "ERROR", "object": status}).encode()


@dataclass(frozen=True, kw_only=True)
class StaleAnswers(Fault):
    """A request that was answered before gets the answer of then, as from an API server that lags behind."""

    _before: dict[str, bytes] = field(default_factory=dict)

    async def answered(self, request: Request, body: bytes) -> bytes:
        return self._before.setdefault(f"{request.path}?{sorted(request.query.items())}", body)
