"""What mpi-operator v0.2.3 makes of an MPIJob: our table and its own decoder say the same."""

import json
import shutil
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from lab.operator import types
from mpijob_elastic.kube import meta
from mpijob_elastic.model import operator_types
from mpijob_elastic.model.operator_types import Dropped, Fault
from tests.product.webhook.objects import Object, mpi_job

needs_go = pytest.mark.skipif(shutil.which("go") is None, reason="Go is missing")
WHY = "mpi-operator v0.2.3 cannot work with such a job, and others wait with it"
WORKER = "spec.mpiReplicaSpecs.Worker"
# Of every kind that somebody may write, or that the types of another release have.
VALUES: tuple[object, ...] = (
    None, True, 0, -1, 1.5, 2**31 - 1, 2**31, -(2**31) - 1, 2**63 - 1, 2**63, 1e30, "", "x", "1", "true", "1GB", "1Gi",
    "2020-05-14T12:00:00Z", "2020-05-14T12:00:00.5+02:00", "2020-05-14", "2020-13-14T12:00:00Z", [], ["x"], [1], [None],
    [[]], [{}], {}, {"a": "b"}, {"a": 1}, {"a": None}, {"a": {}}, {"a": "1.5e3"},
)  # fmt: skip


def judged(job: Object) -> tuple[list[Fault], list[Dropped]]:
    return operator_types.judge(json.dumps(job, separators=(",", ":")).encode())


def worker(**container: object) -> Object:
    """A job with these fields in the container of its workers."""
    job = mpi_job()
    job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0] |= container
    return job


def asking(**limits: object) -> Object:
    return {"resources": {"limits": limits}}


QUANTITY = "not a quantity; write one like 500m, 2 or 1Gi"
PORT = {"ports": [{"containerPort": 2**31}]}


@pytest.mark.parametrize(
    ("container", "field", "says"),
    [
        (
            {"env": [{"name": "A"}, {"name": "B", "value": 1}]},
            "env[1].value",
            "1 is not a string; put it in quotes",
        ),
        (asking(cpu=2, memory="1GB"), "resources.limits.memory", f'"1GB" is {QUANTITY}'),
        (
            asking(**{"nvidia.com/gpu": True}),
            "resources.limits[nvidia.com/gpu]",
            f"true is {QUANTITY}",
        ),
        ({"tty": "yes"}, "tty", '"yes" is not a boolean; write true or false, without quotes'),
        ({"command": "python"}, "command", '"python" is not a list; begin each item with a dash'),
        ({"resources": []}, "resources", "[] is not an object; write its fields below it"),
        (PORT, "ports[0].containerPort", "2147483648 is not a whole number of 32 bits"),
    ],
)
def test_a_value_that_it_cannot_decode_is_named_with_the_remedy(
    container: Object, field: str, says: str
) -> None:
    [fault], _ = judged(worker(**container))
    assert fault.field == f"{WORKER}.template.spec.containers[0].{field}"
    assert fault.message.startswith(says)
    assert fault.message.endswith(f". {WHY}")


@pytest.mark.parametrize(
    ("specs", "missing"),
    [
        ({"Launcher": None, "Worker": None}, ["Launcher"]),
        ({"launcher": {}}, ["Launcher"]),
        ({"Launcher": {}}, ["Launcher.template.spec.containers"]),
        (
            {"Launcher": {"template": {"spec": {"containers": []}}}},
            ["Launcher.template.spec.containers"],
        ),
        ({"Launcher": {"template": {"spec": {"containers": [None]}}}, "Worker": None}, []),
        (
            {"Launcher": {"template": {"spec": {"containers": [{}]}}}, "Worker": {}},
            ["Worker.replicas"],
        ),
        (
            {
                "Launcher": {"template": {"spec": {"containers": [{}]}}},
                "Worker": {"replicas": None},
            },
            ["Worker.replicas"],
        ),
        ({"Launcher": {"template": {"spec": {"containers": [{}]}}}, "Worker": {"replicas": 0}}, []),
    ],
)
def test_what_it_uses_without_a_look_must_be_there(specs: Object, missing: list[str]) -> None:
    job = {**mpi_job(), "spec": {"mpiReplicaSpecs": specs}}
    faults, _ = judged(job)
    assert [fault.field for fault in faults] == [
        f"spec.mpiReplicaSpecs.{field}" for field in missing
    ]
    assert all("is missing; " in fault.message and fault.message.endswith(WHY) for fault in faults)


def moved(job: Object, path: str, to: str) -> Object:
    """Rename a field of a job."""
    *parents, name = path.split(".")
    place = job["spec"]
    for key in parents:
        place = place[key]
    place[to] = place.pop(name)
    return job


ROLES = "mpiReplicaSpecs"
POD = f"{ROLES}.Launcher.template.spec"


