"""Programs that must be installed before an image can be built: one message names all that are missing."""

import os
import shutil
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.errors import LabError

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
        raise LabError(f"to build the image, programs are missing. Run `{install}` (Debian, Ubuntu) and try again.")


def is_static(path: Path) -> bool:
    """Tell whether a program runs without any library: an ELF file (64 bits, as on amd64 and arm64) with no loader."""
    data = path.read_bytes()
    if data[:6] != b"\x7fELF\x02\x01":
        return False
    (offset,) = struct.unpack_from("<Q", data, 0x20)
    size, count = struct.unpack_from("<HH", data, 0x36)
    kinds = [struct.unpack_from("<I", data, offset + index * size)[0] for index in range(count)]
    return _INTERPRETER not in kinds
