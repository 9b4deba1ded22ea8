"""The files of a release depend on their content only, and what they say is what is there."""

import email
import filecmp
import os
import platform as machine
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest
import trove_classifiers
import yaml

from lab.build import ensure_peers, ensure_programs
from lab.chart import CHART
from lab.errors import LabError
from lab.images.product.image import NAME, VERSION
from lab.programs import KREW
from lab.release import changelog, chart, krew, wheel
from lab.release.places import AUTHORS, Places, sha256
from lab.versions import DEFAULT_KUBERNETES

SAID = Places(
    home="https://git.example/team/mpijob-elastic", image="registry.example/team/mpijob-elastic"
)
CHANGELOG = """\
# Changelog

## [Unreleased]

## [0.2.0] - 2026-01-02

A word before.

### Breaking

- One [way](docs/a.md#b) is gone:
  take [another](https://example.com). More.

### Fixed

- `x` works. Now.

## [0.1.0] - 2025-01-02

- The first.
"""


def unpacked(archive: Path, folder: Path) -> Path:
    with tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")
    return folder


def test_the_notes_are_the_section_and_their_links_lead_to_the_files_of_the_release() -> None:
    notes = changelog.notes("0.2.0", CHANGELOG, pages="https://git.example/blob/v0.2.0")
    assert notes.startswith("A word before.\n\n### Breaking")
    assert notes.endswith("- `x` works. Now.\n")
    assert "[way](https://git.example/blob/v0.2.0/docs/a.md#b)" in notes
    assert "[another](https://example.com)" in notes
    assert changelog.date("0.2.0", CHANGELOG) == "2026-01-02"


@pytest.mark.parametrize("version", ["0.3.0", "Unreleased", "0.2"])
def test_a_version_that_the_changelog_does_not_date_is_no_release(version: str) -> None:
    with pytest.raises(ValueError, match=version):
        changelog.date(version, CHANGELOG)


def test_a_change_is_brief_without_links() -> None:
    found = list(changelog.changes(changelog.section("0.2.0", CHANGELOG)))
    assert [(one.heading, changelog.brief(one)) for one in found] == [
        ("Breaking", "One way is gone: take another."),
        ("Fixed", "`x` works."),
    ]


def test_two_charts_have_the_same_bytes_and_are_what_helm_reads(tmp_path: Path) -> None:
    one, other = tmp_path / "one.tgz", tmp_path / "other.tgz"
    chart.write(one, SAID)
    chart.write(other, SAID)
    assert sha256(one) == sha256(other)
    packed = unpacked(one, tmp_path) / CHART.name
    files = {str(path.relative_to(CHART)) for path in CHART.rglob("*") if path.is_file()}
    assert {str(path.relative_to(packed)) for path in packed.rglob("*") if path.is_file()} == files
    same = files - {"Chart.yaml", "values.yaml"}
    assert filecmp.cmpfiles(CHART, packed, same, shallow=False)[1:] == ([], [])
    assert yaml.safe_load((packed / "Chart.yaml").read_text()) == chart.metadata(SAID)


@pytest.mark.parametrize("places", [Places(), SAID], ids=["sources only", "published"])
def test_the_packed_chart_runs_the_image_of_the_release(places: Places, tmp_path: Path) -> None:
    chart.write(tmp_path / "packed.tgz", places)
    packed = (unpacked(tmp_path / "packed.tgz", tmp_path) / CHART.name / "values.yaml").read_text()
    sources = (CHART / "values.yaml").read_text()
    assert packed.count("\n") == sources.count("\n"), "comments stay"
    expected = yaml.safe_load(sources)
    expected["image"]["repository"] = places.image or NAME
    assert yaml.safe_load(packed) == expected
    if places.image:
        [named] = yaml.safe_load(chart.metadata(places)["annotations"]["artifacthub.io/images"])
        assert named["image"] == f"{expected['image']['repository']}:{VERSION}"


