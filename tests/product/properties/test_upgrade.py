"""Upgrades of what anybody may have written: no job loses anything in silence, the definition keeps its parts."""

import contextlib
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mpijob_elastic import names
from mpijob_elastic.install import Refused
from tests.examples import share
from tests.product.upgrade.definitions import definition, v1
from upgrade import conversion, converters, crd

COUNTS = st.integers(1, 9)
WORDS = st.text("abc", min_size=1, max_size=3)
COMMANDS = st.lists(
    st.sampled_from(
        ["horovodrun", "--min-np", "2", "--max-np=8", "/etc/edl/discover_hosts.sh", "x"]
    ),
    max_size=5,
)
CONTAINERS = st.lists(
    st.fixed_dictionaries({"name": WORDS}, optional={"command": COMMANDS, "env": st.none()}),
    max_size=2,
)
TEMPLATES = st.fixed_dictionaries({"spec": st.fixed_dictionaries({"containers": CONTAINERS})})
POLICIES = st.sampled_from(["Never", "OnFailure", "Always", "ExitCode"])
UNKNOWN = st.dictionaries(WORDS.map("x-".__add__), COUNTS, max_size=2)
METADATA = st.fixed_dictionaries(
    {"name": WORDS},
    optional={
        "annotations": st.none() | st.dictionaries(WORDS, WORDS),
        "labels": st.none(),
        "uid": WORDS,
    },
)


def replica(**more: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    known = {"replicas": COUNTS, "template": TEMPLATES, "restartPolicy": POLICIES, **more}
    return st.builds(
        lambda one, extra: {**one, **extra}, st.fixed_dictionaries({}, optional=known), UNKNOWN
    )


TRAINING_JOBS = st.builds(
    lambda metadata, spec, extra, roles: {
        "apiVersion": converters.ET,
        "kind": "TrainingJob",
        "metadata": metadata,
        "spec": {**spec, **extra, "etReplicaSpecs": roles},
    },
    METADATA,
    st.fixed_dictionaries(
        {},
        optional={
            "slotsPerWorker": COUNTS,
            "cleanPodPolicy": st.just("All"),
            "restartPolicy": POLICIES,
        },
    ),
    UNKNOWN,
    st.fixed_dictionaries(
        {"launcher": replica(), "worker": replica(minReplicas=COUNTS, maxReplicas=COUNTS)}
    ),
)
OLD_MPI_JOBS = st.builds(
    lambda metadata, spec, extra, roles: {
        "apiVersion": "kubeflow.org/v1alpha2",
        "kind": "MPIJob",
        "metadata": metadata,
        "spec": {**spec, **extra, "mpiReplicaSpecs": roles},
    },
    METADATA,
    st.fixed_dictionaries(
        {}, optional={"slotsPerWorker": COUNTS, "backoffLimit": COUNTS, "mainContainer": WORDS}
    ),
    UNKNOWN,
    st.fixed_dictionaries({}, optional={"Launcher": replica(), "Worker": replica()}),
)
JSON = st.recursive(
    st.none() | st.booleans() | WORDS,
    lambda inner: st.lists(inner) | st.dictionaries(WORDS, inner),
    max_leaves=5,
)


@given(job=TRAINING_JOBS | OLD_MPI_JOBS)
def test_nothing_is_dropped_in_silence(job: dict[str, Any]) -> None:
    one = conversion.convert(job)
    noted = {note.field.rpartition(".")[2] for note in one.notes}
    roles = job["spec"].get("etReplicaSpecs", job["spec"].get("mpiReplicaSpecs", {}))
    for source in (job["spec"], *roles.values()):
        assert {key for key in source if key.startswith("x-")} <= noted
    assert one.manifest["apiVersion"] == "kubeflow.org/v1"
    specs = one.manifest["spec"]["mpiReplicaSpecs"]
    assert all(spec.keys() <= {"replicas", "template", "restartPolicy"} for spec in specs.values())
    if job["kind"] == "TrainingJob":
        assert "/etc/edl" not in str(specs["Launcher"])


@given(job=TRAINING_JOBS)
def test_bounds_are_those_of_the_job(job: dict[str, Any]) -> None:
    worker = job["spec"]["etReplicaSpecs"]["worker"]
    annotations = conversion.convert(job).manifest["metadata"]["annotations"]
    assert annotations[names.MIN_REPLICAS] == str(
        worker.get("minReplicas", worker.get("replicas", 1))
    )
    assert annotations.get(names.MAX_REPLICAS) == (
        str(worker["maxReplicas"]) if "maxReplicas" in worker else None
    )


@given(job=TRAINING_JOBS | OLD_MPI_JOBS)
def test_what_was_converted_stays_and_yaml_keeps_it(job: dict[str, Any]) -> None:
    one = conversion.convert(job)
    [again] = conversion.convert_text(conversion.render([one]), where="test")
    assert dict(again.manifest) == one.manifest


@given(
    kind=st.sampled_from([("kubeflow.org/v1alpha2", "MPIJob"), (converters.ET, "TrainingJob")]),
    metadata=JSON,
    spec=JSON,
)
def test_whatever_is_not_as_its_kind_says_is_refused_in_words(
    kind: tuple[str, str], metadata: Any, spec: Any
) -> None:
    text = yaml.safe_dump(
        {"apiVersion": kind[0], "kind": kind[1], "metadata": metadata, "spec": spec}
    )
    with contextlib.suppress(Refused):
        conversion.convert_text(text, where="test")


def test_the_refusal_says_what_is_wrong() -> None:
    with pytest.raises(Refused, match=r"MPIJob a is not a valid kubeflow\.org/v1alpha2 object"):
        conversion.convert(
            {
                "apiVersion": "kubeflow.org/v1alpha2",
                "kind": "MPIJob",
                "metadata": {"name": "a"},
                "spec": [],
            }
        )


KEYS = st.sampled_from(["a", "b/c", "d~e", "~1", "f"])
NAMES = st.sampled_from(["State", "desired", "Age", "Team", "Queue"])
COLUMNS = st.lists(
    st.builds(
        lambda name, path: {"name": name, "type": "string", "jsonPath": path},
        NAMES,
        st.sampled_from([".x", ".y"]),
    ),
    max_size=4,
    unique_by=lambda column: column["name"].lower(),
)


@st.composite
def definitions(draw: st.DrawFn) -> dict[str, Any]:
    """A definition that an administrator has changed."""
    one = definition(draw(st.sampled_from(["v0.2.3", "administrator"])))
    v1(one)["additionalPrinterColumns"] = draw(COLUMNS)
    if not v1(one)["additionalPrinterColumns"]:
        del v1(one)["additionalPrinterColumns"]
    one["metadata"]["annotations"] = draw(st.dictionaries(KEYS, st.just("x"), max_size=2))
    one["spec"]["names"]["categories"] = draw(st.lists(st.sampled_from(["all", "ml"]), max_size=2))
    return one


@share(0.3)
@given(before=definitions())
def test_upgrades_repeat_without_effect_and_keep_what_is_not_theirs(before: dict[str, Any]) -> None:
    after = crd.upgraded(before)
    assert crd.upgraded(after) == after
    columns = v1(after)["additionalPrinterColumns"]
    assert all(column in columns for column in v1(before).get("additionalPrinterColumns", []))
    assert len({column["name"].lower() for column in columns}) == len(columns)
    assert after["metadata"] == before["metadata"]
    assert after["spec"]["names"] == before["spec"]["names"]


@share(0.3)
@given(before=definitions())
def test_there_and_back_is_nothing(before: dict[str, Any]) -> None:
    assert crd.reverted(crd.upgraded(before), before) == before
