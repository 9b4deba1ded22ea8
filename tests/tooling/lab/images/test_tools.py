"""Tools that must be installed."""

import sys
from pathlib import Path

import pytest

from lab.errors import LabError
from lab.images.tools import Tool, check_tools, is_static


def test_all_missing_packages_stand_in_one_line() -> None:
    missing = [Tool(program=f"no-such-{name}", package=name) for name in ("b", "a", "b")]
    with pytest.raises(LabError, match=r"apt-get install --no-install-recommends a b`"):
        check_tools([*missing, Tool(program="sh", package="dash")])


def test_a_program_that_does_not_fit_is_as_good_as_none() -> None:
    unfit = Tool(program="sh", package="better-shell", fits=lambda _: False)
    assert unfit.find() is None
    with pytest.raises(LabError, match="better-shell"):
        unfit.path()


def test_the_path_of_a_program_is_found() -> None:
    assert Tool(program="sh", package="dash").path().name == "sh"


def test_a_program_with_a_loader_is_not_static() -> None:
    assert not is_static(Path(sys.executable).resolve())


def test_a_program_without_a_loader_is_static(tmp_path: Path) -> None:
    # The same file, with the kind of each program header overwritten by PT_NULL.
    data = bytearray(Path(sys.executable).resolve().read_bytes())
    offset = int.from_bytes(data[0x20:0x28], "little")
    size, count = (int.from_bytes(data[at : at + 2], "little") for at in (0x36, 0x38))
    for index in range(count):
        data[offset + index * size : offset + index * size + 4] = bytes(4)
    program = tmp_path / "program"
    program.write_bytes(data)
    assert is_static(program)


def test_a_script_is_not_static(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    assert not is_static(script)
