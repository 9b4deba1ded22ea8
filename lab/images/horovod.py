"""The image `horovod-elastic-pytorch`: Elastic Horovod with PyTorch on CPUs, and the example that trains.

Made from the files of its Dockerfile in docs/examples/elastic-pytorch: the packages into one layer;
Horovod, compiled in a root that is thrown away, into the second; train.py and progress.py, which
change often, into the third.
"""

import sys
from pathlib import Path
from typing import Final

from lab.images.archive import File, write_layer
from lab.images.artifacts import Artifact, Making
from lab.images.debian import MMDEBSTRAP, SUITE, make_root, packages_of
from lab.images.oci import Settings, write_image
from lab.images.tools import run

NAME: Final = "horovod-elastic-pytorch"
VERSION = "0.28.1"
REFERENCE = f"{NAME}:{VERSION}"
NAME_OF_SOURCE = f"horovod-{VERSION}.tar.gz"  # pip goes by it
FOLDER = Path(__file__).parents[2] / "docs" / "examples" / "elastic-pytorch"
SETTINGS = Settings(command=("python3", "/examples/train.py"), environment={"OMP_NUM_THREADS": "1"})
PACKAGES, BUILD_PACKAGES = FOLDER / "packages.txt", FOLDER / "build-packages.txt"
REQUIREMENTS, INSTALL, TRAIN = (
    FOLDER / "requirements.txt",
    FOLDER / "install-horovod.sh",
    FOLDER / "train.py",
)
# What train.py imports.
PROGRESS = FOLDER.parent / "progress.py"


def artifact() -> Artifact:
    """Return the image."""
    return Artifact(
        name=NAME,
        doing="packing the image",
        seconds=20,
        recipe=(TRAIN.read_text(), PROGRESS.read_text(), REFERENCE, repr(SETTINGS)),
        needs=(_packages(), _horovod()),
        make=_pack,
    )


def _pack(making: Making) -> None:
    examples = making.folder / "examples.tar"
    write_layer(
        examples,
        {
            "examples/train.py": File(content=TRAIN),
            "examples/progress.py": File(content=PROGRESS),
        },
    )
    layers = [*making.needs.values(), examples]
    write_image(making.target, reference=REFERENCE, layers=layers, settings=SETTINGS)


def _packages() -> Artifact:
    packages = packages_of(PACKAGES)
    return Artifact(
        name="debian-torch",
        doing="installing PyTorch from Debian",
        seconds=150,
        recipe=(SUITE, *packages),
        tools=(MMDEBSTRAP,),
        make=lambda making: make_root(making, packages),
    )


def _horovod() -> Artifact:
    return Artifact(
        name="horovod",
        doing="compiling Horovod",
        seconds=450,
        recipe=(
            SUITE,
            *(path.read_text() for path in (PACKAGES, BUILD_PACKAGES, REQUIREMENTS, INSTALL)),
        ),
        needs=(_source(),),
        tools=(MMDEBSTRAP,),
        make=_compile,
    )


def _compile(making: Making) -> None:
    (source,) = making.needs.values()
    environment = "PIP_NO_INDEX=1 PIP_FIND_LINKS=/build"
    hooks = [
        'mkdir "$1/build"',
        f"upload {source} /build/{NAME_OF_SOURCE}",
        f"copy-in {REQUIREMENTS} {INSTALL} /build",
        f'chroot "$1" sh -c "cd /build && {environment} ./{INSTALL.name} /installed"',
        f'tar --create --directory="$1/installed" --owner=0 --group=0 --sort=name --file={making.target} .',
    ]
    make_root(
        making, [*packages_of(PACKAGES), *packages_of(BUILD_PACKAGES)], hooks=hooks, keep=False
    )


def _source() -> Artifact:
    return Artifact(
        name="horovod-source",
        suffix=".tar.gz",
        doing="downloading Horovod's source",
        seconds=10,
        recipe=(REQUIREMENTS.read_text(),),
        make=_download,
    )


def _download(making: Making) -> None:
    options = (
        "--no-deps",
        "--no-binary=horovod",
        "--require-hashes",
        f"--requirement={REQUIREMENTS}",
    )
    run(
        [sys.executable, "-m", "pip", "download", f"--dest={making.folder}", *options],
        say=making.say,
    )
    (source,) = making.folder.iterdir()
    source.rename(making.target)
