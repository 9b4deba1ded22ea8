"""The manifest of the plugin describes the archives that are there."""

import hashlib
from pathlib import Path

import pytest
import yaml

from lab.errors import LabError
from lab.release import __main__ as release
from lab.release import krew
from lab.release.plugin import PLATFORMS
from mpijob_elastic import __version__


def test_it_has_the_checksum_and_the_address_of_each_archive(tmp_path: Path) -> None:
    for platform in PLATFORMS:
        (tmp_path / platform.archive("1.2.3")).write_text(platform.arch + platform.os)
    found = yaml.safe_load(krew.manifest(tmp_path, version="1.2.3", url="https://host/v1.2.3"))
    assert (found["metadata"]["name"], found["spec"]["version"]) == ("mpijob-elastic", "v1.2.3")
    assert [one["selector"]["matchLabels"] for one in found["spec"]["platforms"]] == [
        {"os": "linux", "arch": "amd64"},
        {"os": "linux", "arch": "arm64"},
        {"os": "darwin", "arch": "arm64"},
    ]
    for one in found["spec"]["platforms"]:
        address, _, name = one["uri"].rpartition("/")
        assert address == "https://host/v1.2.3"
        assert hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() == one["sha256"]
        assert one["bin"] == "kubectl-mpijob_elastic"


def test_the_address_of_another_version_is_refused(tmp_path: Path) -> None:
    assert release.NOWHERE.endswith(f"/v{__version__}")
    with pytest.raises(LabError, match="is the address of another release"):
        release.write(tmp_path, "https://host/v0.0.1", print)
    assert not list(tmp_path.iterdir())
