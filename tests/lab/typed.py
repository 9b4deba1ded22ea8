"""Our commands as a user types them."""

import asyncio
import sys
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from typer.testing import CliRunner

from mpijob_elastic.cli import app, exit_codes, rights
from mpijob_elastic.kube.errors import KubeError
from tests.lab.waiting import PATIENCE

ROOT = Path(__file__).parents[2]


class Typed:
    """The commands of somebody with this kubeconfig, on jobs of one namespace."""

    def __init__(self, kubeconfig: Path, namespace: str) -> None:
        self._options = (f"--namespace={namespace}", f"--kubeconfig={kubeconfig}")

    async def run(self, name: str, *words: str) -> tuple[int, str]:
        """Return the exit code, and all that the command prints; in this process, which has imported what it needs."""
        done = await asyncio.to_thread(
            CliRunner().invoke, app, [*name.split(), *self._options, *words]
        )
        if isinstance(done.exception, KubeError):
            said = rights.missing_right(done.exception) or str(done.exception)
            return exit_codes.of(done.exception), f"{done.output}mpijob-elastic: {said}"
        if done.exception and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.exit_code, done.output

    async def refused(self, *words: str) -> str:
        """Run what must be refused with one line; return that."""
        code, printed = await self.run(*words)
        assert code == 1, printed
        [line] = printed.splitlines()
        assert line.startswith("mpijob-elastic: ")
        return line.removeprefix("mpijob-elastic: ")

    @asynccontextmanager
    async def running(
        self, name: str, *words: str, terminal: int | None = None
    ) -> AsyncIterator[Process]:
        """Give a process of the command while it runs; both its outputs are one. terminal: what it reads from."""
        async with program(name, *self._options, *words, stdin=terminal) as process:
            yield process


@asynccontextmanager
async def program(
    *words: str, stdin: int | None = None, stdout: int = PIPE, env: Mapping[str, str] | None = None
) -> AsyncIterator[Process]:
    """Give a process of our program while it runs; both its outputs are one."""
    command = (sys.executable, "-m", "mpijob_elastic", *words)
    process = await asyncio.create_subprocess_exec(
        *command, cwd=ROOT, env=env, stdin=stdin, stdout=stdout, stderr=STDOUT
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def said(process: Process, what: str) -> str:
    """Return what a process prints up to a line with these words."""
    assert process.stdout is not None
    printed = ""
    async with asyncio.timeout(PATIENCE):
        async for line in process.stdout:
            printed += line.decode()
            if what in line.decode():
                return printed
    raise AssertionError(f"no line with {what!r} in {printed}")
