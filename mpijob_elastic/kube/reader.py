"""Reads from the API server: bytes in, bytes out, typed errors.

`access` supplies credentials and TLS, and aiohttp sends the requests. A 429 is retried for every
verb, because the server has done nothing yet
(https://kubernetes.io/docs/concepts/cluster-administration/flow-control/). The caller handles every
other failure.
"""

import asyncio
import errno
import logging
import re
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Self, TypeVar
from urllib.parse import urlencode

import msgspec

from mpijob_elastic.kube import envelopes, errors
from mpijob_elastic.kube.access import Access, NoCredentials
from mpijob_elastic.kube.http_library import aiohttp

T = TypeVar("T")

log = logging.getLogger(__name__)

JSON = "application/json"

# Seconds to wait after a 429 without a Retry-After.
DEFAULT_RETRY_AFTER = 1.0
# Objects of a page of a list. Each may be 1.5 MiB, and a page takes 1.3 times its size in memory:
# with up to 500 objects in a page, 300 such objects took the controller above the limit of its
# Deployment, at each start.
PAGE = 50
# The same for a command, whose memory has no limit and whose user waits for each page.
LARGE_PAGE = 500
# A header as the API server sends it: 299 - "text" (RFC 7234, section 5.5).
_REFUSED = f"[Errno {errno.ECONNREFUSED}]"
_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')
WEBSOCKET_TIMEOUT = aiohttp.ClientWSTimeout(ws_close=2.0)


@dataclass(frozen=True, kw_only=True)
class Timeouts:
    """Seconds that a request may take.

    A healthy answer takes milliseconds, and the API server itself gives up after 60 s.
    """

    #: For each attempt.
    attempt: float = 10.0
    #: For all waits after 429s together; 0 to raise a 429 at once.
    throttled: float = 20.0
    #: After so many seconds the API server itself gives the request up, with `errors.TooSlow`; None
    #: for its own limits: 34 s for a write, 60 s for anything else.
    server: float | None = None


USUAL = Timeouts()


