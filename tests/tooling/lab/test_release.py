"""The files of a release depend on their content only."""

import filecmp
import tarfile
from pathlib import Path

from lab import release
from lab.chart import CHART


def test_two_charts_have_the_same_bytes_and_are_what_helm_reads(tmp_path: Path) -> None:
    one, other = tmp_path / "one.tgz", tmp_path / "other.tgz"
    release.write_chart(one)
    release.write_chart(other)
    assert release.sha256(one) == release.sha256(other)
    with tarfile.open(one) as archive:
        archive.extractall(tmp_path, filter="data")
    files = {str(path.relative_to(CHART)) for path in CHART.rglob("*") if path.is_file()}
    unpacked = tmp_path / CHART.name
    assert {
        str(path.relative_to(unpacked)) for path in unpacked.rglob("*") if path.is_file()
    } == files
    assert filecmp.cmpfiles(CHART, unpacked, files, shallow=False)[1:] == ([], [])
    assert "Chart.yaml" in files


def test_two_wheels_have_the_same_bytes(tmp_path: Path) -> None:
    one, other = (
        release.sha256(release.write_wheel(tmp_path / name, print)) for name in ("one", "other")
    )
    assert one == other
