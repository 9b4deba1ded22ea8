"""What is released: the chart, the image, the workflow, and one version in all of them."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab import chart
from lab.images.product import image as product
from mpijob_elastic import __version__, names
from mpijob_elastic.install import overlays
from mpijob_elastic.install.installer import InstallPlan


def test_what_is_generated_is_up_to_date() -> None:
    found = {path.name: path.read_text() for path in chart.GENERATED.iterdir()}
    assert found == chart.generated(), "run `make manifests`"


ROOT = Path(__file__).parents[3]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
IGNORED = (ROOT / ".dockerignore").read_text().splitlines()


@pytest.fixture
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def instructions(name: str) -> list[str]:
    return re.findall(rf"^{name} (.*)$", DOCKERFILE.replace("\\\n", " "), re.MULTILINE)


def test_what_is_downloaded_is_known_by_its_hash() -> None:
    downloads = [line for line in instructions("RUN") if '"install"' in line]
    assert len(downloads) == 2
    assert all({"--require-hashes", "--only-binary"} <= set(json.loads(line)) for line in downloads)
    [own] = [line for line in instructions("RUN") if " install " in line]
    assert "--no-index" in own


def test_it_runs_as_nobody_in_particular_and_without_a_shell(project: dict[str, Any]) -> None:
    assert instructions("USER") == ["65532:65532"]
    [entrypoint] = (json.loads(line) for line in instructions("ENTRYPOINT"))
    assert set(entrypoint) <= set(project["project"]["scripts"])


def test_every_package_of_the_wheel_gets_in(project: dict[str, Any]) -> None:
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    for package in packages:
        assert f"{package} {package}" in instructions("COPY")
        assert f"!{package}" in IGNORED


PAGES = (
    "README.md",
    "Dockerfile",
    "docs/install.md",
    "docs/upgrade.md",
    "docs/commands.md",
    "docs/development.md",
)
# As in mpijob-elastic:1.2.3, mpijob-elastic-1.2.3.tgz, tag=1.2.3, newTag: 1.2.3; 1.2.3.dev0 is before
# the release.
SHOWN = re.compile(
    r"(?:mpijob[-_]elastic[:-]|tag=|newTag: |download/v|tag `v)(\d+\.\d+\.\d+(?:\.dev\d+)?)"
)


def test_program_package_manifests_image_and_chart_agree(project: dict[str, Any]) -> None:
    kustomization = yaml.safe_load((ROOT / "config" / "base" / "kustomization.yaml").read_text())
    chart = yaml.safe_load((ROOT / "charts" / "mpijob-elastic" / "Chart.yaml").read_text())
    [image] = kustomization["images"]
    assert {project["project"]["version"], image["newTag"], chart["appVersion"]} == {__version__}
    assert chart["version"] == __version__.replace(".dev", "-dev.")
    ours = f"{names.PROGRAM}:{__version__}"
    containers = [
        container
        for overlay in overlays.Overlay
        for one in InstallPlan(overlays=(overlay,), jobs_namespaces=("a",)).manifests()
        if one["kind"] == "Deployment"
        for container in one["spec"]["template"]["spec"]["containers"]
    ]
    assert {one["image"] for one in containers} == {ours}
    assert ours == product.REFERENCE
    assert product.SETTINGS.labels["org.opencontainers.image.version"] == __version__


@pytest.mark.parametrize(
    "pattern",
    [
        # https://packaging.python.org/en/latest/specifications/version-specifiers/, normalized
        pytest.param(r"\d+\.\d+\.\d+(\.dev\d+)?", id="PEP 440"),
        # https://github.com/distribution/reference, the tag of an image
        pytest.param(r"\w[\w.-]{0,127}", id="an image's tag"),
    ],
)
def test_the_version_is_one_wherever_it_is_used(pattern: str) -> None:
    assert re.fullmatch(pattern, __version__)


def test_the_changelog_has_this_release_or_what_is_new_since_an_older_one() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text()
    released = re.findall(r"^## \[(\d\S*)\] - \d{4}-\d\d-\d\d$", changelog, re.MULTILINE)
    assert re.search(r"^## \[Unreleased\]$", changelog, re.MULTILINE)
    if ".dev" not in __version__:
        assert released[0] == __version__
        return
    newest, next_one = (
        tuple(map(int, version.split(".")))
        for version in (released[0], __version__.partition(".dev")[0])
    )
    assert newest < next_one


@pytest.mark.parametrize("page", PAGES)
def test_what_users_copy_names_this_version(page: str) -> None:
    assert set(SHOWN.findall((ROOT / page).read_text())) == {__version__}


TEXT = (ROOT / ".github" / "workflows" / "ci.yml").read_text()


@pytest.fixture
def jobs() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(TEXT)["jobs"]
    return found


def test_each_action_is_pinned_by_its_commit() -> None:
    used = re.findall(r"uses: (.*)", TEXT)
    assert used
    assert [
        one
        for one in used
        if not re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", one)
    ] == []


def test_only_a_tagged_release_may_write_and_only_after_the_tests(jobs: dict[str, Any]) -> None:
    assert yaml.safe_load(TEXT)["permissions"] == {"contents": "read"}
    assert [name for name, job in jobs.items() if "permissions" in job] == ["release"]
    assert jobs["release"]["if"] == "startsWith(github.ref, 'refs/tags/v')"
    assert set(jobs["release"]["needs"]) == jobs.keys() - {"release"}


def test_the_figures_beside_those_of_ci_are_of_the_last_release() -> None:
    versions = re.findall(r"^## \[(\d.*)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    released = json.loads((ROOT / "docs" / "records" / "released.json").read_text())
    assert released["circumstances"]["version"] == versions[0], "CONTRIBUTING.md: renew them"
