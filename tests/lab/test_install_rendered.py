"""The manifests in the package are what kustomize makes of config/, and so is every combination of overlays."""

from itertools import combinations
from pathlib import Path

import pytest
import yaml

from lab.build import ensure_peers, ensure_programs
from lab.processes import run
from lab.programs import KUSTOMIZES
from lab.render import MANIFESTS, OVERLAYS, combine, files
from lab.versions import DEFAULT_KUBERNETES
from mpijob_elastic.install import overlays
from mpijob_elastic.install.objects import by_identity
from mpijob_elastic.install.overlays import Overlay

pytestmark = pytest.mark.lab

CHOICES = [chosen for size in range(len(Overlay) + 1) for chosen in combinations(Overlay, size)]


@pytest.fixture(scope="module")
def kubectl() -> Path:
    return ensure_programs(DEFAULT_KUBERNETES, lambda _: None).kubectl


@pytest.mark.thorough
def test_rendered_anew_they_are_the_same(kubectl: Path) -> None:
    found = {path.stem: path.read_text() for path in MANIFESTS.iterdir()}
    assert found == files(kubectl), "run `make manifests`"


@pytest.mark.thorough
@pytest.mark.parametrize("chosen", CHOICES)
@pytest.mark.parametrize("release", [program.name for program in KUSTOMIZES])
def test_the_kustomize_of_older_kubectls_renders_the_same(
    tmp_path: Path, release: str, chosen: tuple[Overlay, ...]
) -> None:
    program = ensure_peers(lambda _: None, KUSTOMIZES)[release]
    rendered = run(program, "build", directory(tmp_path, chosen))
    assert by_identity(overlays.combined(chosen)) == by_identity(yaml.safe_load_all(rendered))


@pytest.mark.parametrize(
    "chosen", [CHOICES[0], *(pytest.param(one, marks=pytest.mark.thorough) for one in CHOICES[1:])]
)
def test_combined_they_are_what_kustomize_combines(
    kubectl: Path, tmp_path: Path, chosen: tuple[Overlay, ...]
) -> None:
    rendered = run(kubectl, "kustomize", directory(tmp_path, chosen))
    assert by_identity(overlays.combined(chosen)) == by_identity(yaml.safe_load_all(rendered))


@pytest.mark.parametrize("chosen", [(), (Overlay.CERT_MANAGER,)], ids=["default", "cert-manager"])
def test_the_component_for_pods_without_labels_is_the_option(
    kubectl: Path, tmp_path: Path, chosen: tuple[Overlay, ...]
) -> None:
    path = combine(tmp_path, chosen) / "kustomization.yaml"
    kustomization = yaml.safe_load(path.read_text())
    kustomization["components"].append("../../components/no-template-labels")
    path.write_text(yaml.safe_dump(kustomization))
    rendered = run(kubectl, "kustomize", path.parent)
    expected = overlays.without_template_labels(overlays.combined(chosen))
    assert by_identity(expected) == by_identity(yaml.safe_load_all(rendered))


def directory(tmp_path: Path, chosen: tuple[Overlay, ...]) -> Path:
    """Return the directory of what an overlay alone makes, or of an overlay that combines these."""
    return (
        combine(tmp_path, chosen) if len(chosen) > 1 else OVERLAYS / (*chosen, overlays.DEFAULT)[0]
    )
