"""Renders config/overlays into the package, for `mpijob-elastic install`, and into the chart: `python -m lab.render`.

It also writes the types of mpi-operator v0.2.3 into the package.
It is here because kubectl is: users of the package need none.
"""

import subprocess
from pathlib import Path

from lab import chart
from lab.build import ensure_programs
from lab.errors import LabError
from lab.operator import types
from lab.versions import DEFAULT_KUBERNETES
from mpijob_elastic.install.overlays import DEFAULT, Overlay

ROOT = Path(__file__).parents[1]
OVERLAYS = ROOT / "config" / "overlays"
MANIFESTS = ROOT / "mpijob_elastic" / "install" / "manifests"


def kustomize(program: Path, directory: Path, *, verb: str = "kustomize") -> str:
    """Return what `kubectl kustomize`, or `kustomize build`, makes of a directory; raise LabError."""
    done = subprocess.run([program, verb, directory], capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(f"{directory}: {done.stderr.strip()}")
    return done.stdout


def main() -> None:
    """Write the operator's types, the rendered overlays, and the chart's templates."""
    types.TABLE.write_text(types.table())
    kubectl = ensure_programs(DEFAULT_KUBERNETES, print).kubectl
    for overlay in (DEFAULT, *Overlay):
        (MANIFESTS / f"{overlay}.yaml").write_text(kustomize(kubectl, OVERLAYS / overlay))
    chart.write()


if __name__ == "__main__":
    main()
