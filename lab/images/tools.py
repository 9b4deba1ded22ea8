"""Programs that make images: one message names all that are missing; the output of one that runs goes to a log."""

import os
import re
import shutil
import struct
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.build import Say
from lab.errors import LabError

TAIL = 15  # lines that an error shows
# What mmdebstrap tells of itself, and how far a Makefile of cmake is.
_PHASES = "running|downloading|extracting|installing|cleaning|creating"
_TELLING = re.compile(rf"I: (?P<phase>(?:{_PHASES}) [a-z].*?)\.*$|\s*(?P<percent>\[ *\d+%\])")
_INTERPRETER = 3  # PT_INTERP, elf(5)


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A program and the Debian package that has it; `fits` returns True if a found program can be used."""

    program: str
    package: str
    fits: Callable[[Path], bool] = lambda _: True

    def find(self) -> Path | None:
        """Return where it is."""
        found = shutil.which(self.program)
        return Path(found) if found and self.fits(Path(found)) else None

    def path(self) -> Path:
        """Return where it is; raise LabError that says what to install."""
        check_tools([self])
        found = self.find()
        assert found is not None
        return found


def check_tools(tools: Sequence[Tool]) -> None:
    """Raise LabError with the one line that installs all that is missing."""
    missing = sorted({tool.package for tool in tools if tool.find() is None})
    if missing:
        sudo = "" if os.geteuid() == 0 else "sudo "
        install = f"{sudo}apt-get install --no-install-recommends {' '.join(missing)}"
        raise LabError(
            f"to build the image, programs are missing. Run `{install}` (Debian, Ubuntu) and try again."
        )


def is_static(path: Path) -> bool:
    """Tell whether a program runs without any library: an ELF file (64 bits, as on amd64 and arm64) with no loader."""
    data = path.read_bytes()
    if data[:6] != b"\x7fELF\x02\x01":
        return False
    (offset,) = struct.unpack_from("<Q", data, 0x20)
    size, count = struct.unpack_from("<HH", data, 0x36)
    kinds = [struct.unpack_from("<I", data, offset + index * size)[0] for index in range(count)]
    return _INTERPRETER not in kinds


def run(
    command: Sequence[str],
    *,
    say: Say,
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
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
                match = _TELLING.match(line)
                told = match and (match["phase"] or match["percent"])
                if told and told != last:
                    say(told)
                    last = told
        except BaseException:
            process.terminate()
            raise
    if process.returncode:
        output = "\n".join(tail)
        raise LabError(f"`{command[0]}` ended with {process.returncode}:\n{output}")
