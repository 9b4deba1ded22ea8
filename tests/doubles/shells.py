"""Pods that answer exec, and tell who asked what.

`connected(Shells(prints("ended")))` is a client over HTTP, `DirectShells(...)` one in process, for
virtual time.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass

import aiohttp
from aiohttp import web

from mpijob_elastic.kube import errors
from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.exec import PROTOCOLS
from mpijob_elastic.kube.writer import ApiWriter
from tests.doubles.api import Object, TinyApi, refusal, refused
from tests.doubles.direct import DirectClient, Sent

STDOUT, STDERR, STATUS = 1, 2, 3
SUCCESS = {"status": "Success"}


@dataclass(frozen=True, kw_only=True)
class Asked:
    """An exec. at: seconds of the event loop. query, protocols: as they were sent."""

    at: float
    namespace: str
    pod: str
    container: str
    command: list[str]
    query: str = ""
    protocols: str = ""

    @classmethod
    def of(cls, path: str, words: list[tuple[str, str]], **sent: str) -> "Asked":
        """Read the path and the query of a request."""
        parts, container = path.split("/"), dict(words)["container"]
        command = [word for key, word in words if key == "command"]
        at = asyncio.get_running_loop().time()
        return cls(
            at=at, namespace=parts[4], pod=parts[6], container=container, command=command, **sent
        )


Message = tuple[int, object]
Talk = Callable[[Asked], AsyncIterator[Message]]


def says(*messages: Message) -> Talk:
    """Send these (channel, text or Status) and close."""

    async def talk(_: Asked) -> AsyncIterator[Message]:
        for message in messages:
            yield message

    return talk


def prints(text: str) -> Talk:
    """Print a text and end well."""
    return says((STDOUT, text), (STATUS, SUCCESS))


def prints_in_turn(*texts: str) -> Talk:
    """Print another text each time, and the last again and again."""
    left = list(texts)

    async def talk(_: Asked) -> AsyncIterator[Message]:
        yield STDOUT, left.pop(0) if len(left) > 1 else left[0]
        yield STATUS, SUCCESS

    return talk


def by_place(words: Mapping[str, str | None], usual: str) -> Talk:
    """Print the word of the container, else of the pod, else the usual one; refuse where it is None."""

    async def talk(asked: Asked) -> AsyncIterator[Message]:
        word = words.get(asked.container, words.get(asked.pod, usual))
        if word is None:
            raise refused(403, "Forbidden", "no")
        yield STDOUT, f"{word}\n"
        yield STATUS, SUCCESS

    return talk


def failure(reason: str, message: str, exit_code: str = "") -> Object:
    """Return the Status of a command that failed, or did not run."""
    causes = [{"reason": "ExitCode", "message": exit_code}] if exit_code else []
    return {
        "status": "Failure",
        "reason": reason,
        "message": message,
        "details": {"causes": causes},
    }


class Shells:
    """See the module.

    says: what they answer; it may raise an `errors.ApiError` in place of its first message. uids:
    of pods, None of a pod that is not there; else as `tests.builders.ref` has them. asked: every
    exec. go: nobody answers before it is set. at_once: how many execs are under way.
    """

    def __init__(self, talk: Talk, *, protocol: str = PROTOCOLS[0]) -> None:
        self.says = talk
        self.uids: dict[str, str | None] = {}
        self.asked: list[Asked] = []
        self.go = asyncio.Event()
        self.go.set()
        self.at_once = self.most_at_once = 0
        self._protocol = protocol
        self._refusal = refused(403, "Forbidden", "no")

    async def talk(self, asked: Asked) -> AsyncGenerator[bytes, None]:
        """Answer an exec: its messages, each with its channel."""
        self.asked.append(asked)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await self.go.wait()
            async for channel, content in self.says(asked):
                text = content if isinstance(content, str) else json.dumps(content)
                yield bytes([channel]) + text.encode()
        finally:
            self.at_once -= 1

    def show(self, sent: Sent) -> Object | None:
        """Answer who a pod is, and nothing else: a hook of `TinyApi`."""
        if sent.method != "GET" or sent.path.split("/")[-2] != "pods":
            return None
        uid = self.uids.get(sent.name, f"uid-of-{sent.name}")
        if uid is None:
            raise refused(404, "NotFound", "no")
        return {"metadata": {"name": sent.name, "uid": uid}}

    async def serve(self, raw: web.Request) -> web.StreamResponse:
        """Speak the protocol with a client: a stream of `TinyApi`."""
        if "Upgrade" not in raw.headers:  # after a refusal: which words it has
            return refusal(self._refusal.status, self._refusal.reason, self._refusal.message)
        if raw.headers.getall("Accept") != ["*/*"]:
            # [v1.36] The API server passes the request on, and the kubelet has nothing but streams.
            return web.Response(status=406)
        protocols = raw.headers.get("Sec-WebSocket-Protocol", "")
        asked = Asked.of(
            raw.path, [*raw.query.items()], query=raw.query_string, protocols=protocols
        )
        async with aclosing(self.talk(asked)) as messages:
            try:
                if self.uids.get(asked.pod, "") is None:
                    raise refused(404, "NotFound", "no")
                first = await anext(messages, None)
            except errors.ApiError as error:
                self._refusal = error
                return refusal(error.status, error.reason, error.message)
            socket = web.WebSocketResponse(protocols=[self._protocol])
            await socket.prepare(raw)
            if first is not None:
                await socket.send_bytes(first)
            async for message in messages:
                await socket.send_bytes(message)
            await socket.close()
        return socket


@asynccontextmanager
async def connected(shells: Shells) -> AsyncIterator[ApiWriter]:
    """A client of a server with these pods."""
    async with TinyApi() as api:
        api.hook, api.streams["/exec"] = shells.show, shells.serve
        async with await connect(user_agent="test", kubeconfig=api.kubeconfig) as client:
            yield client


class DirectShells(DirectClient):
    """A client of these pods without sockets."""

    def __init__(self, shells: Shells) -> None:
        super().__init__(self._show)
        self._shells = shells

    async def _show(self, sent: Sent) -> object:
        return self._shells.show(sent)

    @asynccontextmanager
    async def websocket(
        self, path: str, *, query: list[tuple[str, str]], protocols: tuple[str, ...]
    ) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        async with aclosing(self._shells.talk(Asked.of(path, query))) as messages:
            yield _Socket(messages)  # type: ignore[misc] # it is only read


class _Socket:
    """The messages of an exec, as the client reads them."""

    def __init__(self, messages: AsyncIterator[bytes]) -> None:
        self._messages = messages

    def __aiter__(self) -> "_Socket":
        return self

    async def __anext__(self) -> aiohttp.WSMessage:
        return aiohttp.WSMessage(aiohttp.WSMsgType.BINARY, await anext(self._messages), None)
