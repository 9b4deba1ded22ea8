"""The archive of the kubectl plugin runs from where krew puts it, and says what it needs."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from lab.errors import LabError
from lab.images.archive import Entry, File
from lab.images.product.image import PROJECT
from lab.release import plugin

PROGRAM = b"import some_wheel\ndef main(): print('runs', some_wheel.NAME)\n"


def unpacked(tmp_path: Path) -> Path:
    """Write the archive of a small mpijob-elastic, and return the link to its script that krew would make."""
    wheel = tmp_path / "small.whl"
    with zipfile.ZipFile(wheel, "w") as made:
        made.writestr("mpijob_elastic/__init__.py", "")
        made.writestr("mpijob_elastic/__main__.py", PROGRAM)
    library: dict[str, Entry] = {"some_wheel.py": File(content=b"NAME = 'from lib'")}
    plugin.pack(tmp_path / "archive.tar.gz", libraries=[library], wheel=wheel)
    with tarfile.open(tmp_path / "archive.tar.gz") as archive:
        archive.extractall(tmp_path / "store", filter="data")
    (tmp_path / "bin").mkdir()
    link = tmp_path / "bin" / plugin.COMMAND
    link.symlink_to(tmp_path / "store" / plugin.COMMAND)
    return link


def test_it_runs_by_a_link_with_its_own_library(tmp_path: Path) -> None:
    done = subprocess.run([unpacked(tmp_path)], capture_output=True, text=True, check=True, cwd="/")
    assert done.stdout == "runs from lib\n"


def test_another_python_is_told_which_one_is_needed(tmp_path: Path) -> None:
    script = unpacked(tmp_path)
    older = f"import runpy, sys; sys.version_info = (3, 9, 2); runpy.run_path({str(script)!r})"
    done = subprocess.run([sys.executable, "-c", older], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"{plugin.COMMAND} needs Python 3.11 to 3.14; python3 is 3.")


def test_the_script_is_for_the_pythons_that_the_project_supports() -> None:
    assert PROJECT["project"]["requires-python"] == f">={plugin.PYTHONS[0]}"


def test_one_library_has_the_extension_modules_of_each_python() -> None:
    one, other = (
        {
            f"wheel/_c.cpython-{python}.so": File(content=python.encode()),
            "wheel/__init__.py": File(content=b"same"),
            "wheel-1.0.dist-info/METADATA": File(content=b"Name: wheel"),
            "wheel-1.0.dist-info/WHEEL": File(content=python.encode()),
            "wheel-1.0.dist-info/sboms/made.json": File(content=python.encode()),
            "bin/wheel": File(content=b"#!/this/machine"),
        }
        for python in ("311", "312")
    )
    assert set(plugin.merged([one, other])) == {
        "wheel/_c.cpython-311.so",
        "wheel/_c.cpython-312.so",
        "wheel/__init__.py",
        "wheel-1.0.dist-info/METADATA",
        "wheel-1.0.dist-info/sboms/made.json",
    }


def test_a_module_that_differs_between_pythons_stops_the_release() -> None:
    one, other = ({"wheel/_c.so": File(content=content)} for content in (b"1", b"2"))
    with pytest.raises(LabError, match=r"wheel/_c\.so is not the same for each Python"):
        plugin.merged([one, other])
