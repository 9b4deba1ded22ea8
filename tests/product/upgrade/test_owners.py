import json
from typing import Any

import pytest

from tests.product.upgrade.definitions import definition, v1
from upgrade import crd, owners

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def written(*entries: tuple[str, str, str]) -> dict[str, Any]:
    """A definition with field managers: name, operation, the field below spec."""
    one = definition("administrator")
    one["metadata"]["managedFields"] = [
        {"manager": manager, "operation": operation, "fieldsV1": {"f:spec": {f"f:{field}": {}}}}
        for manager, operation, field in entries
    ]
    return one


def scalable(one: dict[str, Any]) -> dict[str, Any]:
    v1(one)["subresources"]["scale"] = dict(crd.SCALE)
    return one


def test_writers_of_other_fields_ourselves_and_whoever_writes_once_do_not_count() -> None:
    others = (("mpijob-elastic-cli", "Update", "versions"), ("kubectl-create", "Update", "versions"))
    one = written(("flux", "Apply", "versions"), *others, ("a", "Update", "scope"))
    assert owners.writers(one) == ["flux"]


def test_nobody_is_known_without_managed_fields() -> None:
    assert owners.writers(definition("administrator")) == []
    assert not owners.is_declared(scalable(definition("administrator")))


@pytest.mark.parametrize(("operation", "declared"), [("Apply", True), ("Update", False)])
def test_a_server_side_apply_of_what_is_there_declares_it(operation: str, declared: bool) -> None:
    assert owners.is_declared(scalable(written(("flux", operation, "versions")))) is declared


@pytest.mark.parametrize("with_scale", [True, False])
def test_the_manifest_of_a_kubectl_apply_is_read(with_scale: bool) -> None:
    manifest = scalable(definition("administrator")) if with_scale else definition("administrator")
    live = scalable(definition("administrator"))
    live["metadata"]["annotations"] = {LAST_APPLIED: json.dumps(manifest)}
    assert owners.is_declared(live) is with_scale


@pytest.mark.parametrize("text", ["", "{", "[]", '{"spec": null}', '{"spec": {"versions": [{}]}}'])
def test_an_annotation_that_is_no_manifest_declares_nothing(text: str) -> None:
    live = scalable(definition("administrator"))
    live["metadata"]["annotations"] = {LAST_APPLIED: text}
    assert not owners.is_declared(live)


def test_what_somebody_declares_is_not_reverted() -> None:
    live = crd.upgraded(definition("administrator"))
    assert crd.reverted(live, definition("administrator")) == definition("administrator")
    live["metadata"]["managedFields"] = written(("flux", "Apply", "versions"))["metadata"]["managedFields"]
    assert crd.reverted(live, definition("administrator")) == live
