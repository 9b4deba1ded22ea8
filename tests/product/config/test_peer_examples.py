"""What KEDA, HPAs, prometheus-adapter and Karmada read of a job by our examples: fields, containers, sizes.

CI starts none of these programs; `make test-peers` does. So the contract is held here: each field
that an example names is one that the operator's types have, or that the product writes.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.operator.types import TABLE
from mpijob_elastic import names
from mpijob_elastic.kube.resources import MPI_JOBS
from upgrade.crd import SCALE

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
TYPES: dict[str, dict[str, str]] = json.loads(TABLE.read_text())
SCALERS = ("cpu.yaml", "gpu.yaml", "queue.yaml", "keda.yaml")
KARMADA = (EXAMPLES / "karmada" / "interpreter.yaml").read_text()


def documents(file: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((EXAMPLES / "hpa" / file).read_text()))


def job() -> dict[str, Any]:
    [found] = documents("job.yaml")
    return found


def scaler(file: str) -> dict[str, Any]:
    [found] = [one for one in documents(file) if "scaleTargetRef" in one["spec"]]
    spec: dict[str, Any] = found["spec"]
    return spec


def resolved(path: str) -> str:
    """The type of a field of an MPIJob, by the operator's Go types; a key of a map may have any name."""
    kind = "MPIJob"
    for key in path.removeprefix(".").split("."):
        is_map = kind.startswith("{}")
        kind = kind.removeprefix("{}") if is_map else TYPES[kind][key]
    return kind


@pytest.mark.parametrize("file", SCALERS)
def test_it_scales_the_example_by_the_subresource(file: str) -> None:
    target = scaler(file)["scaleTargetRef"]
    assert target == {
        "apiVersion": MPI_JOBS.api_version,
        "kind": MPI_JOBS.kind,
        "name": job()["metadata"]["name"],
    }


@pytest.mark.parametrize("file", SCALERS)
def test_its_bounds_are_those_of_the_job(file: str) -> None:
    spec, annotations = scaler(file), job()["metadata"]["annotations"]
    least = spec.get("minReplicas", spec.get("minReplicaCount"))
    most = spec.get("maxReplicas", spec.get("maxReplicaCount"))
    assert str(least) == annotations[names.MIN_REPLICAS]
    assert str(most) == annotations[names.MAX_REPLICAS]


def test_the_sizes_that_the_subresource_reads_are_fields_of_the_operator() -> None:
    assert resolved(SCALE["specReplicasPath"]) == "int32"
    assert resolved(SCALE["statusReplicasPath"]) == "int32"


def test_the_container_whose_cpu_counts_is_one_of_the_workers() -> None:
    template = job()["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
    containers = {one["name"]: one for one in template["spec"]["containers"]}
    [metric] = scaler("cpu.yaml")["metrics"]
    counted = containers[metric["containerResource"]["container"]]
    assert "cpu" in counted["resources"]["requests"]


@pytest.mark.parametrize("file", ["gpu.yaml", "queue.yaml"])
def test_prometheus_adapter_serves_the_metric_that_the_hpa_asks_for(file: str) -> None:
    [adapter] = documents("adapter-rules.yaml")
    [content] = adapter["data"].values()
    rules = yaml.safe_load(content)
    served = {rule.get("name", {}).get("as") for rule in rules["rules"]}
    served |= {rule["seriesQuery"].partition("{")[0] for rule in rules["externalRules"]}
    [metric] = scaler(file)["metrics"]
    source = metric.get("pods") or metric.get("external")
    assert source["metric"]["name"] in served


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("spec.mpiReplicaSpecs.Worker.replicas", "int32"),
        ("spec.mpiReplicaSpecs.Worker.template", "PodTemplateSpec"),
        ("status.startTime", "time"),
        ("status.completionTime", "time"),
        ("status.conditions", "[]JobCondition"),
    ],
)
def test_karmada_reads_fields_of_the_operator(path: str, kind: str) -> None:
    assert resolved(path) == kind
    assert re.search(rf"\b{path.rpartition('.')[2]}\b", KARMADA)


def test_karmada_reads_conditions_by_their_fields() -> None:
    named = set(re.findall(r"found\.(\w+)", KARMADA))
    assert named == {"type", "status", "reason"}
    assert named <= TYPES["JobCondition"].keys()


def test_the_annotation_of_karmada_is_none_of_ours() -> None:
    [(prefix, name)] = set(re.findall(r'\["([\w.-]+)/(\w+)"\]', KARMADA))
    assert (prefix, name) == ("karmada.mpijob-elastic", "size")
    assert f"{prefix}/" != names.PREFIX
