"""Puts what a release needs beside the image into dist/: `python -m lab.release [URL]`, as `make release` does."""

import sys
import tempfile
from pathlib import Path

from lab.build import Say
from lab.display import progress
from lab.errors import LabError
from lab.images.product.image import NAME, ROOT, VERSION
from lab.release import archives, krew, plugin, wheel

DIST = ROOT / "dist"
SUMS = "SHA256SUMS"
OF_IMAGE = (f"{NAME}-{VERSION}.oci.tar", f"{NAME}-{VERSION}.cdx.json")
# No such host exists (RFC 2606): with this address, the manifest works with local archives only.
NOWHERE = f"https://release.invalid/v{VERSION}"


def write(folder: Path, url: str, say: Say) -> list[Path]:
    """Write everything but the image, and return all files of the release. Raise LabError."""
    if not url.endswith(f"/v{VERSION}"):
        raise LabError(f"{url} is the address of another release: this is {VERSION}, so it must end with /v{VERSION}.")
    say("the wheel and the chart")
    made = [wheel.write(folder, say), folder / f"{NAME}-{VERSION}.tgz"]
    archives.write_chart(made[-1])
    for platform in plugin.PLATFORMS:
        made.append(folder / platform.archive(VERSION))
        with tempfile.TemporaryDirectory(dir=folder) as work:
            plugin.write(made[-1], platform, wheel=made[0], folder=Path(work), say=say)
    made.append(folder / krew.MANIFEST)
    made[-1].write_text(krew.manifest(folder, version=VERSION, url=url))
    return [*(folder / name for name in OF_IMAGE), *made]


def main(url: str = NOWHERE) -> None:
    """Write all of it with the checksums, and print these."""
    with progress() as say:
        files = write(DIST, url, say)
    sums = "".join(f"{archives.sha256(path)}  {path.name}\n" for path in sorted(files))
    (DIST / SUMS).write_text(sums)
    print(sums, end="")


if __name__ == "__main__":
    try:
        main(*filter(None, sys.argv[1:]))
    except LabError as error:
        sys.exit(f"release: {error}")
