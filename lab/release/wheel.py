"""The wheel, which hatchling makes without the time of the build: every entry is of SOURCE_DATE_EPOCH, or of 2020."""

import sys
from pathlib import Path

from lab.build import Say
from lab.images.product.image import ROOT, VERSION
from lab.images.running import run

NAME = f"mpijob_elastic-{VERSION}-py3-none-any.whl"


def write(folder: Path, say: Say) -> Path:
    """Write the wheel into a folder, and return its path. Raise LabError."""
    run(
        [sys.executable, "-m", "hatchling", "build", "--target=wheel", f"--directory={folder}"], say=say, directory=ROOT
    )
    return folder / NAME
