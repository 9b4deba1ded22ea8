"""Patches of anything, and the definition with anything that an administrator may have put into it."""

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.product.upgrade.definitions import applied, definition, v1
from upgrade import crd, json_patch

KEYS = st.sampled_from(["a", "b/c", "d~e", "~1", "f"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(KEYS, JSON, max_size=4)
NAMES = st.sampled_from(["State", "desired", "Age", "Team", "Queue"])
COLUMNS = st.lists(
    st.builds(
        lambda name, path: {"name": name, "type": "string", "jsonPath": path}, NAMES, st.sampled_from([".x", ".y"])
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


@given(before=OBJECTS, after=OBJECTS)
def test_a_patch_turns_one_into_the_other(before: dict[str, Any], after: dict[str, Any]) -> None:
    patch = json_patch.guarded(before, after)
    assert repr(sorted_(applied(copy.deepcopy(before), patch))) == repr(sorted_(after))


@given(before=OBJECTS, after=OBJECTS)
def test_every_operation_is_preceded_by_a_test(before: dict[str, Any], after: dict[str, Any]) -> None:
    tested: list[str] = []
    for operation in json_patch.guarded(before, after):
        if operation["op"] == "test":
            tested.append(operation["path"])
        else:
            path = operation["path"]
            assert path in tested or path.rpartition("/")[0] in tested


@given(before=definitions(), structural=st.booleans())
def test_upgrades_repeat_without_effect_and_keep_what_is_not_theirs(before: dict[str, Any], structural: bool) -> None:
    after = crd.upgraded(before, structural=structural)
    assert crd.upgraded(after, structural=structural) == after
    columns = v1(after)["additionalPrinterColumns"]
    assert all(column in columns for column in v1(before).get("additionalPrinterColumns", []))
    assert len({column["name"].lower() for column in columns}) == len(columns)
    assert after["metadata"] == before["metadata"]
    assert after["spec"]["names"] == before["spec"]["names"]


@given(before=definitions())
def test_there_and_back_is_nothing(before: dict[str, Any]) -> None:
    assert crd.reverted(crd.upgraded(before), before) == before


def sorted_(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: sorted_(value[key]) for key in sorted(value)}
    return [sorted_(part) for part in value] if isinstance(value, list) else value
