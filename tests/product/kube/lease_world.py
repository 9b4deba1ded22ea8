"""A Lease on a server, and candidates each with a bad connection of its own; all in virtual time."""

import asyncio
import itertools
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any

from mpijob_elastic.kube import errors
from mpijob_elastic.kube.lease import Lease
from tests.doubles.api import merged
from tests.doubles.direct import DirectClient, Sent

PATH = "/apis/coordination.k8s.io/v1/namespaces/n/leases"


def now() -> float:
    return asyncio.get_running_loop().time()


@dataclass(frozen=True, kw_only=True)
class Write:
    """One accepted write, as the server saw it; `spec` is None for a deletion."""

    at: float
    spec: Mapping[str, Any] | None

    @property
    def holder(self) -> str:
        return str((self.spec or {}).get("holderIdentity") or "")


class Server:
    """Keeps the Lease as the API server does, and tells `on_write` of every write before it is answered."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.writes: list[Write] = []
        self.on_write: Callable[[Write], None] = lambda _: None
        self._revisions = itertools.count(1)

    def handle(self, method: str, path: str, body: Any) -> bytes:
        if method == "POST":
            if self.lease:
                raise refusal(409, "AlreadyExists")
            self.store({**body, "metadata": {**body["metadata"], "uid": f"u{next(self._revisions)}"}})
        elif self.lease is None:
            raise refusal(404, "NotFound")
        elif method == "PATCH":
            if body["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
                raise refusal(409, "Conflict")
            self.store(merged(self.lease, body))
        return json.dumps(self.lease).encode()

    def store(self, lease: dict[str, Any]) -> None:
        self.lease = merged(lease, {"metadata": {"resourceVersion": str(next(self._revisions))}})
        self._note(self.lease["spec"])

    def edit(self, patch: dict[str, Any]) -> None:
        """Somebody else changes the Lease."""
        assert self.lease
        self.store(merged(self.lease, patch))

    def delete(self) -> None:
        """Somebody else deletes the Lease."""
        if self.lease:
            self.lease = None
            self._note(None)

    def _note(self, spec: Mapping[str, Any] | None) -> None:
        write = Write(at=now(), spec=spec)
        self.writes.append(write)
        self.on_write(write)


def refusal(status: int, reason: str, retry_after: str | None = None) -> errors.ApiError:
    return errors.from_response(status, json.dumps({"reason": reason}).encode(), retry_after)


class Wire(DirectClient):
    """A way to the server; `mode` is what is wrong with it. A request given up by its sender still arrives."""

    def __init__(self, *, server: Server, random: Random) -> None:
        super().__init__(self._send)
        self.server = server
        self.random = random
        self.mode = "fine"
        self.requests: list[tuple[float, str]] = []

    async def _send(self, sent: Sent) -> bytes:
        self.requests.append((now(), sent.method))
        journey = asyncio.ensure_future(self._travel(sent.method, sent.path, sent.body))
        journey.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            async with asyncio.timeout(sent.limits.attempt):
                return await asyncio.shield(journey)
        except TimeoutError:
            raise errors.Unreachable("timeout") from None

    async def _travel(self, method: str, path: str, body: Any) -> bytes:
        match self.mode:
            case "refused":
                raise errors.Unreachable("refused")
            case "503" | "429":
                raise refusal(int(self.mode), "", "4" if self.mode == "429" else None)
            case "slow":
                await asyncio.sleep(self.random.uniform(0, 8))
        await self._delay()
        answer = self.server.handle(method, path, body)
        if self.mode == "answers lost" and method != "GET":
            raise errors.Unreachable("reset")
        await self._delay()
        return answer

    async def _delay(self) -> None:
        await asyncio.sleep(self.random.uniform(0.001, 0.02))
        while self.mode == "frozen":
            await asyncio.sleep(0.2)


class Candidate:
    """One process: a Lease and work that notes when it starts and ends."""

    def __init__(self, server: Server, identity: str, *, seed: int = 0) -> None:
        self.identity = identity
        self.wire = Wire(server=server, random=Random(seed))
        self.lease = Lease(
            client=self.wire,
            namespace="n",
            name="l",
            identity=identity,
            random=Random(seed),
            clock=now,
        )
        self.log: list[tuple[float, str]] = []
        self.stopping = 0.0
        self.work: Callable[[], Any] = asyncio.Event().wait
        self.task = asyncio.create_task(self.lease.run(self._lead))

    async def _lead(self) -> None:
        assert self.lease.held()
        self.log.append((now(), "starts"))
        try:
            await self.work()
        finally:
            await asyncio.sleep(self.stopping)
            self.log.append((now(), "ends"))

    @property
    def leads(self) -> bool:
        return self.lease.held()

    def times(self, what: str) -> list[float]:
        return [at for at, word in self.log if word == what]

    async def stop(self) -> None:
        """Ask the process to end, and wait for that."""
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task

    async def kill(self) -> None:
        """End the process without a word to the server."""
        self.wire.mode = "refused"
        await self.stop()


async def until(condition: Callable[[], object], *, within: float = 60.0) -> float:
    """The seconds it took until `condition` held. Raises TimeoutError."""
    begun = now()
    async with asyncio.timeout(within):
        while not condition():
            await asyncio.sleep(0.02)
    return now() - begun


async def led(server: Server) -> Candidate:
    """A candidate that has begun to lead by a fresh Lease with a label."""
    server.store({"metadata": {"name": "l", "uid": "u", "labels": {"app": "x"}}, "spec": {}})
    candidate = Candidate(server, "a")
    await until(lambda: candidate.log)
    return candidate
