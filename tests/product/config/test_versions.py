"""The version is the same wherever it is written, and has an entry in the changelog."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from mpijob_elastic import __version__

ROOT = Path(__file__).parents[3]
PAGES = ("README.md", "Dockerfile", "docs/install.md", "docs/commands.md")
# As in mpijob-elastic:1.2.3, mpijob-elastic-1.2.3.tgz, tag=1.2.3, newTag: 1.2.3.
SHOWN = re.compile(r"(?:mpijob[-_]elastic[:-]|tag=|newTag: |download/v|tag `v)(\d+\.\d+\.\d+)")


def test_program_package_and_manifests_agree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    kustomization = yaml.safe_load((ROOT / "config" / "base" / "kustomization.yaml").read_text())
    chart = yaml.safe_load((ROOT / "charts" / "mpijob-elastic" / "Chart.yaml").read_text())
    [image] = kustomization["images"]
    assert {project["version"], image["newTag"], chart["version"], chart["appVersion"]} == {__version__}


def test_the_newest_release_of_the_changelog_is_this_one() -> None:
    released = re.findall(r"^## \[(\d\S*)\] - \d{4}-\d\d-\d\d$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert released[0] == __version__


@pytest.mark.parametrize("page", PAGES)
def test_what_users_copy_names_this_version(page: str) -> None:
    assert set(SHOWN.findall((ROOT / page).read_text())) == {__version__}
