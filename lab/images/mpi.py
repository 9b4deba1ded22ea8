"""The image `elastic-mpi`: Open MPI 4.1 and 5.0, MPICH 5.0, mpi4py, and a program that trains with them.

Debian's Open MPI 4.1 is one layer, what PyPI has is the second: Open MPI 5 and MPICH 5 in folders of
their own, and mpi4py, which finds its library when it runs. The program, which changes often, is
the third.
"""

import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from lab.images.archive import Entry, File, Folder, write_layer
from lab.images.artifacts import Artifact, Making
from lab.images.debian import MMDEBSTRAP, SUITE, make_root
from lab.images.oci import Settings, write_image
from lab.images.tools import run

NAME: Final = "elastic-mpi"
VERSION = "1"
REFERENCE = f"{NAME}:{VERSION}"
ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "lab" / "training" / "mpi" / "train.py"
PROGRAM_IN_IMAGE = "/examples/train.py"
# What the program imports.
PROGRESS = ROOT / "docs" / "examples" / "progress.py"
REQUIREMENTS = tuple(
    ROOT / "requirements" / f"{name}.txt" for name in ("open-mpi", "mpich", "mpi4py")
)
# Open MPI 4.1.4. MPICH is not Debian's 4.0.2: there MPI_Finalize often hangs if ranks are on two nodes,
# whatever starts them (docs/records/elastic-mpi.md).
PACKAGES = ("openmpi-bin", "python3")
OPEN_MPI_5, MPICH_5 = "/opt/open-mpi-5", "/opt/mpich-5"
_FOLDERS = {"openmpi": OPEN_MPI_5, "mpich": MPICH_5}
_MPI4PY = "usr/local/lib/python3.11/dist-packages"
# A user without a name, as clusters give their pods; mpirun refuses to run as root.
SETTINGS = Settings(command=("sleep", "365d"), user="65532:65532")


def artifact() -> Artifact:
    """Return the image."""
    return Artifact(
        name=NAME,
        doing="packing the image of MPI",
        seconds=20,
        recipe=(PROGRAM.read_text(), PROGRESS.read_text(), REFERENCE, repr(SETTINGS)),
        needs=(_packages(), _wheels()),
        make=_pack,
    )


def _pack(making: Making) -> None:
    program = making.folder / "program.tar"
    write_layer(
        program,
        {
            PROGRAM_IN_IMAGE[1:]: File(content=PROGRAM),
            "examples/progress.py": File(content=PROGRESS),
        },
    )
    layers = [*making.needs.values(), program]
    write_image(making.target, reference=REFERENCE, layers=layers, settings=SETTINGS)


def _packages() -> Artifact:
    return Artifact(
        name="debian-mpi",
        doing="installing Open MPI from Debian",
        seconds=90,
        recipe=(SUITE, *PACKAGES),
        tools=(MMDEBSTRAP,),
        make=lambda making: make_root(making, PACKAGES),
    )


def _wheels() -> Artifact:
    return Artifact(
        name="wheels-mpi",
        doing="downloading Open MPI 5, MPICH 5 and mpi4py",
        seconds=20,
        recipe=(
            *(path.read_text() for path in REQUIREMENTS),
            *_FOLDERS.values(),
            _MPI4PY,
        ),
        make=_unpack,
    )


def _unpack(making: Making) -> None:
    # Those of the image's Python, whatever runs here.
    options = ["--no-deps", "--only-binary=:all:", "--python-version=3.11", "--require-hashes"]
    download = [sys.executable, "-m", "pip", "download", *options, f"--dest={making.folder}"]
    run([*download, *(f"--requirement={path}" for path in REQUIREMENTS)], say=making.say)
    entries: dict[str, Entry] = {}
    for wheel in sorted(making.folder.glob("*.whl")):
        entries.update(_installed(wheel))
    write_layer(making.target, entries)


def _installed(wheel: Path) -> Iterator[tuple[str, Entry]]:
    """Yield the files of a wheel where they belong: those of its prefix, and those that are Python's."""
    with zipfile.ZipFile(wheel) as files:
        for entry in files.infolist():
            mode = 0o755 if entry.external_attr >> 16 & 0o100 else 0o644
            top, _, below = entry.filename.partition("/")
            place = f"{_MPI4PY}/{entry.filename}"
            if top.endswith(".data"):
                place = f"{_FOLDERS[top.partition('-')[0]][1:]}/{below.removeprefix('data/')}"
            if entry.is_dir():
                yield place.rstrip("/"), Folder()
            else:
                yield place, File(content=files.read(entry), mode=mode)
