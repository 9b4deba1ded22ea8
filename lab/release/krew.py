"""The plugin for krew, kubectl's package manager: an archive for each platform, and the manifest.

krew unpacks an archive and links one program of it. Ours is a script that starts the newest Python
that is there with the packages beside it: every package of requirements/runtime.txt, as wheels for
all Pythons at once. Their compiled modules have the Python in their names, and their other files
are the same. https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/
"""

import sys
import tempfile
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from lab.build import Say
from lab.errors import LabError
from lab.images.archive import Entry, File, compress, write_layer
from lab.images.product.image import NAME, ROOT, VERSION, WHEELS
from lab.images.tools import run
from lab.release.places import TAG, Places, sha256

PROGRAM: Final = "kubectl-mpijob_elastic"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
OLDEST_GLIBC = "2.28"
PACKAGES = "packages"
MANIFEST = f"{NAME}.yaml"
# krew links one program only, and messages name the other.
ALIAS = f"alias {NAME}='kubectl {NAME}'"


@dataclass(frozen=True)
class Platform:
    """A platform: `os` and `arch` as Go names them, `wheels` as uv does."""

    os: str
    arch: str
    wheels: str

    @property
    def file(self) -> str:
        """The name of its archive."""
        return f"{PROGRAM}-{VERSION}-{self.os}-{self.arch}.tar.gz"


# Packages that we need have no wheels for macOS on Intel, and no launcher of ours runs on Windows.
PLATFORMS = (
    Platform("linux", "amd64", "x86_64-manylinux_2_28"),
    Platform("linux", "arm64", "aarch64-manylinux_2_28"),
    Platform("darwin", "arm64", "aarch64-apple-darwin"),
)
_LAUNCHER = f"""#!/bin/sh
# Runs mpijob-elastic with the newest Python that is on the PATH. krew links to this file.
set -eu
self=$0
while [ -L "$self" ]; do
  target=$(readlink "$self")
  case $target in
    /*) self=$target ;;
    *) self=$(dirname "$self")/$target ;;
  esac
done
here=$(cd "$(dirname "$self")" && pwd)
known="import sys; sys.exit('%d.%d' % sys.version_info[:2] not in '{" ".join(PYTHONS)}'.split())"
for python in {" ".join(f"python{version}" for version in reversed(PYTHONS))} python3; do
  if command -v "$python" >/dev/null 2>&1 && "$python" -I -c "$known" 2>/dev/null; then
    exec "$python" -I "$here/run.py" "$@"
  fi
done
echo "{PROGRAM}: no Python {PYTHONS[0]} to {PYTHONS[-1]} is on the PATH; install one and try again" >&2
exit 1
"""
_RUN = f"""import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "{PACKAGES}"))
sys.argv[0] = "{NAME}"

from mpijob_elastic.__main__ import main

main()
"""


def write(target: Path, platform: Platform, wheel: Path, say: Say) -> None:
    """Write the archive of a platform, with our wheel. Raise LabError."""
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        trees = [Path(folder) / version for version in PYTHONS]
        for version, tree in zip(PYTHONS, trees, strict=True):
            _install(tree, platform, version, say)
        own = Path(folder) / "own"
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(own)
        files = merged([*trees, own])
        plain = Path(folder) / "plain"
        write_layer(plain, entries(files))
        compress(plain, target)


def _install(target: Path, platform: Platform, version: str, say: Say) -> None:
    command = [
        str(Path(sys.executable).parent / "uv"),
        "pip",
        "install",
        "--quiet",
        f"--python={sys.executable}",
        f"--target={target}",
        f"--python-platform={platform.wheels}",
        f"--python-version={version}",
        "--only-binary=:all:",
        "--require-hashes",
        "--no-compile",
        f"--requirement={WHEELS}",
    ]
    run(command, say=say)


def merged(trees: Iterable[Path]) -> dict[str, Path]:
    """Return the files of these folders by their paths, as one folder.

    Raise LabError where two differ. What is said of a wheel as a file, such as its tags, may differ:
    the first counts, and what lists its files, or names its installer, is left out.
    """
    found = dict[str, Path]()
    for tree in trees:
        for path in sorted(one for one in tree.rglob("*") if one.is_file()):
            name = str(path.relative_to(tree))
            if not _is_needed(name):
                continue
            known = found.setdefault(name, path)
            about = Path(name).parts[0].endswith(".dist-info")
            if not about and known is not path and known.read_bytes() != path.read_bytes():
                raise LabError(f"{name} is not the same for all Pythons")
    return found


def _is_needed(name: str) -> bool:
    parts = Path(name).parts
    if parts[0] in {"bin", ".lock"} or "__pycache__" in parts:
        return False
    return not (
        parts[0].endswith(".dist-info") and parts[-1] in {"RECORD", "INSTALLER", "REQUESTED"}
    )


def entries(files: Mapping[str, Path]) -> dict[str, Entry]:
    """Return the files of an archive, with these packages."""
    packages = {f"{PACKAGES}/{name}": File(content=path) for name, path in files.items()}
    return {
        **packages,
        PROGRAM: File(content=_LAUNCHER.encode(), mode=0o755),
        "run.py": File(content=_RUN.encode()),
        "LICENSE": File(content=ROOT / "LICENSE"),
    }


def manifest(archives: Sequence[tuple[Platform, Path]], places: Places) -> str:
    """Return the manifest for these archives."""
    description = (
        "Shows and changes elastic MPIJobs of mpi-operator v0.2.3, and installs the controller and\n"
        "the webhook that make them elastic: get, explain, scale, scaleout, scalein, submit, logs,\n"
        "dashboard and others.\n"
    )
    caveats = (
        f"Needs Python {PYTHONS[0]} to {PYTHONS[-1]} on the PATH; on Linux glibc {OLDEST_GLIBC} or newer.\n"
        "`kubectl mpijob-elastic status` says whether mpijob-elastic works in your cluster.\n"
        f"Messages and the dashboard name commands as `{NAME} ...`; make these work in your shell by\n"
        f"  {ALIAS}\n"
    )
    found: dict[str, Any] = {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": NAME},
        "spec": {
            "version": TAG,
            "homepage": places.pages.partition("/blob/")[0],
            "shortDescription": "Change the size of running MPIJobs",
            "description": _Block(description),
            "caveats": _Block(caveats),
            "platforms": [_platform(platform, path, places) for platform, path in archives],
        },
    }
    return yaml.dump(found, Dumper=_Dumper, sort_keys=False, allow_unicode=True)


class _Block(str):
    """A text of several lines, which people read in the manifest."""


class _Dumper(yaml.SafeDumper):
    pass


_Dumper.add_representer(
    _Block,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style="|"),
)


def _platform(platform: Platform, archive: Path, places: Places) -> dict[str, Any]:
    return {
        "selector": {"matchLabels": {"os": platform.os, "arch": platform.arch}},
        "uri": places.download(archive.name),
        "sha256": sha256(archive),
        "bin": PROGRAM,
    }
