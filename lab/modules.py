"""The Go modules that pin what is built: those in lab/binaries, and one made for another Kubernetes version."""

import hashlib
import json
import shutil
from pathlib import Path

from lab.golang import download, run_go
from lab.layout import cache_dir
from lab.programs import ALL, OF_REAL_NODE, Program
from lab.versions import PINNED_KUBERNETES, KubernetesVersion

PINNED = Path(__file__).parent / "binaries"


def module_directory(program: Program, version: KubernetesVersion) -> Path:
    """Return the directory of the module that builds a program; it may have to be made (see `make_module`)."""
    if program.module != "kubernetes" or version == PINNED_KUBERNETES:
        return PINNED / program.module
    return cache_dir() / "modules" / f"kubernetes-{version}"


def fingerprint(directory: Path) -> str:
    """Return a digest that changes when the module would build something else; empty if there is no module yet."""
    sources = sorted((*directory.glob("go.mod"), *directory.glob("*.go")))
    return hashlib.sha256(b"".join(map(Path.read_bytes, sources))).hexdigest() if sources else ""


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
