"""The image `mpijob-elastic`: its layers, and what its containers run."""

import hashlib
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any, Final

from lab.images.archive import Entry, File, tree, write_layer
from lab.images.artifacts import Artifact, Making
from lab.images.oci import Settings, write_image
from lab.images.product import debian
from lab.images.product.python import PACKAGES, PROGRAM, STANDARD, Python
from lab.images.tools import run

ROOT = Path(__file__).parents[3]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
NAME: Final = "mpijob-elastic"
VERSION: str = PROJECT["project"]["version"]
REFERENCE = f"{NAME}:{VERSION}"
WHEELS = ROOT / "requirements" / "runtime.txt"
SOURCES = (
    *PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"],
    "pyproject.toml",
    "README.md",
    "LICENSE",
)
SETTINGS = Settings(
    entrypoint=(NAME,),
    command=("--help",),
    environment={"PYTHONDONTWRITEBYTECODE": "1"},
    user="65532:65532",  # by number, so that Kubernetes can check that it is not root
    labels={
        "org.opencontainers.image.title": NAME,
        "org.opencontainers.image.version": VERSION,
        "org.opencontainers.image.licenses": PROJECT["project"]["license"],
    },
)
_UNNEEDED = "usr/lib/*-linux-gnu/gconv"  # 8 MB of tables for character sets other than UTF-8
# Kubernetes passes on the number of the user only, and a user who is not listed gets the group 0.
_CONFIGURATION: dict[str, Entry] = {
    "etc/passwd": File(content=b"root:x:0:0:root:/:\nnonroot:x:65532:65532:nonroot:/:\n"),
    "etc/group": File(content=b"root:x:0:\nnonroot:x:65532:\n"),
    "etc/nsswitch.conf": File(content=b"hosts: files dns\n"),
}
_SCRIPT = f"#!/{PROGRAM}\nimport sys\nfrom mpijob_elastic.__main__ import main\nsys.exit(main())\n"


def artifact() -> Artifact:
    """Return the image."""
    return Artifact(
        name=NAME,
        doing="packing mpijob-elastic",
        seconds=40,
        recipe=(_digest_of_sources(), _SCRIPT, REFERENCE, repr(SETTINGS), _recipe()),
        needs=(system(), wheels()),
        make=_pack,
    )


def system() -> Artifact:
    """Return the layer of Python and its libraries."""
    return Artifact(
        name="debian-python",
        doing="unpacking Python from Debian",
        seconds=30,
        recipe=(debian.LOCK.read_text(), _UNNEEDED, _recipe()),
        tools=debian.TOOLS,
        make=_unpack,
    )


def wheels() -> Artifact:
    """Return the layer of the packages that mpijob-elastic needs."""
    return Artifact(
        name="python-packages",
        doing="installing the locked wheels",
        seconds=60,
        recipe=(WHEELS.read_text(), _recipe()),
        needs=(system(),),
        make=lambda making: _install(making, "--require-hashes", f"--requirement={WHEELS}"),
    )


def _unpack(making: Making) -> None:
    root = making.folder / "root"
    root.mkdir()
    lock = debian.Lock.parse(debian.LOCK.read_text())
    debian.unpack(lock, root, folder=making.folder, say=making.say)
    for path in root.glob(_UNNEEDED):
        shutil.rmtree(path)
    Python(root=root, say=making.say).compile(STANDARD)
    write_layer(making.target, {**tree(root), **_CONFIGURATION})


def _install(making: Making, *requirements: str, extra: dict[str, Entry] | None = None) -> None:
    """Write the layer of what these arguments of pip install."""
    root = making.folder / "root"
    root.mkdir()
    run(
        ["tar", f"--directory={root}", "--extract", f"--file={making.needs[system().name]}"],
        say=making.say,
    )
    python = Python(root=root, say=making.say)
    python.install(*requirements)
    python.compile(PACKAGES)
    write_layer(making.target, {**tree(root, below=PACKAGES), **(extra or {})})


def _pack(making: Making) -> None:
    wheel = making.folder / "wheel"
    build = [sys.executable, "-m", "hatchling", "build", "--target=wheel", f"--directory={wheel}"]
    run(build, say=making.say, directory=ROOT)
    layer = making.folder / "program"
    script: dict[str, Entry] = {f"usr/local/bin/{NAME}": File(content=_SCRIPT.encode(), mode=0o755)}
    ours = Making(target=layer, needs=making.needs, folder=making.folder, say=making.say)
    _install(ours, "--no-deps", "--no-index", f"--find-links={wheel}", NAME, extra=script)
    layers = [*making.needs.values(), layer]
    write_image(making.target, reference=REFERENCE, layers=layers, settings=SETTINGS, compress=True)


def _recipe() -> str:
    """Return our own code, for it decides what comes out as well."""
    return "".join(
        (Path(__file__).parent / name).read_text()
        for name in ("debian.py", "python.py", "image.py")
    )


def _digest_of_sources() -> str:
    found = hashlib.sha256()
    for path in sorted(path for name in SOURCES for path in _files(ROOT / name)):
        found.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return found.hexdigest()


def _files(path: Path) -> list[Path]:
    return (
        [one for one in path.rglob("*") if one.is_file() and one.suffix != ".pyc"]
        if path.is_dir()
        else [path]
    )
