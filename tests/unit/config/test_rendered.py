"""The manifests in the package are what kustomize makes of config/, and so is every combination of overlays."""

import shutil
import subprocess
from itertools import combinations
from pathlib import Path

import pytest
import yaml

from lab.building import ensure_programs
from lab.versions import DEFAULT_KUBERNETES
from mpijob_elastic.install import overlays
from mpijob_elastic.install.objects import Identity, Manifest, by_identity
from mpijob_elastic.install.overlays import Overlay

pytestmark = pytest.mark.lab
ROOT = Path(__file__).parents[3]
MANIFESTS = ROOT / "mpijob_elastic" / "install" / "manifests"


def kustomize(directory: Path) -> str:
    kubectl = ensure_programs(DEFAULT_KUBERNETES, lambda _: None).kubectl
    done = subprocess.run([kubectl, "kustomize", directory], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("overlay", [overlays.DEFAULT, *Overlay])
def test_rendered_anew_it_is_the_same(overlay: str) -> None:
    rendered = kustomize(ROOT / "config" / "overlays" / overlay)
    assert (MANIFESTS / f"{overlay}.yaml").read_text() == rendered, "run `make manifests`"


@pytest.mark.parametrize("chosen", [chosen for size in (2, 3) for chosen in combinations(Overlay, size)])
def test_combined_they_are_what_kustomize_combines(tmp_path: Path, chosen: tuple[Overlay, ...]) -> None:
    overlay = shutil.copytree(ROOT / "config", tmp_path / "config") / "overlays" / "combined"
    overlay.mkdir()
    shutil.copy(overlay.parent / "single-namespace" / "jobs-namespace.yaml", overlay)
    kustomization = {
        "resources": ["../default", "jobs-namespace.yaml"],
        "components": [f"../../components/{name}" for name in chosen],
    }
    (overlay / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    expected: dict[Identity, Manifest] = by_identity(yaml.safe_load_all(kustomize(overlay)))
    assert by_identity(overlays.combined(chosen)) == expected
