"""Run a program for minutes: all output goes to a log, and the lines that show progress to the caller."""

import os
import re
import subprocess
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.build import Say
from lab.errors import LabError

TAIL = 15  # lines that an error shows
# What mmdebstrap tells of itself, and how far a Makefile of cmake is.
_PHASES = "running|downloading|extracting|installing|cleaning|creating"
_TELLING = re.compile(rf"I: (?P<phase>(?:{_PHASES}) [a-z].*?)\.*$|\s*(?P<percent>\[ *\d+%\])")


def run(
    command: Sequence[str], *, say: Say, environment: Mapping[str, str] | None = None, directory: Path | None = None
) -> None:
    """Run a program to its end, in `directory` or here; raise LabError with the end of its output if it fails.

    It is not killed with us but asked to end, for it may have mounts to undo.
    """
    tail: deque[str] = deque(maxlen=TAIL)
    with subprocess.Popen(
        command,
        cwd=directory,
        env={**os.environ, **(environment or {}), "LC_ALL": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        last = None
        try:
            for line in process.stdout:
                tail.append(line.rstrip())
                told = telling(line)
                if told and told != last:
                    say(told)
                    last = told
        except BaseException:
            process.terminate()
            raise
    if process.returncode:
        output = "\n".join(tail)
        raise LabError(f"`{command[0]}` ended with {process.returncode}:\n{output}")


def telling(line: str) -> str | None:
    """Return what a line of output says of progress."""
    match = _TELLING.match(line)
    return match and (match["phase"] or match["percent"])
