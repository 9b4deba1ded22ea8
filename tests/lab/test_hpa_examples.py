"""The examples of docs/scale.md: the API server takes each of them as it stands, and the webhook has nothing to say."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from lab.cluster import Cluster
from tests.lab.definitions import KEDA, served
from tests.lab.hpa import STRICT, applied
from tests.lab.waiting import PATIENCE

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("webhook")]

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "hpa"


def text(name: str, namespace: str) -> str:
    """An example, in the test's namespace."""
    manifest = yaml.safe_load((EXAMPLES / name).read_text())
    manifest["metadata"]["namespace"] = namespace
    return json.dumps(manifest)


@pytest.fixture
def keda(cluster: Cluster, tmp_path: Path) -> Iterator[None]:
    """A cluster that knows ScaledObjects."""
    with served(cluster, KEDA, tmp_path):
        yield


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
