"""The examples of docs/hpa.md: the API server takes each of them as it stands, and the webhook has nothing to say."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from lab.cluster import Cluster
from lab.errors import LabError
from lab.golang import run_go
from tests.lab.hpa import STRICT, applied
from tests.lab.upgrades import established
from tests.lab.waiting import PATIENCE

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("webhook")]

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "hpa"
# KEDA's own definition, out of its Go module.
KEDA = "github.com/kedacore/keda/v2@v2.17.2"
KEDA_SUM = "h1:xlrcK5TKABJF9PebK79sgL07s/csGjL3H4m72OkZXxk="
SCALED_OBJECTS = "config/crd/bases/keda.sh_scaledobjects.yaml"


def text(name: str, namespace: str) -> str:
    """An example, in the test's namespace."""
    manifest = yaml.safe_load((EXAMPLES / name).read_text())
    manifest["metadata"]["namespace"] = namespace
    return json.dumps(manifest)


@pytest.fixture
def keda(cluster: Cluster, tmp_path: Path) -> Iterator[None]:
    """A cluster that knows ScaledObjects."""
    try:
        module = json.loads(run_go("mod", "download", "-json", KEDA, directory=tmp_path))
    except LabError as error:
        pytest.skip(f"the definition of ScaledObjects, {KEDA}, cannot be had: {error}")
    assert module["Sum"] == KEDA_SUM
    definition = Path(module["Dir"]) / SCALED_OBJECTS
    cluster.kubectl("apply", "--server-side", "-f", str(definition))
    established(cluster, "crd/scaledobjects.keda.sh")
    yield
    cluster.kubectl("delete", "-f", str(definition))


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.yaml") if path.name != "keda.yaml"))
def test_the_api_server_takes_it(name: str, cluster: Cluster, namespace: str) -> None:
    assert applied(cluster, text(name, namespace), *STRICT) == ""


@pytest.mark.thorough
def test_keda_takes_it(cluster: Cluster, namespace: str, keda: None) -> None:
    assert applied(cluster, text("keda.yaml", namespace), *STRICT) == ""


@pytest.mark.thorough
def test_a_field_that_is_unknown_would_not_be_taken(cluster: Cluster, namespace: str, keda: None) -> None:
    for name in ("queue.yaml", "keda.yaml"):
        wrong = json.loads(text(name, namespace))
        wrong["spec"]["maxReplica"] = 3
        with pytest.raises(AssertionError, match="unknown field"):
            applied(cluster, json.dumps(wrong), *STRICT)


@pytest.mark.parametrize("name", ["cpu.yaml", "gpu.yaml", "queue.yaml"])
def test_its_bounds_are_those_of_the_example_job(name: str, cluster: Cluster, namespace: str) -> None:
    """The webhook warns about larger bounds, so it knows the job already."""
    applied(cluster, text("job.yaml", namespace))
    beyond = json.loads(text(name, namespace))
    beyond["spec"]["maxReplicas"] += 1
    deadline = time.monotonic() + PATIENCE
    while "is above" not in applied(cluster, json.dumps(beyond), *STRICT):
        assert time.monotonic() < deadline
    assert applied(cluster, text(name, namespace), *STRICT) == ""
