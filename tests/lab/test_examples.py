"""What the pages show: the API server takes each manifest as it stands, and the webhook warns as the page says."""

import json
import re
from pathlib import Path

import pytest
import yaml

from lab.cluster import Cluster
from lab.definitions import Release
from mpijob_elastic import names
from mpijob_elastic.install.installer import InstallPlan
from mpijob_elastic.install.overlays import Overlay
from tests.lab.definitions import CERT_MANAGER, KEDA, served
from tests.lab.hpa import STRICT, applied
from tests.lab.job import Object

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("webhook")]

DOCS = Path(__file__).parents[2] / "docs"
HPA = DOCS / "examples" / "hpa"
PAGE = (DOCS / "elastic-jobs.md").read_text()
BEFORE, AFTER = map(yaml.safe_load, re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))
EXAMPLE = yaml.safe_load((DOCS / "examples" / "elastic-pytorch" / "job.yaml").read_text())
CERTIFICATES = [
    one
    for one in InstallPlan(overlays=(Overlay.CERT_MANAGER,)).manifests()
    if "cert-manager" in one["apiVersion"]
]


def hpa(name: str, namespace: str) -> Object:
    """An example, in the test's namespace."""
    manifest: Object = yaml.safe_load((HPA / name).read_text())
    manifest["metadata"]["namespace"] = namespace
    return manifest


@pytest.mark.parametrize("job", [BEFORE, AFTER, EXAMPLE], ids=["before", "after", "example"])
def test_a_job_is_taken_without_a_warning(job: Object, cluster: Cluster, namespace: str) -> None:
    assert applied(cluster, json.dumps(job), "--namespace", namespace, *STRICT) == ""


def test_the_page_has_the_warning_of_a_job_with_the_annotations_and_the_old_command(
    cluster: Cluster, namespace: str
) -> None:
    half = {**BEFORE, "metadata": AFTER["metadata"]}
    warning = applied(cluster, json.dumps(half), "--namespace", namespace, *STRICT)
    assert warning.startswith("Warning: ")
    assert warning in PAGE


@pytest.mark.parametrize(
    "name", sorted(path.name for path in HPA.glob("*.yaml") if path.name != "keda.yaml")
)
def test_the_api_server_takes_it(name: str, cluster: Cluster, namespace: str) -> None:
    assert applied(cluster, json.dumps(hpa(name, namespace)), *STRICT) == ""


@pytest.mark.parametrize("name", ["cpu.yaml", "gpu.yaml", "queue.yaml"])
def test_its_bounds_are_those_of_the_example_job(name: str, namespace: str) -> None:
    bounds, asked = (
        hpa("job.yaml", namespace)["metadata"]["annotations"],
        hpa(name, namespace)["spec"],
    )
    assert bounds[names.MIN_REPLICAS] == str(asked["minReplicas"])
    assert bounds[names.MAX_REPLICAS] == str(asked["maxReplicas"])


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("release", "manifests"),
    [
        pytest.param(KEDA, [yaml.safe_load((HPA / "keda.yaml").read_text())], id="KEDA"),
        pytest.param(CERT_MANAGER, CERTIFICATES, id="cert-manager"),
    ],
)
def test_definitions_of_others_take_what_is_for_them_and_no_unknown_field(
    cluster: Cluster, tmp_path: Path, release: Release, manifests: list[Object]
) -> None:
    with served(cluster, release, tmp_path):
        assert len(manifests) == (4 if release is CERT_MANAGER else 1)
        for one in manifests:
            assert applied(cluster, json.dumps(one), *STRICT) == ""
            with pytest.raises(AssertionError, match="unknown field"):
                applied(
                    cluster, json.dumps({**one, "spec": {**one["spec"], "misspelt": 3}}), *STRICT
                )
