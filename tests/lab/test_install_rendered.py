"""The manifests in the package are what kustomize makes of config/, and so is every combination of overlays."""

import shutil
from itertools import combinations
from pathlib import Path

import pytest
import yaml

from lab.build import ensure_programs
from lab.render import MANIFESTS, OVERLAYS, kustomize
from lab.versions import DEFAULT_KUBERNETES
from mpijob_elastic.install import overlays
from mpijob_elastic.install.objects import Identity, Manifest, by_identity
from mpijob_elastic.install.overlays import Overlay

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def kubectl() -> Path:
    return ensure_programs(DEFAULT_KUBERNETES, lambda _: None).kubectl


@pytest.mark.parametrize("overlay", [overlays.DEFAULT, *Overlay])
def test_rendered_anew_it_is_the_same(kubectl: Path, overlay: str) -> None:
    rendered = kustomize(kubectl, OVERLAYS / overlay)
    assert (MANIFESTS / f"{overlay}.yaml").read_text() == rendered, "run `make manifests`"


@pytest.mark.parametrize("chosen", [chosen for size in (2, 3) for chosen in combinations(Overlay, size)])
def test_combined_they_are_what_kustomize_combines(kubectl: Path, tmp_path: Path, chosen: tuple[Overlay, ...]) -> None:
    overlay = shutil.copytree(OVERLAYS.parent, tmp_path / "config") / "overlays" / "combined"
    overlay.mkdir()
    shutil.copy(overlay.parent / "single-namespace" / "jobs-namespace.yaml", overlay)
    kustomization = {
        "resources": ["../default", "jobs-namespace.yaml"],
        "components": [f"../../components/{name}" for name in chosen],
    }
    (overlay / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    expected: dict[Identity, Manifest] = by_identity(yaml.safe_load_all(kustomize(kubectl, overlay)))
    assert by_identity(overlays.combined(chosen)) == expected
