"""Run a command in a container and wait for its end: `kubectl exec` without input.

The protocol uses a WebSocket. Each message is binary, its first byte a channel: 1 stdout, 2 stderr,
3 a Status object at the end. v5 differs from v4 only in how a client ends its input, and we send
none. We ask for v5 first because an API server since 1.30 translates v5 itself instead of passing
the connection to the kubelet; since 1.36 it passes v5 on to a kubelet that translates it.
KEP-4006; k8s.io/apimachinery/pkg/util/remotecommand/constants.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from mpijob_elastic.kube import errors
from mpijob_elastic.kube.http_library import aiohttp
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import PODS

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
LIMIT = 64 * 1024

# Takes a channel and the data of a message on it.
Tell = Callable[[int, bytes], None]

_STDOUT, _STDERR, _STATUS = 1, 2, 3


@dataclass(frozen=True, kw_only=True)
class ExecResult:
    """The output of a command (undecodable bytes replaced) and its exit code."""

    stdout: str
    stderr: str
    exit_code: int


class ExecFailed(errors.KubeError):
    """The command could not be run, or wrote more than its limit; its exit code is unknown."""


async def exec_in_pod(
    client: ApiReader,
    namespace: str,
    pod: str,
    *,
    container: str,
    command: list[str],
    timeout: float,  # noqa: ASYNC109 - part of the contract, enforced below
    limit: int = LIMIT,
    tell: Tell | None = None,
) -> ExecResult:
    """Run `command` without input, and return its result.

    timeout: seconds for everything. limit: bytes of output. tell: takes the output as it comes, of
    any length; the result then has no output.

    Raises `ExecFailed`; `errors.Unreachable` without a result in time (the command may still run);
    `errors.Forbidden` if RBAC refuses; `errors.NotFound` if there is no such pod, and
    `errors.ApiError` if the container does not run.
    """
    query = [("container", container), ("stdout", "true"), ("stderr", "true")]
    query += [("command", word) for word in command]
    transcript = _Transcript(limit, tell)
    await _run(client, (namespace, pod), query, timeout, transcript)
    return transcript.result(f"exec in {namespace}/{pod}")


async def exec_on_terminal(
    client: ApiReader,
    namespace: str,
    pod: str,
    *,
    container: str,
    command: list[str],
    timeout: float,  # noqa: ASYNC109 - part of the contract, enforced below
    tell: Tell,
) -> ExecResult:
    """Run `command` with a terminal in the pod on which nobody types, and return its exit code.

    A program that reads from it waits for ever. All output is one stream, whose lines end as on a
    terminal. See `exec_in_pod` for all else.
    """
    # A terminal has no second stream.
    query = [("container", container), ("stdout", "true"), ("tty", "true")]
    query += [("command", word) for word in command]
    transcript = _Transcript(LIMIT, tell)
    await _run(client, (namespace, pod), query, timeout, transcript)
    return transcript.result(f"exec in {namespace}/{pod}")


async def _run(
    client: ApiReader,
    place: tuple[str, str],
    query: list[tuple[str, str]],
    timeout: float,  # noqa: ASYNC109 - see exec_in_pod
    transcript: _Transcript,
) -> None:
    """Take in all that a command says until its end; place: the namespace and the pod."""
    path = PODS.path(*place, "exec")
    try:
        async with (
            asyncio.timeout(timeout),
            client.websocket(path, query=query, protocols=PROTOCOLS) as socket,
        ):
            # Output can follow the status, so only the close of the server is the end.
            async for message in socket:
                if message.type is aiohttp.WSMsgType.BINARY:
                    transcript.add(message.data)
    except TimeoutError:
        if transcript.status is None:
            raise errors.Unreachable(
                f"exec in {'/'.join(place)}: no result within {timeout} s"
            ) from None


class _Cause(msgspec.Struct):
    reason: str = ""
    message: str = ""


class _Details(msgspec.Struct):
    causes: list[_Cause] = []


class _Status(msgspec.Struct):
    status: str = ""
    reason: str = ""
    message: str = ""
    details: _Details = msgspec.field(default_factory=_Details)


class _Transcript:
    """Collects the messages of an exec."""

    def __init__(self, limit: int, tell: Tell | None) -> None:
        self._left, self._tell = limit, tell
        self._output = {_STDOUT: bytearray(), _STDERR: bytearray()}
        self.status: _Status | None = None

    def add(self, message: bytes) -> None:
        """Add a message; the first messages of a channel may be empty.

        Raises ExecFailed past the limit.
        """
        channel, data = message[0] if message else 0, message[1:]
        if channel in self._output and self._tell:
            self._tell(channel, data)
        elif channel in self._output:
            self._left -= len(data)
            if self._left < 0:
                raise ExecFailed(
                    "the command wrote more than its limit; ask for less, or raise `limit`"
                )
            self._output[channel] += data
        elif channel == _STATUS and data:
            try:
                self.status = msgspec.json.decode(data, type=_Status)
            except msgspec.DecodeError:
                self.status = _Status(message=data.decode(errors="replace"))

    def result(self, what: str) -> ExecResult:
        """Return the result. Raises `ExecFailed`, and `errors.Unreachable` without a status."""
        if self.status is None:
            raise errors.Unreachable(f"{what}: the connection ended before the command did")
        return ExecResult(
            stdout=self._output[_STDOUT].decode(errors="replace"),
            stderr=self._output[_STDERR].decode(errors="replace"),
            exit_code=_exit_code(self.status, what),
        )


def _exit_code(status: _Status, what: str) -> int:
    if status.status == "Success":
        return 0
    codes = [cause.message for cause in status.details.causes if cause.reason == "ExitCode"]
    if codes and codes[0].isdigit():
        return int(codes[0])
    raise ExecFailed(f"{what}: {status.reason}: {status.message}")
