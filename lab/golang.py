"""The Go tool: whether it is there, and how it is called so that nothing in a user's setting changes what is built."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from lab.errors import LabError

# From this release on, Go fetches the toolchain that a go.mod asks for by itself (https://go.dev/doc/toolchain).
OLDEST = (1, 21)
INSTALL = (
    "install Go 1.21 or newer: https://go.dev/doc/install (or `sudo apt install golang-go` on Debian 13, Ubuntu 24.04)"
)
TAIL = 15  # lines of its output that an error shows


def check_go() -> None:
    """Raise LabError, with what to install, if there is no Go that can build the programs."""
    if shutil.which("go") is None:
        raise LabError(f"Go is missing, which builds the lab's programs once: {INSTALL}.")
    version = run_go("env", "GOVERSION", directory=Path("/")).strip()
    match = re.match(r"go(\d+)\.(\d+)", version)
    if match is None or (int(match[1]), int(match[2])) < OLDEST:
        raise LabError(f"Go is too old ({version or 'before go1.17'}) to build the lab's programs: {INSTALL}.")


def run_go(*arguments: str, directory: Path) -> str:
    """Run the Go tool and return its standard output; raise LabError with the end of its complaint."""
    done = subprocess.run(
        ["go", *arguments], cwd=directory, env=_environment(), capture_output=True, text=True, check=False
    )
    if done.returncode:
        tail = "\n".join((done.stderr or done.stdout).splitlines()[-TAIL:])
        raise LabError(f"`go {' '.join(arguments)}` in {directory} ended with {done.returncode}:\n{tail}")
    return done.stdout


def download(module: str, *, directory: Path) -> dict[str, str]:
    """Fetch a module, with `@version` unless the directory's go.mod has it; return what Go says of it, `Dir` and `Sum`.

    Raise LabError if it cannot be had (https://go.dev/ref/mod#go-mod-download).
    """
    found: dict[str, str] = json.loads(run_go("mod", "download", "-json", module, directory=directory))
    return found


def _environment() -> dict[str, str]:
    # Debian's Go does not fetch toolchains unless told to; a user who sets GOTOOLCHAIN knows better.
    return {"GOTOOLCHAIN": "auto", **os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
