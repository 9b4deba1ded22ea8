"""The Go modules that pin what is built: those in lab/binaries, and one made for another Kubernetes version."""

import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from lab.errors import LabError
from lab.golang import download, run_go
from lab.layout import cache_dir
from lab.programs import ALL, OF_REAL_NODE, Program
from lab.versions import PINNED_KUBERNETES, KubernetesVersion

PINNED = Path(__file__).parent / "binaries"


@dataclass(frozen=True, kw_only=True)
class Completed:
    """A module that is built with a file of ours, which its release lacks."""

    #: With its version.
    module: str
    #: As in a go.sum.
    checksum: str
    #: The folder for it, to which the go.mod that needs it points.
    name: str
    #: The file, beside that go.mod, and its folder within the module.
    file: str
    folder: str


# By the module of ours that needs it. Volcano v1.15.1 uses a constant of the types of its own
# release, of which v1.14.0 was the newest to be had as a module. With a later one this can go.
COMPLETED = {
    "volcano": Completed(
        module="volcano.sh/apis@v1.14.0",
        checksum="h1:Rf8wzGFmgzbyg85GO0CxapDDEk/VM3D7QbjbI/sH+OQ=",
        name="apis",
        file="queue_allocation_gate.go",
        folder="pkg/apis/scheduling/v1beta1",
    )
}


def module_directory(program: Program, version: KubernetesVersion) -> Path:
    """Return the directory of the module that builds a program; it may have to be made (see `make_module`)."""
    if program.module != "kubernetes" or version == PINNED_KUBERNETES:
        return PINNED / program.module
    return cache_dir() / "modules" / f"kubernetes-{version}"


def fingerprint(directory: Path) -> str:
    """Return a digest that changes when the module would build something else; empty if there is no module yet."""
    sources = sorted((*directory.glob("go.mod"), *directory.glob("*.go")))
    return hashlib.sha256(b"".join(map(Path.read_bytes, sources))).hexdigest() if sources else ""


def prepared(program: Program, directory: Path) -> Path:
    """Return where Go builds a program of the module in `directory`.

    Raise LabError if what it needs beside it cannot be had.
    """
    lacking = COMPLETED.get(program.module)
    if lacking is None:
        return directory
    place = cache_dir() / "modules" / program.module
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    found = download(lacking.module, directory=place)
    if found["Sum"] != lacking.checksum:
        raise LabError(f"{lacking.module} has the checksum {found['Sum']}, not {lacking.checksum}")
    complete(lacking, directory, Path(found["Dir"]), place)
    return place


def complete(lacking: Completed, directory: Path, source: Path, place: Path) -> None:
    """Copy the module in `directory` to `place`, and beside it the one in `source` with its file."""
    for name in ("go.mod", "go.sum"):
        shutil.copyfile(directory / name, place / name)
    copy = place / lacking.name
    shutil.copytree(source, copy, copy_function=shutil.copyfile)
    # Go's module cache is read-only, and so are copies of its folders.
    for folder in (copy, *filter(Path.is_dir, copy.rglob("*"))):
        folder.chmod(0o755)
    shutil.copyfile(directory / lacking.file, copy / lacking.folder / lacking.file)


def make_module(directory: Path, version: KubernetesVersion) -> None:
    """Write the module that builds `version` of Kubernetes; raise LabError if there is no such release."""
    unfinished = directory.with_name(f"{directory.name}.new")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    found = download(f"k8s.io/kubernetes@{version}", directory=unfinished)
    released = json.loads(run_go("mod", "edit", "-json", found["GoMod"], directory=unfinished))
    packages = [
        program.package for program in (*ALL, *OF_REAL_NODE) if program.module == "kubernetes"
    ]
    (unfinished / "go.mod").write_text(_go_mod(version, released, packages))
    # Fills in everything that the packages need, so that each build can insist on what is written.
    run_go("list", "-mod=mod", "-deps", *packages, directory=unfinished)
    unfinished.rename(directory)


def _go_mod(
    version: KubernetesVersion, released: dict[str, list[dict[str, str]]], packages: list[str]
) -> str:
    # k8s.io/kubernetes requires its staging modules at v0.0.0, which exists in its own source tree
    # only.
    staging = [one["Path"] for one in released["Require"] if one["Version"] == "v0.0.0"]
    lines = [
        "module mpijob-elastic.local/lab/kubernetes",
        f"go {released['Go']}",
        f"require k8s.io/kubernetes {version}",
        *(f"tool {package}" for package in packages),
        *(f"replace {name} => {name} {version.staging}" for name in staging),
    ]
    return "\n".join(lines) + "\n"
