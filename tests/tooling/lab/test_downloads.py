"""What is fetched for a build, and where Go keeps it; the Go that reads the go.mod is the real one."""

from pathlib import Path

import pytest

from lab.downloads import Module, required
from lab.modules import PINNED
from lab.programs import ALL


@pytest.mark.parametrize(
    ("module", "archive"),
    [
        (Module("k8s.io/api", "v0.34.4"), "k8s.io/api/@v/v0.34.4.zip"),
        (Module("github.com/Azure/x", "v1.0.0"), "github.com/!azure/x/@v/v1.0.0.zip"),
        (Module("a.b/c", "v1.0.0-RC1"), "a.b/c/@v/v1.0.0-!r!c1.zip"),
    ],
)
def test_where_go_keeps_the_archive_of_a_module(module: Module, archive: str) -> None:
    assert module.in_cache(Path("/c")) == Path("/c/cache/download") / archive


def test_a_module_is_fetched_as_its_go_mod_replaces_it() -> None:
    wanted = required(PINNED / "kubernetes")
    assert Module("k8s.io/api", "v0.34.4") in wanted
    assert Module("k8s.io/apiserver", "v0.34.4") in wanted
    assert not {one for one in wanted if one.version == "v0.0.0"}


def test_a_folder_beside_the_go_mod_is_not_fetched() -> None:
    assert "volcano.sh/apis" not in {one.path for one in required(PINNED / "volcano")}


@pytest.mark.parametrize("folder", sorted({one.module for one in ALL}))
def test_what_is_fetched_has_its_checksum_in_the_repository(folder: str) -> None:
    """Go compares it when it fetches, and again when it builds."""
    known = (PINNED / folder / "go.sum").read_text().splitlines()
    archives = {tuple(line.split()[:2]) for line in known if "/go.mod " not in line}
    lacking = {(one.path, one.version) for one in required(PINNED / folder)} - archives
    # Windows' own, and what only tests import.
    assert len(lacking) <= 4, lacking