@pytest.mark.parametrize("places", [Places(), SAID], ids=["sources only", "published"])
def test_artifact_hub_reads_the_annotations(places: Places) -> None:
    found = chart.metadata(places)
    annotations = found["annotations"]
    assert all(isinstance(value, str) for value in annotations.values())
    assert annotations["artifacthub.io/license"] == "Apache-2.0"
    changes = yaml.safe_load(annotations["artifacthub.io/changes"])
    kinds = {"added", "changed", "deprecated", "removed", "fixed", "security"}
    assert {one["kind"] for one in changes} <= kinds
    assert all(one["description"] and "](" not in one["description"] for one in changes)
    assert found["maintainers"] == [{"name": AUTHORS}]
    if not places.home:
        assert not {"artifacthub.io/images", "artifacthub.io/links"} & annotations.keys()
        return
    [image] = yaml.safe_load(annotations["artifacthub.io/images"])
    assert image == {"name": NAME, "image": f"{SAID.image}:{VERSION}"}
    links = yaml.safe_load(annotations["artifacthub.io/links"])
    assert all(one["url"].startswith(f"{SAID.home}/blob/v{VERSION}/") for one in links)
    assert all((CHART.parents[1] / one["url"].split(f"/v{VERSION}/")[1]).exists() for one in links)


def test_the_index_has_the_chart_and_its_checksum(tmp_path: Path) -> None:
    packed = tmp_path / chart.FILE
    chart.write(packed, SAID)
    [entry] = yaml.safe_load(chart.index(packed, SAID))["entries"][NAME]
    assert entry["digest"] == sha256(packed)
    assert entry["urls"] == [f"{SAID.home}/releases/download/v{VERSION}/{chart.FILE}"]
    [entry] = yaml.safe_load(chart.index(packed, Places()))["entries"][NAME]
    assert entry["urls"] == [chart.FILE]


def test_the_repository_of_artifact_hub_has_the_id_that_it_gave() -> None:
    assert "repositoryID" not in yaml.safe_load(chart.repository(Places()))
    found = yaml.safe_load(chart.repository(Places(artifact_hub_id="an-id")))
    assert found["repositoryID"] == "an-id"


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("wheels")
    return [wheel.write(folder / name, SAID, print) for name in ("one", "other")]


def test_two_wheels_have_the_same_bytes(wheels: list[Path]) -> None:
    one, other = map(sha256, wheels)
    assert one == other


def test_the_wheel_says_who_made_it_what_it_is_and_where_it_is_from(wheels: list[Path]) -> None:
    with zipfile.ZipFile(wheels[0]) as archive:
        name = f"mpijob_elastic-{VERSION}.dist-info"
        said = email.message_from_bytes(archive.read(f"{name}/METADATA"))
        assert f"{name}/licenses/LICENSE" in archive.namelist()
    assert said["Author"] == AUTHORS
    assert said["License-Expression"] == "Apache-2.0"
    assert set(said.get_all("Classifier", [])) <= trove_classifiers.classifiers
    urls = dict(one.split(", ") for one in said.get_all("Project-URL", []))
    assert urls["Homepage"] == SAID.home
    assert urls["Changelog"] == f"{SAID.home}/blob/v{VERSION}/CHANGELOG.md"


def test_nobodys_links_are_invented() -> None:
    assert wheel.urls(Places()) == ""
    assert all("was not given" in sentence for sentence in Places().unsaid())
    assert SAID.unsaid() == []


