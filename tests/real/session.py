"""docs/session.md: the commands that it shows with what they printed, and a shell that types them.

A command is a line behind `$ ` in a block of the language `console`; a backslash at its end
continues it behind `> `.
"""

import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.cluster import Cluster

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "session.md"
PATIENCE = 300.0  # seconds without a word of a command on a terminal
PROMPTS = (": ", "# ")  # of a question and of a shell
LONGEST = 300  # characters of a line of the page; the rest of a longer one hides what matters
_BLOCK = re.compile(r"(?<=^```console\n)(.*?)(?=^```$)", re.MULTILINE | re.DOTALL)
_TYPED = re.compile(r"^\$ ((?:.*\\\n> )*.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
_ESCAPES = re.compile(r"\x1b\[[?\d;]*[A-Za-z]|\r")


def shown(page: str) -> list[tuple[str, str]]:
    """Return each command of a page with its output."""
    return [
        (typed, output) for block in _BLOCK.findall(page) for typed, output in _TYPED.findall(block)
    ]


def renewed(page: str, outputs: Sequence[str]) -> str:
    """Return the page with these outputs, one for each command, in order; long lines are cut."""
    left = iter(map(_cut, outputs))

    def block(found: re.Match[str]) -> str:
        return _TYPED.sub(lambda typed: f"$ {typed[1]}\n{next(left)}", found[1])

    return _BLOCK.sub(block, page)


def _cut(output: str) -> str:
    lines = output.splitlines(keepends=True)
    return "".join(map(_cut_line, lines))


def _cut_line(line: str) -> str:
    if len(line) <= LONGEST:
        return line
    return f"{line[:100]} ...\n"


class Shell:
    """The terminal of a user with this kubeconfig, with our kubectl plugin in the PATH."""

    def __init__(self, cluster: Cluster, kubeconfig: Path, directory: Path) -> None:
        plugin = directory / "kubectl-mpijob_elastic"
        plugin.write_text(
            f'#!/bin/sh\nexec env PYTHONPATH={ROOT} {sys.executable} -m mpijob_elastic "$@"\n'
        )
        plugin.chmod(0o755)
        (directory / "kubectl").symlink_to(cluster.binaries.kubectl)
        path = f"{directory}:{os.environ['PATH']}"
        self._environment: Mapping[str, str] = {
            **os.environ,
            "PATH": path,
            "KUBECONFIG": str(kubeconfig),
        }
        self._code = 0

    def type(self, line: str, answers: Sequence[str] = ()) -> tuple[int, str]:
        """Return the exit code of a command, and all that it prints; on a terminal if it gets answers."""
        words = ["bash", "-c", f"(exit {self._code}); {line.replace(chr(10) + '> ', chr(10))}"]
        self._code, said = self._answered(words, answers) if answers else self._piped(words)
        return self._code, said

    def _piped(self, words: Sequence[str]) -> tuple[int, str]:
        done = subprocess.run(
            words,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout

    def _answered(self, words: Sequence[str], answers: Sequence[str]) -> tuple[int, str]:
        """Type each answer when there is a prompt."""
        ours, theirs = pty.openpty()
        with subprocess.Popen(
            words, env=self._environment, stdin=theirs, stdout=theirs, stderr=theirs
        ) as process:
            os.close(theirs)
            said, left = "", list(answers)
            while text := _read(ours):
                said += text
                if left and _ESCAPES.sub("", said).endswith(PROMPTS):
                    os.write(ours, f"{left.pop(0)}\n".encode())
        os.close(ours)
        return process.returncode, _ESCAPES.sub("", said)


def _read(terminal: int) -> str:
    """Return what there is to read, "" at the end."""
    ready, _, _ = select.select([terminal], [], [], PATIENCE)
    assert ready, f"no word within {PATIENCE:.0f} s"
    try:
        time.sleep(0.1)  # so that a prompt comes whole
        return os.read(terminal, 65536).decode()
    except OSError:  # the other end is closed
        return ""
