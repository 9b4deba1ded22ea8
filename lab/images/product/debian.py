"""Files of Debian packages, unpacked as they are: no script of a package runs, so neither root nor a shell is needed.

`apt-get` downloads the locked versions, with lists of its own beside those of this machine. Once
Debian has replaced a version, it comes from Debian's archive of the day of the lock.

`python -m lab.images.product.debian` locks the newest versions.
"""

import hashlib
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from lab import processes
from lab.build import Say
from lab.errors import LabError
from lab.images.debian import SUITE, mirrors
from lab.images.oci import architecture
from lab.images.tools import Tool, run

LOCK = Path(__file__).parents[3] / "requirements" / "debian.txt"
TOOLS = (Tool(program="apt-get", package="apt"), Tool(program="dpkg-deb", package="dpkg"))
# Python, the libraries that its modules and the wheels are linked with, the licence of libgcc-s1
# (gcc-12-base), and /etc/os-release for scanners (base-files).
PACKAGES = (
    *(
        "base-files",
        "gcc-12-base",
        "libbz2-1.0",
        "libc6",
        "libcrypt1",
        "libexpat1",
        "libffi8",
        "libgcc-s1",
        "liblzma5",
    ),
    *(
        "libpython3.11-minimal",
        "libpython3.11-stdlib",
        "libssl3",
        "libuuid1",
        "python3.11-minimal",
        "zlib1g",
    ),
)
ARCHITECTURES = ("amd64", "arm64")
_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
_DEBIAN = "http://deb.debian.org"
_DEFAULT = [f"{_DEBIAN}/debian {SUITE} main", f"{_DEBIAN}/debian-security {SUITE}-security main"]


@dataclass(frozen=True, kw_only=True)
class Package:
    """A Debian package of one architecture; `sha256` is that of its .deb."""

    architecture: str
    name: str
    version: str
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Lock:
    """All packages, and the moment when Debian had them, as 20261122T080000Z."""

    moment: str
    packages: tuple[Package, ...]

    @classmethod
    def parse(cls, text: str) -> "Lock":
        """Read the lock file: a comment that ends with the moment, then ARCHITECTURE NAME VERSION SHA256."""
        first, *lines = text.splitlines()
        fields = ("architecture", "name", "version", "sha256")
        packages = tuple(Package(**dict(zip(fields, line.split(), strict=True))) for line in lines)
        return cls(moment=first.split()[-1], packages=packages)

    def encode(self) -> str:
        """Return the text of the lock file."""
        lines = [
            f"{one.architecture} {one.name} {one.version} {one.sha256}" for one in self.packages
        ]
        return "\n".join(
            [f"# Written by lock.sh from Debian {SUITE} as of {self.moment}", *lines, ""]
        )

    def here(self) -> list[Package]:
        """Return the packages for this machine's processor; raise LabError if it has none."""
        found = [one for one in self.packages if one.architecture == architecture()]
        if not found:
            raise LabError(
                f"the image cannot be built for {architecture()}: {LOCK.name} locks {ARCHITECTURES}."
            )
        return found


def unpack(lock: Lock, root: Path, *, folder: Path, say: Say) -> None:
    """Download the packages of this machine's processor, verify them, and unpack them into `root`.

    Raise LabError.
    """
    packages = lock.here()
    try:
        found = _download(packages, mirrors() or _DEFAULT, folder=folder, say=say)
    except LabError:
        say("looking for replaced versions in Debian's archive")
        found = _download(packages, snapshot(lock.moment), folder=folder, say=say)
    status = (
        root / "var/lib/dpkg/status.d"
    )  # where scanners look for packages that no dpkg has installed
    status.mkdir(parents=True)
    for package in packages:
        archive = found[package.sha256]
        run(["dpkg-deb", "--extract", str(archive), str(root)], say=say)
        (status / package.name).write_text(processes.run("dpkg-deb", "--field", str(archive)))


def snapshot(moment: str) -> list[str]:
    """Return where Debian keeps what it had at a moment."""
    archive = "http://snapshot.debian.org/archive"
    return [
        f"{archive}/debian/{moment} {SUITE} main",
        f"{archive}/debian-security/{moment} {SUITE}-security main",
    ]


def newest(architecture: str, folder: Path, say: Say) -> list[Package]:
    """Return the newest version of each package. Raise LabError."""
    options = _updated(architecture, mirrors() or _DEFAULT, folder=folder, say=say)
    shown = processes.run("apt-cache", *options, "show", "--no-all-versions", *PACKAGES)
    stanzas = [
        dict(line.split(": ", 1) for line in one.splitlines() if ": " in line)
        for one in shown.split("\n\n")
    ]
    packages = {
        one["Package"]: Package(
            architecture=architecture,
            name=one["Package"],
            version=one["Version"],
            sha256=one["SHA256"],
        )
        for one in stanzas
        if one
    }
    return [packages[name] for name in PACKAGES]


def _download(
    packages: Sequence[Package], sources: Sequence[str], *, folder: Path, say: Say
) -> dict[str, Path]:
    """Return the verified .debs by their SHA-256."""
    options = _updated(packages[0].architecture, sources, folder=folder, say=say)
    wanted = [f"{one.name}={one.version}" for one in packages]
    run(["apt-get", *options, "download", *wanted], say=say, directory=folder)
    found = {hashlib.sha256(path.read_bytes()).hexdigest(): path for path in folder.glob("*.deb")}
    changed = sorted(one.name for one in packages if one.sha256 not in found)
    if changed:
        raise LabError(f"Debian serves other content than {LOCK.name} locks: {', '.join(changed)}.")
    return found


def _updated(architecture: str, sources: Sequence[str], *, folder: Path, say: Say) -> list[str]:
    """Read the package lists of `sources` into a folder, and return the options by which apt uses these only."""
    for part in ("state/lists/partial", "cache/archives/partial"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    (folder / "status").touch()
    (folder / "sources.list").write_text(
        "".join(f"deb [signed-by={_KEYRING}] {line}\n" for line in sources)
    )
    settings = {
        "APT::Architecture": architecture,
        "APT::Architectures": architecture,
        "APT::Sandbox::User": "",
        "Acquire::Languages": "none",
        "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
        "Dir::Etc::sourcelist": folder / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::State": folder / "state",
        "Dir::State::status": folder / "status",
        "Dir::Cache": folder / "cache",
    }
    options = [f"--option={name}={value}" for name, value in settings.items()]
    run(["apt-get", *options, "--error-on=any", "update"], say=say)
    return options


def main() -> None:
    """Write the lock file with the newest versions: ask Debian once for each processor."""
    moment = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    packages = []
    for one in ARCHITECTURES:
        with tempfile.TemporaryDirectory() as folder:
            packages += newest(one, Path(folder), print)
    LOCK.write_text(Lock(moment=moment, packages=tuple(packages)).encode())


if __name__ == "__main__":
    main()
