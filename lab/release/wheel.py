"""The wheel."""

import shutil
import sys
import tempfile
from pathlib import Path

from lab.build import Say
from lab.images.product.image import ROOT, SOURCES, VERSION
from lab.images.tools import run
from lab.release.places import TAG, Places

NAME = f"mpijob_elastic-{VERSION}-py3-none-any.whl"


def urls(places: Places) -> str:
    """Return the table of links for pyproject.toml; "" if nobody knows them.

    The names are those that PyPI knows:
    https://packaging.python.org/en/latest/specifications/well-known-project-urls/
    """
    if not places.home:
        return ""
    links = {
        "Homepage": places.home,
        "Documentation": f"{places.pages}/docs/index.md",
        "Source": places.home,
        "Issues": f"{places.home}/issues",
        "Changelog": f"{places.pages}/CHANGELOG.md",
        "Download": f"{places.home}/releases/tag/{TAG}",
    }
    rows = "".join(f'{name} = "{link}"\n' for name, link in links.items())
    return f"\n[project.urls]\n{rows}"


def write(folder: Path, places: Places, say: Say) -> Path:
    """Write the wheel into a folder, and return its path. Raise LabError.

    For hatchling every entry is of SOURCE_DATE_EPOCH, or of 2020, whenever it is built.
    """
    with tempfile.TemporaryDirectory() as sources:
        for name in SOURCES:
            _copy(ROOT / name, Path(sources) / name)
        with (Path(sources) / "pyproject.toml").open("a") as project:
            project.write(urls(places))
        command = [
            sys.executable,
            "-m",
            "hatchling",
            "build",
            "--target=wheel",
            f"--directory={folder.resolve()}",
        ]
        run(command, say=say, directory=Path(sources))
    return folder / NAME


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        return
    shutil.copyfile(source, target)