@pytest.mark.parametrize(
    ("path", "to", "missing", "says"),
    [
        (f"{ROLES}.Launcher", "launcher", f"{ROLES}.Launcher", "Launcher instead of launcher?"),
        (ROLES, "mpiReplicaSpec", f"{ROLES}.Launcher", "mpiReplicaSpecs instead of mpiReplicaSpec"),
        (f"{POD}.containers", "container", f"{POD}.containers", "containers instead of container?"),
        (POD, "specs", f"{POD}.containers", "spec instead of specs?"),
        (
            f"{ROLES}.Launcher.template",
            "templates",
            f"{POD}.containers",
            "template instead of templates?",
        ),
        (f"{ROLES}.Worker.replicas", "replica", f"{ROLES}.Worker.replicas", "instead of replica?"),
        (f"{ROLES}.Launcher", "Master", f"{ROLES}.Launcher", "describe the launcher there"),
    ],
)
def test_a_near_name_beside_a_missing_field_is_named(
    path: str, to: str, missing: str, says: str
) -> None:
    [fault], _ = judged(moved(mpi_job(), path, to))
    assert fault.field == f"spec.{missing}"
    assert fault.message.startswith("is missing; ")
    assert says in fault.message
    assert fault.message.endswith(WHY)


def test_fields_that_it_does_not_know_are_dropped_at_any_depth() -> None:
    job = worker(
        startupProbe={"httpGet": {"port": 1}},
        livenessProbe={"grpc": {"port": 1}},
        resizePolicy=None,
    )
    assert [tuple(one) for one in judged(job)[1]] == [
        (f"{WORKER}.template.spec.containers[0].startupProbe", "Container.startupProbe"),
        (f"{WORKER}.template.spec.containers[0].livenessProbe.grpc", "Probe.grpc"),
    ]


def test_the_metadata_is_left_to_the_api_server() -> None:
    assert judged({**mpi_job(), "metadata": {"name": 1, "managedFields": "x"}}) == ([], [])


@pytest.mark.parametrize(
    "container",
    [
        {"env": [{"name": 1, "value": 1}] * 4900},
        {"args": [1] * 14_000},
        {f"x{number}": 1 for number in range(14_000)},
        {"resources": {"limits": {"cpu": "1" * 1_000_000 + "x"}}},
        {"k" * 100_000: 1, "env": [{"k" * 100_000: "v" * 100_000, "value": ["v" * 100_000]}]},
    ],
)
def test_a_hostile_job_yields_few_and_short_findings(container: Object) -> None:
    faults, dropped = judged(worker(**container))
    assert 1 <= len(faults) + len(dropped) <= operator_types.MOST
    assert all(len(str(fault)) < 500 for fault in faults)
    assert all(len(one.field) < 200 and len(one.known_as) < 200 for one in dropped)


@pytest.mark.parametrize(
    "values",
    [
        [1] * 20_000,
        [[]] * 20_000,
        [{}] * 20_000,
        ["x"] * 20_000,
        [{"name": "a"}] * 8_000,
        [[1]] * 8_000,
    ],
)
def test_a_job_of_very_many_values_is_not_judged(values: list[object]) -> None:
    with pytest.raises(meta.TooLarge):
        judged(worker(args=values))


def test_commas_in_texts_are_no_values() -> None:
    assert judged(worker(args=['print("a", [1,2,3])\\\n' * 10_000])) == ([], [])


@pytest.mark.thorough
@needs_go
def test_the_table_is_what_its_code_says() -> None:
    assert types.TABLE.read_text() == types.table(), "run `make manifests`"


@pytest.mark.thorough
@needs_go
def test_its_decoder_and_the_table_agree_on_every_field() -> None:
    table = json.loads(types.TABLE.read_text())
    jobs = [with_value(path, value) for path in paths(table) for value in VALUES]
    random = Random(20200514)
    quantity = (
        "spec",
        "mpiReplicaSpecs",
        "W",
        "template",
        "spec",
        "containers",
        "[]",
        "resources",
        "limits",
        "cpu",
    )
    jobs += [
        with_value(
            quantity,
            f"{start}{random.randint(0, 9)}{''.join(random.choices('0159.+-eEinumkKMGTP ', k=4))}",
        )
        for start in ("", "+", "-", " ", ".", "0.")
        for _ in range(1000)
    ]
    sent = [json.dumps(job, separators=(",", ":")).encode() for job in jobs]
    differing = [
        (job, error)
        for job, error in zip(sent, types.errors(sent), strict=True)
        if bool(error)
        != any("is missing; " not in fault.message for fault in operator_types.judge(job)[0])
    ]
    assert differing == []
    assert len(jobs) > 10_000


def paths(table: dict[str, dict[str, str]]) -> Iterator[tuple[str, ...]]:
    """Yield a path to each field of each struct; `[]` stands for the first item of a list."""
    todo: list[tuple[tuple[str, ...], str]] = [
        (("spec",), "MPIJobSpec"),
        (("status",), "JobStatus"),
    ]
    seen = set[str]()
    while todo:
        path, kind = todo.pop()
        yield path
        while kind.startswith(("[]", "{}")):
            path, kind = (*path, "[]" if kind.startswith("[]") else "Launcher"), kind[2:]
            yield path
        if kind in table and kind not in seen:
            seen.add(kind)
            todo += [
                ((*path, field), inner) for field, inner in table[kind].items() if inner != "any"
            ]


def with_value(path: tuple[str, ...], value: object) -> Object:
    for key in reversed(path):
        value = [value] if key == "[]" else {key: value}
    made: Any = value
    return {"apiVersion": "kubeflow.org/v1", "kind": "MPIJob", "metadata": {"name": "j"}, **made}
