"""The exec protocol against a server that speaks it, where a real one is hard to bring to the point."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from mpijob_elastic.kube import errors
from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.exec import ExecFailed, ExecResult, exec_in_pod
from tests.faults.kubeconfig import write_plain

SUCCESS = {"status": "Success"}
Talk = Callable[[web.WebSocketResponse], Awaitable[None]]


def failure(reason: str, message: str, exit_code: str = "") -> dict[str, object]:
    causes = [{"reason": "ExitCode", "message": exit_code}] if exit_code else []
    return {"status": "Failure", "reason": reason, "message": message, "details": {"causes": causes}}


@asynccontextmanager
async def server(talk: Talk, folder: Path, *, protocol: str = "v5.channel.k8s.io") -> AsyncIterator[list[web.Request]]:
    """A server that lets `talk` speak to each client."""
    requests: list[web.Request] = []

    async def serve(request: web.Request) -> web.WebSocketResponse:
        requests.append(request)
        socket = web.WebSocketResponse(protocols=[protocol])
        await socket.prepare(request)
        await talk(socket)
        await socket.close()
        return socket

    application = web.Application()
    application.router.add_get("/api/v1/namespaces/n/pods/p/exec", serve)
    runner = web.AppRunner(application, shutdown_timeout=0.01, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    write_plain(folder / "kubeconfig", f"http://127.0.0.1:{runner.addresses[0][1]}")
    try:
        yield requests
    finally:
        await runner.cleanup()


async def run(folder: Path, *, seconds: float = 30, limit: int = 100) -> ExecResult:
    async with await connect(user_agent="test", kubeconfig=folder / "kubeconfig") as client:
        return await exec_in_pod(client, "n", "p", container="c", command=["ls", "-l"], timeout=seconds, limit=limit)


def says(*messages: tuple[int, object]) -> Talk:
    """A server that sends these (channel, text or Status) and closes."""

    async def talk(socket: web.WebSocketResponse) -> None:
        for channel, content in messages:
            text = content if isinstance(content, str) else json.dumps(content)
            await socket.send_bytes(bytes([channel]) + text.encode())

    return talk


@pytest.mark.parametrize("protocol", ["v5.channel.k8s.io", "v4.channel.k8s.io"])
async def test_output_is_put_together_even_after_the_status(tmp_path: Path, protocol: str) -> None:
    talk = says((1, ""), (2, ""), (1, "a"), (2, "x"), (3, ""), (3, SUCCESS), (1, "b"))
    async with server(talk, tmp_path, protocol=protocol) as requests:
        assert await run(tmp_path) == ExecResult(stdout="ab", stderr="x", exit_code=0)
    assert requests[0].query_string == "container=c&stdout=true&stderr=true&command=ls&command=-l"
    assert requests[0].headers["Sec-WebSocket-Protocol"] == "v5.channel.k8s.io,v4.channel.k8s.io"


async def test_an_exit_code_is_a_result(tmp_path: Path) -> None:
    status = failure("NonZeroExitCode", "command terminated with exit code 7", "7")
    async with server(says((3, status)), tmp_path):
        assert (await run(tmp_path)).exit_code == 7


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (failure("InternalError", "executable file not found"), "InternalError: executable file not found"),
        (failure("NonZeroExitCode", "no code", "?"), "no code"),
        ("not JSON", "not JSON"),
    ],
)
async def test_a_command_that_did_not_run_is_an_error(tmp_path: Path, status: object, words: str) -> None:
    async with server(says((3, status)), tmp_path):
        with pytest.raises(ExecFailed, match=words):
            await run(tmp_path)


async def test_more_output_than_the_limit_is_an_error(tmp_path: Path) -> None:
    async with server(says((1, "a" * 60), (2, "b" * 40), (3, SUCCESS)), tmp_path):
        assert len((await run(tmp_path)).stdout) == 60
    async with server(says((1, "a" * 60), (2, "b" * 41), (3, SUCCESS)), tmp_path):
        with pytest.raises(ExecFailed, match="limit"):
            await run(tmp_path)


async def test_a_connection_that_ends_without_a_result_is_unreachable(tmp_path: Path) -> None:
    async with server(says((1, "a"), (3, "")), tmp_path):
        with pytest.raises(errors.Unreachable, match="before the command did"):
            await run(tmp_path)


async def test_time_is_bounded_and_a_result_already_there_is_kept(tmp_path: Path) -> None:
    async def hangs(socket: web.WebSocketResponse) -> None:
        await socket.receive()

    async def tells_and_hangs(socket: web.WebSocketResponse) -> None:
        await says((3, SUCCESS))(socket)
        await socket.receive()

    async with server(hangs, tmp_path):
        with pytest.raises(errors.Unreachable, match=r"no result within 0.1 s"):
            await run(tmp_path, seconds=0.1)
    async with server(tells_and_hangs, tmp_path):
        assert (await run(tmp_path, seconds=0.5)).exit_code == 0


async def test_a_missing_pod_is_typed(tmp_path: Path) -> None:
    async with server(says(), tmp_path), await connect(user_agent="t", kubeconfig=tmp_path / "kubeconfig") as client:
        with pytest.raises(errors.NotFound):
            await exec_in_pod(client, "n", "none", container="c", command=["ls"], timeout=30)
