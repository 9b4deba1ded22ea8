"""Put what a release needs beside the image into dist/: `python -m lab.release`, as `make release` does.

No file depends on the time, the user or the machine, so two builds have the same checksums
(SHA256SUMS).
"""

import hashlib
import sys
import tempfile
from pathlib import Path

import yaml

from lab.build import Say
from lab.chart import CHART
from lab.display import progress
from lab.errors import LabError
from lab.images.archive import compress, tree, write_layer
from lab.images.product.image import NAME, ROOT, VERSION
from lab.images.tools import run

DIST = ROOT / "dist"
SUMS = "SHA256SUMS"
OF_IMAGE = (f"{NAME}-{VERSION}.oci.tar", f"{NAME}-{VERSION}.cdx.json")
# Helm finds a chart by its own version, which is one of SemVer.
CHART_FILE = f"{NAME}-{yaml.safe_load((CHART / 'Chart.yaml').read_text())['version']}.tgz"
WHEEL = f"mpijob_elastic-{VERSION}-py3-none-any.whl"


def write_wheel(folder: Path, say: Say) -> Path:
    """Write the wheel into a folder, and return its path. Raise LabError.

    For hatchling every entry is of SOURCE_DATE_EPOCH, or of 2020, whenever it is built.
    """
    command = [
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "--target=wheel",
        f"--directory={folder}",
    ]
    run(command, say=say, directory=ROOT)
    return folder / WHEEL


def write_chart(target: Path) -> None:
    """Write the Helm chart as `helm install` takes it."""
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        plain = Path(folder) / "plain"
        write_layer(plain, {f"{CHART.name}/{path}": entry for path, entry in tree(CHART).items()})
        compress(plain, target)


def sha256(path: Path) -> str:
    """Return the checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main() -> None:
    """Write wheel and chart, and the checksums of these and the image; print the checksums."""
    with progress() as say:
        say("the wheel and the chart")
        files = [
            write_wheel(DIST, say),
            DIST / CHART_FILE,
            *(DIST / name for name in OF_IMAGE),
        ]
        write_chart(files[1])
    sums = "".join(f"{sha256(path)}  {path.name}\n" for path in sorted(files))
    (DIST / SUMS).write_text(sums)
    print(sums, end="")


if __name__ == "__main__":
    try:
        main()
    except LabError as error:
        sys.exit(f"release: {error}")
