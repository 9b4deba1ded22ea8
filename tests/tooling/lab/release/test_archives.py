"""Archives depend on their content only."""

import tarfile
from pathlib import Path

import yaml

from lab.chart import CHART
from lab.images.product.image import VERSION
from lab.release import archives, wheel


def test_two_charts_have_the_same_bytes_and_what_helm_reads(tmp_path: Path) -> None:
    one, other = tmp_path / "one.tgz", tmp_path / "other.tgz"
    archives.write_chart(one)
    archives.write_chart(other)
    assert archives.sha256(one) == archives.sha256(other)
    with tarfile.open(one) as archive:
        found = {name: archive.extractfile(name) for name in archive.getnames() if archive.getmember(name).isfile()}
        described = found["mpijob-elastic/Chart.yaml"]
        assert described is not None
        assert yaml.safe_load(described)["version"] == VERSION
    assert set(found) == {f"mpijob-elastic/{path.relative_to(CHART)}" for path in CHART.rglob("*") if path.is_file()}


def test_two_wheels_have_the_same_bytes(tmp_path: Path) -> None:
    one, other = (archives.sha256(wheel.write(tmp_path / name, print)) for name in ("one", "other"))
    assert one == other
