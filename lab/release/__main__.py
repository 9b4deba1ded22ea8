"""Put what a release needs beside the image into dist/: `python -m lab.release`."""

import argparse
import sys
from pathlib import Path

from lab.build import Say
from lab.display import progress
from lab.errors import LabError
from lab.images.product.image import NAME, VERSION
from lab.release import changelog, chart, krew, wheel
from lab.release.places import DIST, Places, sha256

SUMS = "SHA256SUMS"
NOTES = "RELEASE_NOTES.md"
OF_IMAGE = (f"{NAME}-{VERSION}.oci.tar", f"{NAME}-{VERSION}.cdx.json")


def main() -> None:
    """Write everything and its checksums; print these, and what was not said."""
    parser = argparse.ArgumentParser(prog="lab.release", description=__doc__)
    parser.add_argument(
        "--home-url", default="", help="the project's page, as https://github.com/..."
    )
    parser.add_argument("--image", default="", help="REPOSITORY/mpijob-elastic, without the tag")
    parser.add_argument("--artifact-hub-id", default="", help="the repositoryID of Artifact Hub")
    options = parser.parse_args()
    places = Places(
        home=options.home_url.rstrip("/"),
        image=options.image,
        artifact_hub_id=options.artifact_hub_id,
    )
    with progress() as say:
        files = write(places, say)
    files += [DIST / name for name in OF_IMAGE]
    sums = "".join(f"{sha256(path)}  {path.name}\n" for path in sorted(files))
    (DIST / SUMS).write_text(sums)
    print(sums, end="")
    for sentence in places.unsaid():
        print(sentence)


def write(places: Places, say: Say) -> list[Path]:
    """Write all but the image, the checksums and the notes; return what is to be published."""
    told = changelog.CHANGELOG.read_text()
    (DIST / NOTES).write_text(changelog.notes(VERSION, told, pages=places.pages))
    say("the wheel and the chart")
    packed = wheel.write(DIST, places, say)
    charts = DIST / chart.FILE
    chart.write(charts, places)
    texts = {
        "index.yaml": chart.index(charts, places),
        "artifacthub-repo.yml": chart.repository(places),
    }
    archives = []
    for platform in krew.PLATFORMS:
        say(f"the plugin for {platform.os} on {platform.arch}")
        krew.write(DIST / platform.file, platform, packed, say)
        archives.append((platform, DIST / platform.file))
    texts[krew.MANIFEST] = krew.manifest(archives, places)
    for name, text in texts.items():
        (DIST / name).write_text(text)
    return [packed, charts, *(path for _, path in archives), *(DIST / name for name in texts)]


if __name__ == "__main__":
    try:
        main()
    except (LabError, ValueError) as error:
        sys.exit(f"release: {error}")
