"""The image that an installation runs, made from nothing: it downloads the locked packages again."""

import os
from pathlib import Path

import pytest

from lab.images.artifacts import Store
from lab.images.oci import digest, read_layers
from lab.images.product import image
from lab.images.product.debian import TOOLS


@pytest.fixture
def tools() -> None:
    """Skips the test where the image cannot be built."""
    if missing := sorted(tool.package for tool in TOOLS if tool.find() is None):
        pytest.skip(f"no image here: apt-get install --no-install-recommends {' '.join(missing)}")


@pytest.mark.timeout(900)
@pytest.mark.usefixtures("tools")
def test_two_builds_have_one_digest_and_neither_a_shell_nor_pip(tmp_path: Path) -> None:
    one, other = (
        build(tmp_path / name, umask) for name, umask in (("one", 0o022), ("other", 0o077))
    )
    assert digest(one) == digest(other)
    files = {entry.name for layer in read_layers(one) for entry in layer}
    programs = {path.name for path in map(Path, files) if path.parent.name in {"bin", "sbin"}}
    assert {"python3.11", image.NAME} <= programs
    assert not programs & {"sh", "bash", "dash", "busybox", "apt-get", "dpkg", "pip", "pip3"}
    assert not [path for path in files if "/pip/" in path or "/ensurepip/" in path]


def build(folder: Path, umask: int) -> Path:
    """Build the image with a cache of its own, and return its archive."""
    before = os.umask(umask)
    try:
        return Store(folder).ensure(image.artifact(), lambda _: None)
    finally:
        os.umask(before)
