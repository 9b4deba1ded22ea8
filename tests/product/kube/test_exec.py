"""The exec protocol against a server that speaks it, where a real one is hard to bring to the point."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from mpijob_elastic.kube import errors
from mpijob_elastic.kube.exec import ExecFailed, ExecResult, exec_in_pod
from tests.doubles.shells import (
    STATUS,
    STDERR,
    STDOUT,
    SUCCESS,
    Asked,
    Message,
    Shells,
    connected,
    failure,
    says,
)


async def run(shells: Shells, *, seconds: float = 30, limit: int = 100) -> ExecResult:
    async with connected(shells) as client:
        return await exec_in_pod(
            client, "n", "p", container="c", command=["ls", "-l"], timeout=seconds, limit=limit
        )


LATE = (
    (STDOUT, ""),
    (STDERR, ""),
    (STDOUT, "a"),
    (STDERR, "x"),
    (STATUS, ""),
    (STATUS, SUCCESS),
    (STDOUT, "b"),
)
EXIT_7 = failure("NonZeroExitCode", "command terminated with exit code 7", "7")


@pytest.mark.parametrize(
    ("messages", "result"),
    [
        pytest.param(
            LATE,
            ExecResult(stdout="ab", stderr="x", exit_code=0),
            id="in parts, some after the status",
        ),
        pytest.param(
            [(STATUS, EXIT_7)], ExecResult(stdout="", stderr="", exit_code=7), id="an exit code"
        ),
        pytest.param(
            [(STDOUT, "a" * 60), (STDERR, "b" * 40), (STATUS, SUCCESS)],
            ExecResult(stdout="a" * 60, stderr="b" * 40, exit_code=0),
            id="as long as the limit",
        ),
    ],
)
@pytest.mark.parametrize("protocol", ["v5.channel.k8s.io", "v4.channel.k8s.io"])
async def test_a_result(protocol: str, messages: list[Message], result: ExecResult) -> None:
    shells = Shells(says(*messages), protocol=protocol)
    assert await run(shells) == result
    assert shells.asked[0].query == "container=c&stdout=true&stderr=true&command=ls&command=-l"
    assert shells.asked[0].protocols == "v5.channel.k8s.io,v4.channel.k8s.io"


@pytest.mark.parametrize(
    ("messages", "error", "words"),
    [
        pytest.param(
            [(STATUS, failure("InternalError", "executable file not found"))],
            ExecFailed,
            "InternalError: executable file not found",
            id="it did not run",
        ),
        pytest.param(
            [(STATUS, failure("NonZeroExitCode", "no code", "?"))],
            ExecFailed,
            "no code",
            id="no exit code",
        ),
        pytest.param([(STATUS, "not JSON")], ExecFailed, "not JSON", id="no Status"),
        pytest.param(
            [(STDOUT, "a" * 60), (STDERR, "b" * 41), (STATUS, SUCCESS)],
            ExecFailed,
            "limit",
            id="too much output",
        ),
        pytest.param(
            [(STDOUT, "a"), (STATUS, "")],
            errors.Unreachable,
            "before the command did",
            id="the connection ends first",
        ),
    ],
)
async def test_a_command_without_a_result_is_an_error(
    messages: list[Message], error: type[errors.KubeError], words: str
) -> None:
    with pytest.raises(error, match=words):
        await run(Shells(says(*messages)))


async def test_time_is_bounded_and_a_result_already_there_is_kept() -> None:
    async def hangs(_: Asked) -> AsyncIterator[Message]:
        yield STDOUT, ""
        await asyncio.Event().wait()

    async def tells_and_hangs(_: Asked) -> AsyncIterator[Message]:
        yield STATUS, SUCCESS
        await asyncio.Event().wait()

    with pytest.raises(errors.Unreachable, match=r"no result within 0.1 s"):
        await run(Shells(hangs), seconds=0.1)
    assert (await run(Shells(tells_and_hangs), seconds=3.0)).exit_code == 0


async def test_output_is_told_as_it_comes_however_long_it_is() -> None:
    told: list[tuple[int, bytes]] = []
    shells = Shells(says((STDOUT, "a" * 60), (STDERR, "b" * 60), (STDOUT, "c"), (STATUS, EXIT_7)))
    async with connected(shells) as client:
        result = await exec_in_pod(
            *(client, "n", "p"),
            container="c",
            command=["ls"],
            timeout=30,
            limit=100,
            tell=lambda channel, data: told.append((channel, data)),
        )
    assert result == ExecResult(stdout="", stderr="", exit_code=7)
    assert told == [(STDOUT, b"a" * 60), (STDERR, b"b" * 60), (STDOUT, b"c")]
