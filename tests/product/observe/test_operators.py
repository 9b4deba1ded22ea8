"""The marks of elastic operators, on objects as the API server has them after each writer."""

import json
from typing import Any

import pytest

from mpijob_elastic.model.job import script_fingerprint
from mpijob_elastic.model.memory import Memory, render_memory
from tests.product.observe.operator_worlds import World, created, look, pods_of

THEIRS = "#!/bin/sh\necho scale-worker-0:1\necho scale-worker-1:1"
OURS = THEIRS + "\n"
WRITTEN = "2026-01-02T00:00:00Z"
WRITTEN_AT = 1767312000.0


def written(script: str | None, *, manager: str, memory: str | None = None) -> World:
    """A job whose list that manager wrote; memory: None if it put a whole ConfigMap in the place of ours."""
    world = created()
    config = world["ConfigMap/scale-config"]
    config["data"]["discover_hosts.sh"] = script
    config["metadata"]["annotations"] = {} if memory is None else {"mpijob-elastic/memory": memory}
    config["metadata"]["managedFields"] = [
        managed("mpi-operator.v1", "2026-01-01T00:00:00Z", {"f:hostfile": {}, "f:kubexec.sh": {}}),
        managed(manager, WRITTEN, {"f:discover_hosts.sh": {}}),
        {"manager": "kubectl-label", "operation": "Update", "fieldsV1": {"f:metadata": {}}},
    ]
    return world


def managed(manager: str, time: str, keys: dict[str, Any]) -> dict[str, Any]:
    fields = {"f:data": {".": {}, **keys}, "f:metadata": {"f:labels": {".": {}, "f:app": {}}}}
    return {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": time,
        "fieldsV1": fields,
    }


def memory_of(script: str) -> str:
    return render_memory(Memory(script=script_fingerprint(script)))


@pytest.mark.parametrize(
    ("script", "manager", "memory", "foreign"),
    [
        (THEIRS, "mpi-operator.v1", None, True),
        ("#!/bin/sh", "mpi-operator.v1", None, True),  # no worker runs yet
        (
            "#!/bin/sh\necho scale-launcher:1\n\necho scale-worker-0:1",
            "mpi-operator.v1",
            None,
            True,
        ),  # with GPUs
        (THEIRS, "renamed", None, True),  # nobody writes this by hand and drops our annotation too
        (THEIRS, "training-operator", memory_of(OURS), True),
        (THEIRS, "kubectl-edit", memory_of(OURS), False),
        ("garbage", "mpi-operator.v1", None, False),
        ("#!/bin/sh\necho other-worker-0:1", "mpi-operator.v1", None, False),
        (
            "#!/bin/sh\n",
            "mpi-operator.v1",
            None,
            False,
        ),  # v0.2.3 created it, the webhook added the key
        (OURS, "kubectl-edit", None, False),  # our annotation was deleted
        (OURS, "mpijob-elastic", memory_of(OURS), False),
    ],
)
def test_a_writer_is_known_by_its_form_and_its_name_or_what_it_drops(
    script: str, manager: str, memory: str | None, foreign: bool
) -> None:
    view = look(written(script, manager=manager, memory=memory))
    assert bool(view.foreign) is foreign
    assert view.config is not None
    assert (view.config.facts.writer, view.config.facts.written_at) == (manager, WRITTEN_AT)
    if foreign:
        assert f"is written by {manager}, in the form of an elastic operator" in view.foreign
        assert view.foreign_at == WRITTEN_AT


@pytest.mark.parametrize(
    ("script", "memory", "foreign"),
    [
        (THEIRS, None, True),
        (None, None, True),
        ("garbage", None, True),
        (THEIRS, memory_of(OURS), True),
        ("garbage", memory_of(OURS), False),  # the operator is gone, its pods are not
        (OURS, memory_of(OURS), False),  # the same: it would have replaced our list
    ],
)
def test_labels_of_v030_are_a_mark_where_our_list_does_not_stay(
    script: str | None, memory: str | None, foreign: bool
) -> None:
    world = written(script, manager="kubectl-edit", memory=memory)
    if script is None:
        del world["ConfigMap/scale-config"]["data"]["discover_hosts.sh"]
    world["Pod/scale-worker-1"]["metadata"]["labels"]["replica-index"] = "1"
    assert bool(look(world).foreign) is foreign


def test_a_new_pod_is_a_sign_of_life() -> None:
    world = written(THEIRS, manager="mpi-operator.v1")
    world["Pod/scale-worker-1"]["metadata"]["labels"]["replica-index"] = "1"
    world["Pod/scale-worker-1"]["metadata"]["creationTimestamp"] = "2026-01-03T00:00:00Z"
    assert look(world).foreign_at == WRITTEN_AT + 86_400.0


@pytest.mark.parametrize("managed", [None, []])
def test_without_managed_fields_the_writer_is_unknown(managed: list[Any] | None) -> None:
    world = created()
    world["ConfigMap/scale-config"]["metadata"]["managedFields"] = managed
    world["ConfigMap/scale-config"]["data"]["discover_hosts.sh"] = THEIRS
    view = look(world)
    assert "is written by another operator" in view.foreign
    assert view.foreign_at == 0.0


def test_labels_of_training_operator_last_as_long_as_its_pods() -> None:
    world = written(OURS, manager="mpijob-elastic", memory=memory_of(OURS))
    for pod in pods_of(world):
        pod["metadata"]["labels"]["training.kubeflow.org/job-name"] = "scale"
    view = look(json.loads(json.dumps(world)))
    assert view.foreign == "its pods carry labels of training-operator"
    assert view.foreign_at == float("inf")


def test_a_list_of_somebody_else_that_names_strangers_is_garbage() -> None:
    view = look(
        written("#!/bin/sh\necho stranger:1\n", manager="kubectl-edit", memory=memory_of(OURS))
    )
    assert view.config is not None
    assert view.config.published is None
    view = look(written(OURS, manager="kubectl-edit", memory=memory_of(THEIRS)))
    assert view.published_pods == ("scale-worker-0", "scale-worker-1")