def put(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_packages_for_all_pythons_are_one_folder(tmp_path: Path) -> None:
    old = {"a/__init__.py": "same", "a/x.cpython-311.so": "1", "a-1.dist-info/WHEEL": "311"}
    new = {"a/__init__.py": "same", "a/x.cpython-312.so": "2", "a-1.dist-info/WHEEL": "312"}
    more = {"a-1.dist-info/RECORD": "files", "bin/a": "#!/here", "a/__pycache__/a.pyc": ""}
    trees = [put(tmp_path / "old", old | more), put(tmp_path / "new", new | more)]
    found = {name: path.read_text() for name, path in krew.merged(trees).items()}
    assert found == new | old


def test_a_module_that_is_not_the_same_for_all_pythons_is_refused(tmp_path: Path) -> None:
    trees = [put(tmp_path / text, {"a/__init__.py": text}) for text in ("one", "other")]
    with pytest.raises(LabError, match=r"a/__init__\.py is not the same"):
        krew.merged(trees)


HERE = next(
    one
    for one in krew.PLATFORMS
    if (one.os, one.arch)
    == ("linux", {"x86_64": "amd64", "aarch64": "arm64"}.get(machine.machine(), ""))
)


@pytest.fixture(scope="module")
def archives(wheels: list[Path], tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The plugin for this machine, made twice."""
    folder = tmp_path_factory.mktemp("krew")
    found = [folder / name / HERE.file for name in ("one", "other")]
    for archive in found:
        archive.parent.mkdir()
        krew.write(archive, HERE, wheels[0], print)
    return found


def test_two_plugins_have_the_same_bytes(archives: list[Path]) -> None:
    one, other = map(sha256, archives)
    assert one == other


def python_only(folder: Path) -> dict[str, str]:
    """An environment that knows this machine's programs and no package of this project."""
    return {"PATH": f"{folder}:/usr/local/bin:/usr/bin:/bin", "HOME": str(folder)}


def run(*command: object, **environment: str) -> str:
    done = subprocess.run(
        [*map(str, command)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_plugin_runs_by_a_link_with_a_python_of_the_machine(
    archives: list[Path], tmp_path: Path
) -> None:
    folder = unpacked(archives[0], tmp_path / "store")
    assert (folder / "LICENSE").is_file()
    link = tmp_path / "bin" / krew.PROGRAM
    link.parent.mkdir()
    link.symlink_to(os.path.relpath(folder / krew.PROGRAM, link.parent))
    environment = python_only(link.parent)
    assert run(link, "--version", **environment) == f"{NAME} {VERSION}\n"
    assert f"Usage: {NAME} get" in run(link, "get", "--help", **environment)


def test_the_plugin_says_which_python_it_needs(archives: list[Path], tmp_path: Path) -> None:
    folder = unpacked(archives[0], tmp_path)
    for name in ("dirname", "readlink"):
        (tmp_path / name).symlink_to(f"/usr/bin/{name}")
    done = subprocess.run(
        ["/bin/sh", folder / krew.PROGRAM, "--version"],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "no Python 3.11 to 3.14 is on the PATH" in done.stderr


@pytest.fixture
def krew_root(archives: list[Path], tmp_path: Path) -> dict[str, str]:
    """The plugin, installed by krew from its manifest and archive."""
    manifest = tmp_path / krew.MANIFEST
    manifest.write_text(krew.manifest([(HERE, archives[0])], SAID))
    program = ensure_peers(print, [KREW])[KREW.name]
    environment = python_only(tmp_path) | {"KREW_ROOT": str(tmp_path / "krew")}
    options = (f"--manifest={manifest}", f"--archive={archives[0]}")
    run(program, "install", *options, **environment)
    return environment | {"PATH": f"{tmp_path / 'krew' / 'bin'}:{environment['PATH']}"}


def test_krew_installs_it_and_kubectl_finds_it(krew_root: dict[str, str]) -> None:
    kubectl = ensure_programs(DEFAULT_KUBERNETES, print).kubectl
    assert run(kubectl, NAME, "--version", **krew_root) == f"{NAME} {VERSION}\n"


def test_with_the_line_of_the_caveats_commands_work_as_messages_name_them(
    krew_root: dict[str, str], archives: list[Path]
) -> None:
    """A message says `mpijob-elastic watch ...`, and krew links no program of that name."""
    spec = yaml.safe_load(krew.manifest([(HERE, archives[0])], SAID))["spec"]
    [alias] = [line.strip() for line in spec["caveats"].splitlines() if "alias " in line]
    assert alias in (CHART.parents[1] / "docs" / "install.md").read_text()
    kubectl = ensure_programs(DEFAULT_KUBERNETES, print).kubectl
    path = {"PATH": f"{kubectl.parent}:{krew_root['PATH']}"}
    lines = f"shopt -s expand_aliases\n{alias}\n{NAME} --version"
    assert run("/bin/bash", "-c", lines, **krew_root | path) == f"{NAME} {VERSION}\n"


def test_the_manifest_names_every_archive_by_its_checksum(archives: list[Path]) -> None:
    pairs = [(one, archives[0]) for one in krew.PLATFORMS]
    spec = yaml.safe_load(krew.manifest(pairs, SAID))["spec"]
    assert spec["version"] == f"v{VERSION}"
    assert spec["homepage"] == SAID.home
    assert len(spec["shortDescription"]) <= 50
    assert [one["selector"]["matchLabels"] for one in spec["platforms"]] == [
        {"os": one.os, "arch": one.arch} for one in krew.PLATFORMS
    ]
    assert {one["sha256"] for one in spec["platforms"]} == {sha256(archives[0])}
    assert all(one["uri"].startswith(f"{SAID.home}/releases/") for one in spec["platforms"])
