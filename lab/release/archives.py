"""Archives whose bytes depend on nothing but their content, and on the release of zlib."""

import hashlib
import tempfile
from collections.abc import Mapping
from pathlib import Path

from lab.chart import CHART
from lab.images.archive import Entry, compress, tree, write_layer


def write_tgz(target: Path, entries: Mapping[str, Entry]) -> None:
    """Write a compressed tar; `entries` by path."""
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        plain = Path(folder) / "plain"
        write_layer(plain, entries)
        compress(plain, target)


def write_chart(target: Path) -> None:
    """Write the Helm chart as `helm install` takes it."""
    write_tgz(target, {f"{CHART.name}/{path}": entry for path, entry in tree(CHART).items()})


def sha256(path: Path) -> str:
    """Return the checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
