"""The Helm chart as `helm install` takes it, the index of its repository, and what Artifact Hub reads of both.

https://artifacthub.io/docs/topics/annotations/helm/, https://helm.sh/docs/topics/chart_repository/
"""

import tempfile
from pathlib import Path
from typing import Any

import yaml

from lab.chart import CHART
from lab.images.archive import Entry, File, compress, tree, write_layer
from lab.images.product.image import NAME, VERSION
from lab.release import changelog
from lab.release.places import Places, sha256

CHART_YAML, VALUES = CHART / "Chart.yaml", CHART / "values.yaml"
# Helm finds a chart by its own version, which is one of SemVer.
FILE = f"{NAME}-{yaml.safe_load(CHART_YAML.read_text())['version']}.tgz"
# Those of fixes are in the release notes: Helm keeps the chart in each release's Secret, which has an end.
LISTED = ("Breaking", "Added")


def metadata(places: Places) -> dict[str, Any]:
    """Return Chart.yaml, completed by what the sources do not say. Raise ValueError."""
    chart: dict[str, Any] = yaml.safe_load(CHART_YAML.read_text())
    text = changelog.section(VERSION, changelog.CHANGELOG.read_text())
    entries = [one for one in changelog.changes(text) if one.heading in LISTED]
    listed = [
        {"kind": changelog.KINDS[one.heading], "description": changelog.brief(one)}
        for one in entries
    ]
    annotations = chart["annotations"] | {
        "artifacthub.io/changes": _list(listed),
        "artifacthub.io/prerelease": str("-" in chart["version"]).lower(),
    }
    if places.image:
        annotations["artifacthub.io/images"] = _list([{"name": NAME, "image": places.reference}])
    if places.home:
        chart |= {"home": places.home, "sources": [places.home]}
        links = {
            "Install": "docs/install.md",
            "Changes": "CHANGELOG.md",
            "Compatibility": "docs/compatibility.md",
        }
        annotations["artifacthub.io/links"] = _list(
            [{"name": name, "url": f"{places.pages}/{page}"} for name, page in links.items()]
        )
    return chart | {"annotations": annotations}


def _list(items: list[dict[str, str]]) -> str:
    """Return YAML in the text of an annotation, as Artifact Hub reads it."""
    return yaml.safe_dump(items, sort_keys=False, allow_unicode=True, width=1000)


def write(target: Path, places: Places) -> None:
    """Write the chart.

    Raise ValueError if CHANGELOG.md has no entry for this version, or values.yaml no image.
    """
    described = yaml.safe_dump(metadata(places), sort_keys=False, allow_unicode=True)
    files: dict[str, Entry] = {f"{CHART.name}/{path}": one for path, one in tree(CHART).items()}
    files[f"{CHART.name}/{CHART_YAML.name}"] = File(content=described.encode())
    files[f"{CHART.name}/{VALUES.name}"] = File(content=_values(places).encode())
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        plain = Path(folder) / "plain"
        write_layer(plain, files)
        compress(plain, target)


def _values(places: Places) -> str:
    """Return values.yaml with the image of the release, where that is said. Raise ValueError.

    The text keeps its comments, which `helm show values` prints.
    """
    text = VALUES.read_text()
    if not places.image:
        return text
    default = f"\n  repository: {NAME}\n"
    if text.count(default) != 1:
        raise ValueError(f"{VALUES.name} has no single line `{default.strip()}`")
    return text.replace(default, f"\n  repository: {places.image}\n")


def index(chart: Path, places: Places) -> str:
    """Return index.yaml, which makes the folder of the chart, or its address, a repository."""
    at = f"{changelog.date(VERSION, changelog.CHANGELOG.read_text())}T00:00:00Z"
    described = metadata(places)
    address = places.download(chart.name) if places.home else chart.name
    entry = described | {"created": at, "digest": sha256(chart), "urls": [address]}
    found = {"apiVersion": "v1", "entries": {NAME: [entry]}, "generated": at}
    return yaml.safe_dump(found, sort_keys=False, allow_unicode=True)


def repository(places: Places) -> str:
    """Return artifacthub-repo.yml, which lies beside index.yaml.

    The id proves to Artifact Hub that the publisher owns the repository; without it the file is
    still valid. https://github.com/artifacthub/hub/blob/master/docs/metadata/artifacthub-repo.yml
    """
    identity = {"repositoryID": places.artifact_hub_id} if places.artifact_hub_id else {}
    return yaml.safe_dump({**identity, "ignore": []}, sort_keys=False)
