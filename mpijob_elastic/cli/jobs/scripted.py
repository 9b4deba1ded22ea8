"""`scaleout --script` and `scalein --script`: run a shell command in the launcher's container.

The command uses the user's own right to exec. A scale-in runs the script before workers leave, a
scale-out once all workers train. An impossible request is refused before anything runs: the change
is tried as a dry run, and a scale-out first runs an empty script. Ranks are looked for in workers
only, so a process that a script starts in the launcher does not count as a rank.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace

from mpijob_elastic.cli import rights
from mpijob_elastic.cli.connection import reached
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.jobs import pods, write_change
from mpijob_elastic.cli.jobs.pods import NotStarted
from mpijob_elastic.cli.jobs.size_request import SizeRequest, size_decision
from mpijob_elastic.cli.jobs.snapshot import Snapshot
from mpijob_elastic.cli.jobs.write_change import Patience
from mpijob_elastic.cli.target import Where
from mpijob_elastic.install import Refused
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.exec import exec_in_pod
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.model.pod import Launcher
from mpijob_elastic.telemetry.terminal import say

# The least seconds that a script gets, however long the job took.
LEAST = 5.0


@dataclass(frozen=True, kw_only=True)
class Script:
    """A command for the shell, with variables."""

    #: A shell command line, "" for no script.
    text: str
    #: Environment variables, by name.
    env: Mapping[str, str]

    @property
    def command(self) -> list[str]:
        """The command that runs in the container."""
        return [
            "env",
            *(f"{name}={value}" for name, value in self.env.items()),
            "/bin/sh",
            "-c",
            self.text,
        ]


async def scale(
    where: Where, job: str, asked: SizeRequest, patience: Patience, script: Script
) -> Exit:
    """Change the size as requested, and run the script if the script has a text.

    Raises `errors.KubeError`.
    """
    until = time.monotonic() + patience.seconds
    decide = size_decision(asked, waits=patience.wait)
    if not script.text:
        return await write_change.change(where, job, decide, patience)
    async with reached(where) as (client, namespace):
        begun = await write_change.write(client, namespace, job, decide, dry_run=True)
        snapshot, tried = begun.snapshot, begun.change
        launcher, kept = await _running(client, snapshot), f"{snapshot.view.name} was not changed"
        if not asked.grows and tried.patch is None:
            say("The script was not run: no worker has to leave.", err=True)
        else:
            first = replace(script, text=":") if asked.grows else script
            if why := await _failure(client, launcher, first, seconds=patience.seconds, so=kept):
                raise Refused(why)
        left = replace(patience, seconds=_left(until))
        same = write_change.same_decision(decide, tried.says, since="the script began")
        end = await write_change.carry_out(client, namespace, job, same, left)
        if not asked.grows:
            return end
        if end is not Exit.DONE:
            say("The script was not run.", err=True)
            return end
        kept = f"{snapshot.view.name} keeps its new size"
        why = await _failure(client, launcher, script, seconds=_left(until), so=kept)
        say(*([why] if why else ()), err=True)
        return Exit.OTHERWISE if why else Exit.DONE


async def _running(client: ApiReader, snapshot: Snapshot) -> Launcher:
    """Return the launcher. Raises NotStarted while no launcher runs."""
    found = await pods.find(client, snapshot.job)
    if found and found.started and not found.ended:
        return found.launcher
    name = found.launcher.ref.name if found else ""
    why = f"{name} has ended" if found and found.started else found.waits if found else ""
    raise NotStarted(f"{why or pods.absent(snapshot.job)}; --script needs a launcher that runs")


async def _failure(
    client: ApiReader, launcher: Launcher, script: Script, *, seconds: float, so: str
) -> str:
    """Run a script and print its output; return how the script failed, "" if it succeeded.

    so: the state of the job after a failure, in words. Raises Unreachable if it is unknown how the
    script ended.
    """
    pod, lines = launcher.ref, _Lines()
    goes_on = f"{so}, and what was begun in {pod.name} may go on"
    try:
        result = await exec_in_pod(
            client,
            pod.namespace,
            pod.name,
            container=launcher.container,
            command=script.command,
            timeout=seconds,
            tell=lines.add,
        )
    except errors.Unreachable as error:
        raise errors.Unreachable(f"{error}; {goes_on}") from error
    except errors.KubeError as error:
        return f"the script did not run: {rights.in_words(error)}; {so}"
    except asyncio.CancelledError:
        say(f"Interrupted: {goes_on}.", err=True)
        raise
    finally:
        lines.end()
    return (
        f"the script exited with {result.exit_code} in {pod.name}; {so}" if result.exit_code else ""
    )


def _left(until: float) -> float:
    return max(round(until - time.monotonic(), 1), LEAST)


class _Lines:
    """Prints whole lines to standard error as they come, without mixing the channels."""

    def __init__(self) -> None:
        self._rest: dict[int, bytes] = defaultdict(bytes)

    def add(self, channel: int, data: bytes) -> None:
        *lines, self._rest[channel] = (self._rest[channel] + data).split(b"\n")
        self._say(*lines)

    def end(self) -> None:
        """Print the rest of each channel that does not end with a line break."""
        self._say(*filter(None, self._rest.values()))
        self._rest.clear()

    @staticmethod
    def _say(*lines: bytes) -> None:
        say(*(line.decode(errors="replace").expandtabs() for line in lines), err=True)
