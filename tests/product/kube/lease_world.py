"""A Lease on a server, and candidates each with a bad connection of its own; all in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from random import Random
from typing import Any, NamedTuple

from mpijob_elastic.kube import errors
from mpijob_elastic.kube.lease import Lease
from tests.doubles.api import Object, TinyApi, merged
from tests.doubles.direct import DirectClient, Sent
from tests.product.kube.virtual_time import in_no_time

LEASE = "/apis/coordination.k8s.io/v1/namespaces/n/leases/l"


def now() -> float:
    return asyncio.get_running_loop().time()


class Write(NamedTuple):
    """One accepted write, as the server saw it; `spec` is empty for a deletion."""

    at: float
    spec: Mapping[str, Any]

    @property
    def holder(self) -> str:
        return str(self.spec.get("holderIdentity") or "")


class Server(TinyApi):
    """Keeps the Lease, and tells `on_write` of every write to it before it is answered."""

    def __init__(self) -> None:
        super().__init__()
        self.history: list[Write] = []
        self.candidates: list[Candidate] = []
        self.on_write: Callable[[Write], None] = lambda _: None

    @property
    def last(self) -> Write:
        return self.history[-1]

    def put(self, path: str, item: Object) -> Object:
        item = super().put(path, item)
        self._note(item["spec"])
        return item

    def edit(self, **content: object) -> None:
        """Somebody else makes or changes the Lease."""
        self.put(LEASE, merged(self.objects.get(LEASE, {"spec": {}}), content))

    def remove(self, path: str = LEASE) -> Object:
        """Somebody else deletes the Lease."""
        if path in self.objects:
            super().remove(path)
            self._note({})
        return {}

    def _note(self, spec: Mapping[str, Any]) -> None:
        self.history.append(Write(now(), spec))
        self.on_write(self.last)


class Wire(DirectClient):
    """A way to the server; `mode` is what is wrong with it.

    A request given up by its sender still arrives.
    """

    def __init__(self, *, server: Server, random: Random) -> None:
        super().__init__(self._send)
        self.server = server
        self.random = random
        self.mode = "fine"
        self.requests: list[tuple[float, str]] = []

    async def _send(self, sent: Sent) -> bytes:
        self.requests.append((now(), sent.method))
        journey = asyncio.ensure_future(self._travel(sent))
        journey.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            async with asyncio.timeout(sent.limits.attempt):
                return await asyncio.shield(journey)
        except TimeoutError:
            raise errors.Unreachable("timeout") from None

    async def _travel(self, sent: Sent) -> bytes:
        match self.mode:
            case "refused":
                raise errors.Unreachable("refused")
            case "503" | "429":
                raise errors.from_response(
                    int(self.mode), b"{}", "4" if self.mode == "429" else None
                )
            case "slow":
                await asyncio.sleep(self.random.uniform(0, 8))
        await self._delay()
        answer = await self.server.answer(sent)
        if self.mode == "answers lost" and sent.method != "GET":
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
        server.candidates.append(self)
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


def led(test: Callable[[Server, Candidate], Awaitable[None]]) -> Callable[[], None]:
    """Run a test in virtual time, with a candidate that has begun to lead by a fresh Lease with a label."""

    @in_no_time
    async def with_a_leader() -> None:
        server = Server()
        server.edit(metadata={"labels": {"app": "x"}})
        first = Candidate(server, "a")
        await until(lambda: first.log)
        await test(server, first)
        for candidate in server.candidates:
            await candidate.stop()

    return with_a_leader
