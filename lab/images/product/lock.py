"""Writes requirements/debian.txt with the newest versions: `python -m lab.images.product.lock`."""

import tempfile
from datetime import UTC, datetime
from pathlib import Path

from lab.images.product.debian import ARCHITECTURES, LOCK, Lock, newest


def main() -> None:
    """Ask Debian once for each processor."""
    moment = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    packages = []
    for architecture in ARCHITECTURES:
        with tempfile.TemporaryDirectory() as folder:
            packages += newest(architecture, Path(folder), print)
    LOCK.write_text(Lock(moment=moment, packages=tuple(packages)).encode())


if __name__ == "__main__":
    main()
