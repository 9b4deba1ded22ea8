"""What the chart renders, and helm's answers."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from lab.chart import CHART
from mpijob_elastic import names
from mpijob_elastic.install.objects import Manifest, ObjectIdentity, by_identity

KUBERNETES = "1.34.4"
HOOK = "helm.sh/hook"


def run(
    helm: Path,
    *arguments: str,
    values: Mapping[str, Any] | None = None,
    namespace: str = names.NAMESPACE,
) -> subprocess.CompletedProcess[str]:
    """Run helm, with values where its command takes some."""
    command = [
        str(helm),
        *arguments,
        f"--namespace={namespace}",
        *(["--values=-"] if values else []),
    ]
    text = yaml.safe_dump(dict(values or {}))
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def rendered(
    helm: Path, values: Mapping[str, Any], *, kubernetes: str = KUBERNETES, chart: Path = CHART
) -> dict[ObjectIdentity, Manifest]:
    """Return the objects of a release, without its hooks."""
    done = run(
        helm, "template", "release", str(chart), f"--kube-version={kubernetes}", values=values
    )
    assert done.returncode == 0, done.stderr
    found = [one for one in yaml.safe_load_all(done.stdout) if one]
    for one in found:
        if one["kind"] == "CustomResourceDefinition":
            assert one["metadata"].pop("annotations") == {"helm.sh/resource-policy": "keep"}
    return by_identity(one for one in found if HOOK not in one["metadata"].get("annotations", {}))


def refusal(helm: Path, values: Mapping[str, Any]) -> str:
    """Return why helm refuses these values."""
    done = run(
        helm, "template", "release", str(CHART), f"--kube-version={KUBERNETES}", values=values
    )
    assert done.returncode, done.stdout
    return done.stderr
