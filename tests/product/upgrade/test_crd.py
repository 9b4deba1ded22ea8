"""The definition: what is added to it and taken back, and whose it is, also while somebody else changes it."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from mpijob_elastic.install import Refused
from mpijob_elastic.install.objects import ObjectChange, Outcome
from tests.doubles.api import TinyApi, refused
from tests.doubles.direct import DirectClient, Sent
from tests.product.upgrade.definitions import STAY, Object, definition, v1
from upgrade import crd, scale
from upgrade.crd import Form


def without_v1(one: dict[str, Any]) -> dict[str, Any]:
    rest = copy.deepcopy(one)
    rest["spec"]["versions"] = [
        version for version in rest["spec"]["versions"] if version["name"] != "v1"
    ]
    return rest


@pytest.mark.parametrize("name", STAY)
def test_scale_and_columns_are_added_and_nothing_else_changes(name: str) -> None:
    before = definition(name)
    after = crd.upgraded(before)
    assert v1(after)["subresources"] == {"status": {}, "scale": crd.SCALE}
    assert without_v1(after) == without_v1(before)
    changed = {key for key in v1(after) if v1(after)[key] != v1(before).get(key)}
    assert changed <= {"subresources", "additionalPrinterColumns", "schema"}
    assert before == definition(name)


@pytest.mark.parametrize(
    ("name", "columns"),
    [("v0.2.3", "State Desired Active"), ("administrator", "Team Desired State Active")],
)
def test_an_administrators_columns_stay_and_age_is_last(name: str, columns: str) -> None:
    before = definition(name)
    after = v1(crd.upgraded(before))["additionalPrinterColumns"]
    assert [column["name"] for column in after] == [*columns.split(), "Phase", "Age"]
    assert all(column in after for column in v1(before).get("additionalPrinterColumns", ()))


ELASTIC = {
    "name": "Elastic",
    "type": "string",
    "jsonPath": ".metadata.annotations.mpijob-elastic/enabled",
    "description": "The job's annotation; if empty, the launcher's command decides, see mpijob-elastic get",
}


@pytest.mark.parametrize("name", STAY)
def test_the_column_of_an_earlier_version_gives_way_and_goes_on_the_way_back(name: str) -> None:
    before = definition(name)
    earlier = crd.upgraded(before)
    phase = next(
        column for column in v1(earlier)["additionalPrinterColumns"] if column["name"] == "Phase"
    )
    columns = v1(earlier)["additionalPrinterColumns"]
    v1(earlier)["additionalPrinterColumns"] = [
        ELASTIC if column == phase else column for column in columns
    ]
    assert (crd.is_scalable(earlier), crd.is_current(earlier)) == (True, False)
    assert crd.upgraded(earlier) == crd.upgraded(before)
    assert crd.is_current(crd.upgraded(earlier))
    assert crd.reverted(earlier, before) == crd.reverted(crd.upgraded(before), before)


def test_the_selector_is_given_a_place_where_it_would_be_pruned() -> None:
    schema = v1(crd.upgraded(definition("administrator")))["schema"]["openAPIV3Schema"]
    workers = schema["properties"]["status"]["properties"]["replicaStatuses"][
        "additionalProperties"
    ]
    assert (
        workers["properties"] | {"selector": {"type": "string"}, "active": {"type": "integer"}}
        == workers["properties"]
    )


def test_the_legacy_form_is_known_and_stays() -> None:
    assert [crd.form(definition(name)) for name in STAY] == [Form.LEGACY, Form.STRUCTURAL]
    before = definition("v0.2.3")
    after = crd.upgraded(before)
    assert (after["spec"]["preserveUnknownFields"], v1(after)["schema"]) == (
        True,
        v1(before)["schema"],
    )


def test_the_example_in_v1_is_scalable_and_has_the_checks_and_names_of_the_manifest() -> None:
    example = yaml.safe_load((Path(__file__).parents[3] / crd.IN_V1).read_text())
    assert (crd.form(example), crd.is_scalable(example)) == (Form.STRUCTURAL, True)
    assert crd.upgraded(example) == example
    before = definition("v0.2.3")
    names = example["spec"]["names"]
    assert names.items() <= before["spec"]["names"].items()
    assert checks(v1(example)["schema"]["openAPIV3Schema"]) == checks(
        v1(before)["schema"]["openAPIV3Schema"]
    )


def checks(schema: Any, at: str = "") -> dict[str, Object]:
    """The checks of each field of a schema, by its path."""
    found = {at: {key: schema[key] for key in ("minimum", "maximum") if key in schema}}
    for name, part in schema.get("properties", {}).items():
        found |= checks(part, f"{at}.{name}")
    return found


def test_a_definition_that_became_structural_since_stays_so_on_the_way_back() -> None:
    before, live = definition("v0.2.3"), definition("administrator")
    back = crd.reverted(crd.upgraded(live), before)
    assert "preserveUnknownFields" not in back["spec"]
    assert v1(back)["subresources"] == {"status": {}}


def test_what_others_changed_since_stays_on_the_way_back() -> None:
    before = definition("administrator")
    live = crd.upgraded(before)
    theirs = {"name": "Queue", "type": "string", "jsonPath": ".metadata.labels.queue"}
    v1(live)["additionalPrinterColumns"] = [theirs, *v1(live)["additionalPrinterColumns"]]
    live["spec"]["names"]["categories"] = ["all"]
    back = crd.reverted(live, before)
    assert [column["name"] for column in v1(back)["additionalPrinterColumns"]] == [
        "Queue",
        "Team",
        "Desired",
        "Age",
    ]
    assert (back["spec"]["names"]["categories"], "scale" in v1(back)["subresources"]) == (
        ["all"],
        False,
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "v1beta9"}, "has no version v1, only"),
        ({"served": False}, "does not serve version v1"),
        ({"subresources": {}}, "no status subresource"),
        (
            {"subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.size"}}},
            "another scale subresource",
        ),
    ],
)
def test_what_is_not_as_known_is_refused(change: dict[str, Any], message: str) -> None:
    one = definition("administrator")
    v1(one).update(change)
    with pytest.raises(Refused, match=message):
        crd.upgraded(one)


def test_definitions_of_others_are_refused() -> None:
    with pytest.raises(Refused, match=r"stores its objects as v2beta1.*elastic itself"):
        crd.upgraded(definition("v0.3.0"))
    one = definition("administrator")
    specs = {"type": "object", "additionalProperties": {"type": "object"}}
    v1(one)["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["mpiReplicaSpecs"] = (
        specs
    )
    with pytest.raises(Refused, match="training-operator"):
        crd.upgraded(one)


class Edited(TinyApi):
    """Somebody else edits the definition after each of our first reads."""

    def __init__(self, edits: int) -> None:
        super().__init__()
        self.edits = edits
        self.put(scale.DEFINITION, definition("administrator"))

    def upgraded(self, live: Any) -> Object:
        if self.edits > 0:
            self.edits -= 1
            names = {**live["spec"]["names"], "categories": [f"edit-{self.edits}"]}
            self.put(scale.DEFINITION, {**live, "spec": {**live["spec"], "names": names}})
        return crd.upgraded(live)

    async def change(self) -> ObjectChange:
        return await scale.change_definition(DirectClient(self.answer), self.upgraded)


async def test_an_edit_between_our_read_and_our_write_stays() -> None:
    api = Edited(edits=2)
    change = await api.change()
    assert change.outcome is Outcome.CONFIGURED
    stored = api.objects[scale.DEFINITION]
    assert stored["spec"]["names"]["categories"] == ["edit-0"]
    assert v1(stored)["subresources"]["scale"] == crd.SCALE
    assert (await api.change()).outcome is Outcome.UNCHANGED
    assert len(api.writes) == 1


async def test_edits_without_end_are_refused() -> None:
    api = Edited(edits=99)
    with pytest.raises(Refused, match="changed by somebody else 5 times"):
        await api.change()
    assert api.writes == []


async def test_what_the_api_server_does_not_accept_is_said() -> None:
    def refuse(sent: Sent) -> None:
        if sent.method != "GET":
            raise refused(422, "Invalid", "a column is wrong")

    api = Edited(edits=0)
    api.hook = refuse
    with pytest.raises(
        Refused,
        match=r"does not accept the change of mpijobs\.kubeflow\.org: 422 Invalid: a column",
    ):
        await api.change()


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
    others = (
        ("mpijob-elastic-cli", "Update", "versions"),
        ("kubectl-create", "Update", "versions"),
    )
    one = written(("flux", "Apply", "versions"), *others, ("a", "Update", "scope"))
    assert (crd.writers(one), crd.writers(definition("administrator"))) == (["flux"], [])


def test_a_server_side_apply_of_what_is_there_declares_it() -> None:
    declared = [
        crd.is_declared(scalable(written(("flux", way, "versions")))) for way in ("Apply", "Update")
    ]
    assert declared == [True, False]


WITH_SCALE, WITHOUT = (
    json.dumps(scalable(definition("administrator"))),
    json.dumps(definition("administrator")),
)


@pytest.mark.parametrize(
    "text", [WITH_SCALE, WITHOUT, "", "{", "[]", '{"spec": null}', '{"spec": {"versions": [{}]}}']
)
def test_the_manifest_of_a_kubectl_apply_is_read(text: str) -> None:
    live = scalable(definition("administrator"))
    live["metadata"]["annotations"] = {LAST_APPLIED: text}
    assert crd.is_declared(live) is (text == WITH_SCALE)


def test_what_somebody_declares_is_not_reverted() -> None:
    live = crd.upgraded(definition("administrator"))
    assert crd.reverted(live, definition("administrator")) == definition("administrator")
    live["metadata"]["managedFields"] = written(("flux", "Apply", "versions"))["metadata"][
        "managedFields"
    ]
    assert crd.reverted(live, definition("administrator")) == live