class ApiReader:
    """A connection pool to one API server that changes nothing there.

    Make it with `client.connect`; leaving its context closes every connection. Code that gets an
    `ApiReader` cannot write: every write is a method of `writer.ApiWriter`.
    """

    def __init__(self, access: Access, *, user_agent: str) -> None:
        self._authorization = access.authorization
        self._server_name = access.server_name
        # The API server's address, also for messages.
        self.host = access.host.rstrip("/")
        # Takes the warnings that the API server and its webhooks send with an answer, except for
        # dry runs.
        self.warn: Callable[[str], None] = lambda _: None
        self.tls = access.tls
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=self.tls, limit=0, keepalive_timeout=60),
            headers=[("User-Agent", user_agent), ("Accept", JSON), *access.headers],
            proxy=access.proxy,
            # No timeout of aiohttp: if one meets a cancellation, aiohttp 3.14 takes back both, and
            # the task would go on for ever.
            timeout=aiohttp.ClientTimeout(),
            # Watch lines hold whole objects: etcd lets an object be 1.5 MiB, and its JSON is larger
            # than its storage form.
            read_bufsize=2**21,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self._session.close()

    async def get(
        self, path: str, *, query: Mapping[str, str] | None = None, limits: Timeouts = USUAL
    ) -> bytes:
        """Return an object, or a page of a list, as the API server sends it.

        Raises `errors.ApiError` for an error status and `errors.Unreachable` without an answer.
        """
        return await self._call_api("GET", path, query=query, limits=limits)

    async def find(self, path: str, *, limits: Timeouts = USUAL) -> bytes | None:
        """Return an object; None if it does not exist. Raises as `get` does."""
        try:
            return await self.get(path, limits=limits)
        except errors.NotFound:
            return None

    async def review(self, path: str, *, body: object) -> bytes:
        """Post a question, such as a SelfSubjectAccessReview.

        The API server answers it and stores nothing. Raises as `get` does.
        """
        return await self._call_api("POST", path, body=body)

    async def _call_api(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        content_type: str = JSON,
        limits: Timeouts = USUAL,
    ) -> bytes:
        patience = limits.throttled
        if limits.server is not None:
            # Where the API server reads it (pkg/endpoints/filters/request_deadline.go), 0 means no
            # limit.
            query = {**(query or {}), "timeout": f"{max(1, round(limits.server * 1000))}ms"}
        data = body if body is None or isinstance(body, bytes) else msgspec.json.encode(body)
        warn = (lambda _: None) if "dryRun" in (query or ()) else self.warn
        content = {} if data is None else {"Content-Type": content_type}
        while True:
            request = self._session.request(
                method,
                self.host + path,
                params=query,
                data=data,
                headers=await self.credentials() | content,
                server_hostname=self._server_name,
            )
            try:
                return await _answer(request, f"{method} {self.host}{path}", limits.attempt, warn)
            except errors.Throttled as error:
                # The answer "after 0 seconds" must not make a hot loop.
                wait = error.retry_after or DEFAULT_RETRY_AFTER
                if wait > patience:
                    raise
                patience -= wait
                await asyncio.sleep(wait)

    @asynccontextmanager
    async def stream(
        self,
        path: str,
        *,
        query: Mapping[str, str],
        silence: float,
        opening: float = USUAL.attempt,
        ends: list[bytes] | None = None,
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a long answer and give it line by line.

        opening: seconds that the head of the answer may take. silence: seconds without a byte after
        which the peer counts as dead. ends: gets the text after the last newline, if the answer
        ends well. Raises as `get` does, at the start and while lines are read; a 429 is not
        retried.
        """
        where = f"GET {self.host}{path}"
        timeout = aiohttp.ClientTimeout(sock_connect=opening, sock_read=silence)
        headers = await self.credentials()
        with _typed(where):
            async with asyncio.timeout(opening):
                response = await self._session.get(
                    self.host + path,
                    params=query,
                    headers=headers,
                    timeout=timeout,
                    server_hostname=self._server_name,
                )
        async with aclosing(_lines(response.content, where, ends)) as lines:
            try:
                if response.status >= 400:
                    with _typed(where):
                        body = await response.read()
                    raise errors.from_response(
                        response.status, body, response.headers.get("Retry-After")
                    )
                yield lines
            finally:
                # An unfinished answer makes its connection useless.
                response.close()

    @asynccontextmanager
    async def websocket(
        self, path: str, *, query: list[tuple[str, str]], protocols: tuple[str, ...]
    ) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        """Open a WebSocket with the first of `protocols` that the server knows.

        Raises as `get` does.
        """
        # [v1.36] An API server may hand the request to the kubelet, headers and all, and a kubelet
        # answers 406 to the Accept of the other requests.
        headers = {"Accept": "*/*", **await self.credentials()}
        opening = self._session.ws_connect(
            self.host + path,
            params=query,
            protocols=protocols,
            headers=headers,
            timeout=WEBSOCKET_TIMEOUT,
            server_hostname=self._server_name,
        )
        with _typed(f"GET {self.host}{path}"):
            try:
                socket = await opening
            except aiohttp.WSServerHandshakeError as error:
                raise await self._refusal(f"{path}?{urlencode(query)}", error) from error
        async with socket:
            yield socket

    async def _refusal(self, path: str, error: aiohttp.WSServerHandshakeError) -> errors.KubeError:
        """Return the refusal of a WebSocket with its text, which the library drops.

        The same request without an upgrade runs nothing, and is refused in the same words.
        """
        try:
            await self.get(path, limits=Timeouts(throttled=0.0))
        except errors.KubeError as told:
            if getattr(told, "status", None) == error.status:
                return told
        wait = error.headers.get("Retry-After") if error.headers else None
        return errors.from_response(
            error.status, f"GET {path.partition('?')[0]} refused".encode(), wait
        )

    async def credentials(self) -> dict[str, str]:
        """Return the Authorization header, refreshed when credentials expire.

        Empty with client certificates. Raises `errors.Unreachable` while credentials cannot be
        had, for example from a credential plugin.
        """
        try:
            token = await self._authorization()
        except NoCredentials as error:
            raise errors.Unreachable(f"no credentials for {self.host}: {error}") from error
        return {"Authorization": token} if token else {}


async def pages(
    client: ApiReader,
    path: str,
    *,
    query: Mapping[str, str],
    size: int = PAGE,
    limits: Timeouts = USUAL,
) -> AsyncIterator[envelopes.Page]:
    """Give the pages of a list, `size` objects each; `query` selects the objects.

    Raises as `ApiReader.get` does, for each page.
    """
    asked = {**query, "limit": str(size)}
    while True:
        page = await envelopes.read_page(await client.get(path, query=asked, limits=limits))
        yield page
        if not page.metadata.continue_:
            return
        asked["continue"] = page.metadata.continue_


async def list_objects(
    client: ApiReader,
    path: str,
    read: Callable[[bytes], T],
    *,
    selector: str = "",
    query: Mapping[str, str] = MappingProxyType({}),
    size: int = PAGE,
) -> list[T]:
    """Return every object at `path` that matches the label `selector` and `query`.

    size: objects of a page. Raises as `ApiReader.get` does.

    An object that `read` refuses is logged and left out: its author must not stop the objects of
    others.
    """
    asked = {**query, "labelSelector": selector} if selector else query
    found = list[T]()
    async for page in pages(client, path, query=asked, size=size):
        found += await readable(path, page.items or (), read)
    return found


async def list_texts(client: ApiReader, path: str, *, size: int = PAGE) -> list[msgspec.Raw]:
    """Return the text of every object at `path`, for several readers. See `list_objects`."""
    found = list[msgspec.Raw]()
    async for page in pages(client, path, query={}, size=size):
        found += page.items or ()
    return found


async def readable(path: str, texts: Iterable[msgspec.Raw], read: Callable[[bytes], T]) -> list[T]:
    """Return each object that `read` does not refuse; the others are logged with their `path`."""
    found = list[T]()
    for raw in texts:
        try:
            found.append(read(raw))
        except Exception as error:  # noqa: BLE001 - whatever is wrong, it is wrong with this object alone
            meta = await envelopes.read_identity(raw)
            log.warning(
                "%s: left out %s/%s, which cannot be read: %s",
                path,
                meta.namespace,
                meta.name,
                error,
            )
    return found


async def _answer(
    request: AbstractAsyncContextManager[aiohttp.ClientResponse],
    where: str,
    seconds: float,
    warn: Callable[[str], None],
) -> bytes:
    with _typed(where):
        async with asyncio.timeout(seconds), request as response:
            answer = await response.read()
    if response.status >= 400:
        raise errors.from_response(response.status, answer, response.headers.get("Retry-After"))
    if response.content_type == "text/html":
        raise errors.Unreachable(f"{where}: a web page answers, and not an API server")
    for text in _WARNING.findall(", ".join(response.headers.getall("Warning", ()))):
        warn(re.sub(r"\\(.)", r"\1", text))
    return answer


async def _lines(
    content: aiohttp.StreamReader, where: str, ends: list[bytes] | None = None
) -> AsyncGenerator[bytes, None]:
    # StreamReader.readline refuses lines longer than twice the buffer, and objects may be longer,
    # so this splits by hand. An object of 1.5 MiB comes in a hundred chunks, so no byte is looked
    # at twice.
    pending = list[bytes]()
    while True:
        with _typed(where):
            chunk = await content.readany()
        if not chunk:
            if ends is not None:
                ends += filter(None, [b"".join(pending)])
            return
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            yield b"".join([*pending, line])
            pending.clear()
        pending.append(rest)


@contextmanager
def _typed(where: str) -> Iterator[None]:
    try:
        yield
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise errors.Unreachable(f"{where}: {_describe(error)}") from error


def _describe(error: BaseException) -> str:
    """Return what is wrong, in the words of people who do not know the libraries."""
    if isinstance(error, aiohttp.ClientConnectorError):
        place, cause = f"{error.host}:{error.port}", error.os_error
        # Several addresses of one name end in one error without a number.
        refused = cause.errno == errno.ECONNREFUSED or _REFUSED in str(cause)
        if refused:
            return f"the connection to {place} was refused"
        return f"no connection to {place}: {cause.strerror or cause}"
    if isinstance(error, TimeoutError) and not str(error):
        return "there was no answer in time"
    # The URL of a proxy may contain a password.
    said = re.sub("//[^/@ ]*@", "//", str(error)) or type(error).__name__
    return re.sub(r" ssl:\w+\b", "", said)
