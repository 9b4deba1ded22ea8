"""The definitions of another project, out of its Go module."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from lab.cluster import Cluster
from lab.errors import LabError
from lab.golang import download

PATIENCE = 60.0  # seconds until the API server serves a definition
POLL = 0.1  # seconds


@dataclass(frozen=True, kw_only=True)
class Release:
    """A release of another project."""

    #: Its module with the version.
    module: str
    #: As in a go.sum.
    checksum: str
    #: The files of the definitions within the module.
    files: Sequence[str]


def source(release: Release, *, directory: Path) -> Path:
    """Return the folder of a release's files; the Go tool runs in `directory`, which no module may claim.

    Raise LabError if they cannot be had, or are not those that we know.
    """
    found = download(release.module, directory=directory)
    if found["Sum"] != release.checksum:
        raise LabError(f"{release.module} has the checksum {found['Sum']}, not {release.checksum}")
    return Path(found["Dir"])


def define(cluster: Cluster, release: Release, folder: Path) -> None:
    """Have the API server serve the definitions of a release, whose files are in `folder`. Raise LabError."""
    files = [folder / name for name in release.files]
    cluster.kubectl("apply", "--server-side", *(f"--filename={file}" for file in files))
    names = [yaml.safe_load(file.read_text())["metadata"]["name"] for file in files]
    deadline = time.monotonic() + PATIENCE
    while lacking := set(names) - _served(cluster):
        if time.monotonic() > deadline:
            raise LabError(f"{', '.join(sorted(lacking))} is not served after {PATIENCE:.0f} s.")
        time.sleep(POLL)


def _served(cluster: Cluster) -> set[str]:
    """Return what the API server serves, as PLURAL.GROUP; nothing while a server beside it does not answer."""
    try:
        return set(cluster.kubectl("api-resources", "-o", "name").split())
    except LabError:
        return set()
