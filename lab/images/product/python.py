"""The image's own Python, run from its unpacked root on a machine whose libraries may be of another release.

It installs the wheels, so they are those for this Python, and compiles them, for a container's root
is read-only.
"""

import importlib.util
import shutil
from dataclasses import dataclass
from pathlib import Path

from lab.build import Say
from lab.errors import LabError
from lab.images.tools import run

PROGRAM = "usr/bin/python3.11"
STANDARD = "usr/lib/python3.11"
PACKAGES = "usr/local/lib/python3.11/dist-packages"
# What nobody loads: tests, and the definitions of every Kubernetes object, 60 MB when compiled.
_NOT_COMPILED = r"/tests?/|/kubernetes/(aio/)?client/(api|models)/"


@dataclass(frozen=True, kw_only=True)
class Python:
    """The Python of an unpacked root; all methods raise LabError with the end of the output."""

    root: Path
    say: Say

    def install(self, *requirements: str) -> None:
        """Install what these arguments of pip say: only wheels, for a source would run its code."""
        found = importlib.util.find_spec("pip")
        if found is None or not found.submodule_search_locations:
            raise LabError("pip is missing: run `make setup`.")
        target = self.root / PACKAGES
        options = (
            "--no-compile",
            "--no-cache-dir",
            "--disable-pip-version-check",
            "--root-user-action=ignore",
        )
        pip = found.submodule_search_locations[0]
        self.run(
            pip, "install", f"--target={target}", "--only-binary=:all:", *options, *requirements
        )
        # Only pip needs these, and they name this machine's paths.
        shutil.rmtree(target / "bin", ignore_errors=True)
        for record in target.glob("*.dist-info/RECORD"):
            record.unlink()

    def compile(self, folder: str) -> None:
        """Compile what a folder of the root holds; the result depends on nothing but the sources."""
        names = ("-s", str(self.root), "-p", "/", "-x", _NOT_COMPILED)
        self.run(
            "-m",
            "compileall",
            "-q",
            "--invalidation-mode=unchecked-hash",
            *names,
            str(self.root / folder),
        )

    def run(self, *arguments: str) -> None:
        """Run it with the loader and the libraries of its root, apart from this machine's packages."""
        loader = next(self.root.glob("lib/*-linux-gnu/ld-linux-*.so.*"))
        libraries = f"{loader.parent}:{self.root / 'usr/lib' / loader.parent.name}"
        program = (str(self.root / PROGRAM), "-I", "-B", *arguments)
        run([str(loader), "--inhibit-cache", "--library-path", libraries, *program], say=self.say)
