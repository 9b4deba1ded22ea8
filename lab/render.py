"""Renders config/overlays into the package, for `mpijob-elastic install`, and into the chart: `python -m lab.render`.

It also writes the types of mpi-operator v0.2.3, and what it drops of pods, into the package, and
elastic.sh into the policy that lets the controller write nothing else in its place.
It is here because kubectl is: users of the package need none.
"""

import re
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from lab import chart
from lab.build import ensure_programs
from lab.operator import types
from lab.processes import run
from lab.versions import DEFAULT_KUBERNETES
from mpijob_elastic.install.objects import ObjectIdentity, identity
from mpijob_elastic.install.overlays import DEFAULT, DIFFERENCES, Overlay
from mpijob_elastic.model import elastic_script

ROOT = Path(__file__).parents[1]
OVERLAYS = ROOT / "config" / "overlays"
MANIFESTS = ROOT / "mpijob_elastic" / "install" / "manifests"
DRIVER_POLICY = ROOT / "config" / "components" / "guard" / "driver.yaml"
# Before and after the script in that policy.
_QUOTE, _INDENT = "r'''", " " * 8


def combine(directory: Path, overlays: Collection[Overlay]) -> Path:
    """Write a copy of config/ with an overlay that combines these into a directory, and return the overlay's."""
    path = shutil.copytree(OVERLAYS.parent, directory / "config") / "overlays" / "combined"
    path.mkdir()
    shutil.copy(path.parent / "single-namespace" / "jobs-namespace.yaml", path)
    kustomization = {
        "resources": ["../default", "jobs-namespace.yaml"],
        # single-namespace after et-operator, whose rights it narrows, and before cert-manager,
        # which takes its away.
        "components": [
            f"../../components/{name}" for name in reversed(Overlay) if name in overlays
        ],
    }
    (path / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    return path


def files(kubectl: Path) -> dict[str, str]:
    """Return the text of each file of manifests/: the default, and what overlays make of it."""
    texts = {DEFAULT: run(kubectl, "kustomize", OVERLAYS / DEFAULT)}
    for name, overlays in DIFFERENCES.items():
        # What two overlays make of an object is compared with what each made of it.
        before: dict[ObjectIdentity, str] = {}
        for part in (DEFAULT, *overlays):
            before |= _objects(texts.get(part, ""))  # none, if an overlay is alone
        with TemporaryDirectory() as directory:
            after = _objects(run(kubectl, "kustomize", combine(Path(directory), overlays)))
        texts[name] = _difference(before, after)
    return texts


def _objects(text: str) -> dict[ObjectIdentity, str]:
    return {
        identity(yaml.safe_load(one)): one
        for one in re.split(r"^---\n", text, flags=re.MULTILINE)
        if one
    }


def _difference(before: Mapping[ObjectIdentity, str], after: Mapping[ObjectIdentity, str]) -> str:
    changed = [text for one, text in after.items() if before.get(one) != text]
    gone = [
        _delete(one)
        for one, text in before.items()
        if one not in after and not text.startswith("$patch")
    ]
    return "---\n".join([*changed, *gone])


def _delete(one: ObjectIdentity) -> str:
    namespace = {"namespace": one.namespace} if one.namespace else {}
    patch = {"$patch": "delete", "apiVersion": one.api_version, "kind": one.kind}
    return yaml.safe_dump({**patch, "metadata": {"name": one.name, **namespace}}, sort_keys=False)


def driver_policy(policy: str, script: str = elastic_script.TEXT) -> str:
    """Return the policy with this script in the place of the one that it has."""
    before, found, rest = policy.partition(_QUOTE)
    _, end, after = rest.partition(_QUOTE[1:])
    assert found == _QUOTE
    assert end == _QUOTE[1:]
    assert _QUOTE[1:] not in script
    first, *lines = script.split("\n")
    indented = [f"{_INDENT}{line}" if line else line for line in lines[:-1]]
    return before + found + "\n".join([first, *indented, _INDENT + lines[-1]]) + end + after


def main() -> None:
    """Write the operator's types, the rendered overlays, and the chart's templates."""
    types.TABLE.write_text(types.table())
    types.DROPPED.write_text(types.dropped())
    DRIVER_POLICY.write_text(driver_policy(DRIVER_POLICY.read_text()))
    kubectl = ensure_programs(DEFAULT_KUBERNETES, print).kubectl
    for name, text in files(kubectl).items():
        (MANIFESTS / f"{name}.yaml").write_text(text)
    chart.write()


if __name__ == "__main__":
    main()
