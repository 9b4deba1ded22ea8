"""Which labels are put back on pods, and which rules select a job's pods by them alone."""

import json
from typing import Any

import msgspec
import pytest

from lab.operator import objects
from lab.operator.objects import Object
from mpijob_elastic import names
from mpijob_elastic.model import pod_labels
from mpijob_elastic.model.pod_labels import Relabelled, Selector

ROLES = ("Launcher", "Worker")
HOST = "kubernetes.io/hostname"
BENCH = {"app": "bench"}
OPERATORS = {names.LABEL_JOB_NAME: "train"}


def job(
    labels: Any = None, *, terms: Any = (), where: tuple[str, ...] = ROLES, **facts: Any
) -> Object:
    """A job with these labels and terms of a required anti-affinity in these templates."""
    made = objects.mpi_job(namespace="ml", replicas=2, **facts)
    for role in where:
        template = made["spec"]["mpiReplicaSpecs"][role]["template"]
        template["metadata"] = {"labels": labels}
        template["spec"]["affinity"] = {
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}
        }
    return made


def read(content: Object) -> Relabelled:
    return pod_labels.read(json.dumps(content).encode())


def by_labels(**expected: str) -> Object:
    return {"labelSelector": {"matchLabels": expected}, "topologyKey": HOST}


def by(key: str, operator: str, *values: str) -> Object:
    one = {"key": key, "operator": operator, **({"values": list(values)} if values else {})}
    return {"labelSelector": {"matchExpressions": [one]}, "topologyKey": HOST}


def of(*roles: str, selector: str) -> list[str]:
    return [
        f"{role}.template: the required anti-affinity to {selector} (by {HOST})" for role in roles
    ]


@pytest.mark.parametrize(
    ("content", "rules"),
    [
        pytest.param(
            job(BENCH, terms=[by_labels(**BENCH)]),
            of(*ROLES, selector="app=bench"),
            id="its own label",
        ),
        pytest.param(
            job(BENCH, terms=[by_labels(**BENCH)], where=("Worker",)),
            of("Worker", selector="app=bench"),
            id="of the workers alone",
        ),
        pytest.param(
            job(BENCH, terms=[by("app", "In", "bench", "other")]),
            of(*ROLES, selector="app In (bench, other)"),
            id="one of several values",
        ),
        pytest.param(
            job(BENCH, terms=[by("app", "Exists")]),
            of(*ROLES, selector="app Exists"),
            id="any value",
        ),
        pytest.param(
            job(BENCH, terms=[{**by_labels(**BENCH), "namespaces": ["ml"]}]),
            of(*ROLES, selector="app=bench"),
            id="in its namespace",
        ),
        pytest.param(
            job(BENCH, terms=[{**by_labels(**BENCH), "namespaces": ["others"]}]),
            [],
            id="in another namespace",
        ),
        pytest.param(job(BENCH, terms=[by_labels(app="other")]), [], id="another value"),
        pytest.param(job({}, terms=[by_labels(**BENCH)]), [], id="no label"),
        pytest.param(job(None, terms=[by_labels(**BENCH)]), [], id="no labels"),
        pytest.param(
            job(BENCH, terms=[by_labels(**OPERATORS)]), [], id="matched by a label of the operator"
        ),
        pytest.param(job(BENCH, terms=[by("app", "NotIn", "bench")]), [], id="no longer matches"),
        pytest.param(job(BENCH, terms=[by("app", "DoesNotExist")]), [], id="no longer absent"),
        pytest.param(
            job(BENCH, terms=[{"topologyKey": HOST}]), [], id="without a selector: selects none"
        ),
        pytest.param(
            job(BENCH, terms=[{"labelSelector": {}, "topologyKey": HOST}]),
            [],
            id="an empty selector: always matched",
        ),
        pytest.param(
            job({"app": "no label!"}, terms=[by("app", "Exists")]), [], id="a malformed label"
        ),
        pytest.param(
            job(
                {"training.kubeflow.org/job-name": "x"},
                terms=[by("training.kubeflow.org/job-name", "Exists")],
            ),
            [],
            id="a label of a newer operator",
        ),
        pytest.param(
            job({names.LABEL_JOB_NAME: "other"}, terms=[by_labels(**{names.LABEL_JOB_NAME: "x"})]),
            [],
            id="a label that the operator sets",
        ),
        pytest.param(
            job(BENCH, terms=[by_labels(**BENCH)], annotations={names.ENABLED: "false"}),
            [],
            id="a job that is left alone",
        ),
        pytest.param({"metadata": {"name": "a"}}, [], id="no spec"),
    ],
)
def test_rules_of_the_templates_that_begin_to_match(content: Object, rules: list[str]) -> None:
    assert list(read(content).own_rules()) == rules


@pytest.mark.parametrize(
    ("read_rule", "spec", "begins"),
    [
        (pod_labels.read_network_policy, {"podSelector": {"matchLabels": BENCH}}, True),
        (pod_labels.read_network_policy, {"podSelector": {}}, False),
        (pod_labels.read_budget, {"selector": {"matchLabels": BENCH}}, True),
        (pod_labels.read_budget, {"selector": {"matchLabels": {"app": "other"}}}, False),
        (pod_labels.read_budget, {}, False),
        (pod_labels.read_service, {"selector": BENCH}, True),
        (pod_labels.read_service, {"selector": OPERATORS}, False),
        (pod_labels.read_service, {"selector": {}}, False),
        (pod_labels.read_service, {"selector": None}, False),
    ],
)
@pytest.mark.parametrize("namespace", ["ml", "others"])
def test_objects_that_begin_to_select_pods(
    read_rule: Any, spec: Object, namespace: str, *, begins: bool
) -> None:
    raw = json.dumps({"metadata": {"name": "one", "namespace": namespace}, "spec": spec}).encode()
    said = list(pod_labels.rules_in_words(read(job(BENCH)), "Kind", [read_rule(raw)]))
    assert said == (["Kind one (app=bench)"] if begins and namespace == "ml" else [])


@pytest.mark.parametrize(
    ("labels", "restored"),
    [
        ({"mpi-job-role": "worker", "app": "bench"}, True),
        ({"mpi-job-role": "launcher", "app": "bench"}, False),
        ({"mpi-job-role": "worker"}, False),
        ({"app": "bench"}, False),
    ],
)
def test_whether_a_pod_has_what_is_put_back(labels: dict[str, str], *, restored: bool) -> None:
    before = {names.LABEL_GROUP_NAME: names.GROUP, names.LABEL_JOB_NAME: "train"}
    found = read(job(BENCH, where=("Worker",)))
    pod = msgspec.structs.replace(found.metadata, labels={**before, **labels})
    assert found.is_restored(pod) is restored


def test_what_a_message_shows_is_bounded() -> None:
    selector = Selector(match_labels={"k" * 5_000: "v"})
    assert len(str(selector)) == 100
    terms = [by_labels(**BENCH)] * 1_000
    assert len(list(read(job(BENCH, terms=terms, where=("Worker",))).own_rules())) == 50
