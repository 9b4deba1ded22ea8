"""The manifests in the package are what kustomize makes of config/, and so is every combination of overlays."""

import shutil
from itertools import combinations
from pathlib import Path

import pytest
import yaml

from lab.build import ensure_peers, ensure_programs
from lab.programs import KUSTOMIZES
from lab.render import MANIFESTS, OVERLAYS, kustomize
from lab.versions import DEFAULT_KUBERNETES
from mpijob_elastic.install import overlays
from mpijob_elastic.install.objects import by_identity
from mpijob_elastic.install.overlays import Overlay

pytestmark = pytest.mark.lab

CHOICES = [chosen for size in range(4) for chosen in combinations(Overlay, size)]


@pytest.fixture(scope="module")
def kubectl() -> Path:
    return ensure_programs(DEFAULT_KUBERNETES, lambda _: None).kubectl


@pytest.mark.parametrize("overlay", [overlays.DEFAULT, *Overlay])
def test_rendered_anew_it_is_the_same(kubectl: Path, overlay: str) -> None:
    rendered = kustomize(kubectl, OVERLAYS / overlay)
    assert (MANIFESTS / f"{overlay}.yaml").read_text() == rendered, "run `make manifests`"


@pytest.mark.thorough
@pytest.mark.parametrize("chosen", CHOICES)
@pytest.mark.parametrize("release", [program.name for program in KUSTOMIZES])
def test_the_kustomize_of_older_kubectls_renders_the_same(
    tmp_path: Path, release: str, chosen: tuple[Overlay, ...]
) -> None:
    program = ensure_peers(lambda _: None, KUSTOMIZES)[release]
    directory = written(tmp_path, chosen) if len(chosen) > 1 else OVERLAYS / (*chosen, overlays.DEFAULT)[0]
    rendered = kustomize(program, directory, verb="build")
    assert by_identity(overlays.combined(chosen)) == by_identity(yaml.safe_load_all(rendered))


@pytest.mark.parametrize("chosen", [chosen for chosen in CHOICES if len(chosen) > 1])
def test_combined_they_are_what_kustomize_combines(kubectl: Path, tmp_path: Path, chosen: tuple[Overlay, ...]) -> None:
    rendered = kustomize(kubectl, written(tmp_path, chosen))
    assert by_identity(overlays.combined(chosen)) == by_identity(yaml.safe_load_all(rendered))


def written(tmp_path: Path, chosen: tuple[Overlay, ...]) -> Path:
    """Return the directory of an overlay that combines those chosen."""
    overlay = shutil.copytree(OVERLAYS.parent, tmp_path / "config") / "overlays" / "combined"
    overlay.mkdir()
    shutil.copy(overlay.parent / "single-namespace" / "jobs-namespace.yaml", overlay)
    kustomization = {
        "resources": ["../default", "jobs-namespace.yaml"],
        # single-namespace first, whose rights cert-manager takes away.
        "components": [f"../../components/{name}" for name in sorted(chosen, reverse=True)],
    }
    (overlay / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    return overlay
