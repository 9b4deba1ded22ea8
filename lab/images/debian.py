"""Debian roots by mmdebstrap, from wherever this machine gets its own packages."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from lab.errors import LabError
from lab.images.artifacts import Making
from lab.images.tools import Tool, run

# Its PyTorch is 1.13, the newest that Horovod 0.28.1 compiles with out of the box.
SUITE = "bookworm"
MMDEBSTRAP = Tool(program="mmdebstrap", package="mmdebstrap")
_UNNEEDED = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*")


def make_root(
    making: Making, packages: Sequence[str], *, hooks: Sequence[str] = (), keep: bool = True
) -> None:
    """Write a root with these packages to the target as a tar, or throw it away after the hooks have run.

    A hook is a customize hook of mmdebstrap(1): shell that gets the root as $1. Raise LabError.
    """
    if os.geteuid() != 0:
        raise LabError(
            "to build this image one must be root: a Debian root is made, and programs are run in it."
        )
    options = making.folder / "apt.conf"
    options.write_text("\n".join(_apt_options()))
    # It mounts /proc and more below its root; so nobody else has these mounts, and none is left if
    # it is killed.
    command = ["unshare", "--mount", "mmdebstrap", "--mode=root", "--variant=minbase"]
    command += [f"--aptopt={options}", f"--include={','.join(packages)}"]
    command += [f"--dpkgopt=path-exclude={path}" for path in _UNNEEDED]
    # How this machine reaches its mirrors is nobody's business in an image.
    forget = 'rm -f "$1/etc/apt/sources.list" "$1/etc/apt/apt.conf.d/99mmdebstrap"'
    command += [f"--customize-hook={hook}" for hook in (*hooks, forget)]
    command += [f"--format={'tar' if keep else 'null'}", "--skip=output/dev"]
    target = str(making.target) if keep else "-"
    run(
        [*command, SUITE, target, *(f"deb {line}" for line in mirrors())],
        say=making.say,
        environment={"TMPDIR": str(making.folder)},
    )


def packages_of(path: Path) -> list[str]:
    """Read a file with one package a line."""
    return path.read_text().split()


def mirrors() -> list[str]:
    """Return where this machine gets the suite from, as `http://deb.debian.org/debian bookworm main`; may be empty."""
    wanted = (
        "--format",
        "$(REPO_URI) $(RELEASE) $(COMPONENT)",
        "Created-By: Packages",
        "Origin: Debian",
    )
    found = _output("apt-get", "indextargets", *wanted).splitlines()
    return list(dict.fromkeys(line for line in found if line.split()[1].partition("-")[0] == SUITE))


def _apt_options() -> list[str]:
    """Return the proxy settings and similar variables of this machine."""
    told = _output("apt-config", "dump", "Acquire").splitlines()
    return [line for line in told if re.match(r"Acquire::(https?(::|\s)|Check-)", line)]


def _output(*command: str) -> str:
    if shutil.which(command[0]) is None:
        return ""
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout
