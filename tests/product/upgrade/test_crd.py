import copy
from typing import Any

import pytest

from mpijob_elastic.install.refusal import Refused
from tests.product.upgrade.definitions import STAY, definition, v1
from upgrade import crd
from upgrade.crd import Form


def without_v1(one: dict[str, Any]) -> dict[str, Any]:
    rest = copy.deepcopy(one)
    rest["spec"]["versions"] = [version for version in rest["spec"]["versions"] if version["name"] != "v1"]
    return rest


@pytest.mark.parametrize("name", STAY)
def test_scale_and_columns_are_added_and_nothing_else_changes(name: str) -> None:
    before = definition(name)
    after = crd.upgraded(before)
    assert v1(after)["subresources"] == {"status": {}, "scale": crd.SCALE}
    assert without_v1(after) == without_v1(before)
    assert {key for key in v1(after) if v1(after)[key] != v1(before).get(key)} <= {
        "subresources",
        "additionalPrinterColumns",
        "schema",
    }
    assert before == definition(name)


def test_columns_of_the_legacy_form() -> None:
    columns = v1(crd.upgraded(definition("v0.2.3")))["additionalPrinterColumns"]
    assert [column["name"] for column in columns] == ["State", "Desired", "Active", "Elastic", "Age"]


def test_an_administrators_columns_stay_and_age_is_last() -> None:
    before = definition("administrator")
    columns = v1(crd.upgraded(before))["additionalPrinterColumns"]
    assert [column["name"] for column in columns] == ["Team", "Desired", "State", "Active", "Elastic", "Age"]
    assert all(column in columns for column in v1(before)["additionalPrinterColumns"])


def test_the_selector_is_given_a_place_where_it_would_be_pruned() -> None:
    schema = v1(crd.upgraded(definition("administrator")))["schema"]["openAPIV3Schema"]
    workers = schema["properties"]["status"]["properties"]["replicaStatuses"]["additionalProperties"]
    assert workers["properties"]["selector"] == {"type": "string"}
    assert workers["properties"]["active"] == {"type": "integer"}


def test_the_legacy_form_stays_unless_asked_for() -> None:
    before = definition("v0.2.3")
    assert crd.upgraded(before)["spec"]["preserveUnknownFields"] is True
    assert v1(crd.upgraded(before))["schema"] == v1(before)["schema"]


def test_a_structural_schema_checks_the_same_and_keeps_every_field() -> None:
    after = crd.upgraded(definition("v0.2.3"), structural=True)
    assert "preserveUnknownFields" not in after["spec"]
    kept = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    worker = {**kept, "properties": {"replicas": {"type": "integer", "minimum": 1}}}
    launcher = {**kept, "properties": {"replicas": {"type": "integer", "minimum": 1, "maximum": 1}}}
    specs = {**kept, "properties": {"Launcher": launcher, "Worker": worker}}
    spec = {**kept, "properties": {"slotsPerWorker": {"type": "integer", "minimum": 1}, "mpiReplicaSpecs": specs}}
    assert v1(after)["schema"]["openAPIV3Schema"] == {**kept, "properties": {"spec": spec}}


@pytest.mark.parametrize("structural", [False, True])
@pytest.mark.parametrize("name", STAY)
def test_a_second_time_nothing_changes(name: str, structural: bool) -> None:
    once = crd.upgraded(definition(name), structural=structural)
    assert crd.upgraded(once, structural=structural) == once


@pytest.mark.parametrize("name", STAY)
def test_there_and_back(name: str) -> None:
    before = definition(name)
    live = crd.upgraded(before)
    assert crd.reverted(live, before) == before
    assert not crd.stays_structural(live, before)


def test_the_way_back_from_a_structural_schema_is_said_to_be_closed() -> None:
    before = definition("v0.2.3")
    live = crd.upgraded(before, structural=True)
    back = crd.reverted(live, before)
    assert crd.stays_structural(live, before)
    assert v1(back)["subresources"] == {"status": {}}
    assert "preserveUnknownFields" not in back["spec"]


def test_what_others_changed_since_stays_on_the_way_back() -> None:
    before = definition("administrator")
    live = crd.upgraded(before)
    theirs = {"name": "Queue", "type": "string", "jsonPath": ".metadata.labels.queue"}
    v1(live)["additionalPrinterColumns"] = [theirs, *v1(live)["additionalPrinterColumns"]]
    live["spec"]["names"]["categories"] = ["all"]
    back = crd.reverted(live, before)
    assert [column["name"] for column in v1(back)["additionalPrinterColumns"]] == ["Queue", "Team", "Desired", "Age"]
    assert back["spec"]["names"]["categories"] == ["all"]
    assert "scale" not in v1(back)["subresources"]


def test_forms_are_told_apart() -> None:
    assert [crd.form(definition(name)) for name in STAY] == [Form.LEGACY, Form.STRUCTURAL]


def test_v2beta1_in_the_store_is_refused() -> None:
    with pytest.raises(Refused, match=r"stores its objects as v2beta1.*elastic itself"):
        crd.upgraded(definition("v0.3.0"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "v1beta9"}, "has no version v1, only"),
        ({"served": False}, "does not serve version v1"),
        ({"subresources": {}}, "no status subresource"),
        ({"subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.size"}}}, "another scale subresource"),
    ],
)
def test_what_is_not_as_known_is_refused(change: dict[str, Any], message: str) -> None:
    one = definition("administrator")
    v1(one).update(change)
    with pytest.raises(Refused, match=message):
        crd.upgraded(one)


def test_the_training_operators_definition_is_refused() -> None:
    one = definition("administrator")
    specs = {"type": "object", "additionalProperties": {"type": "object"}}
    v1(one)["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["mpiReplicaSpecs"] = specs
    with pytest.raises(Refused, match="training-operator"):
        crd.upgraded(one)
