"""The definition with anything that an administrator may have put into it."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.examples import share
from tests.product.upgrade.definitions import definition, v1
from upgrade import crd

KEYS = st.sampled_from(["a", "b/c", "d~e", "~1", "f"])
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


@share(0.3)
@given(before=definitions(), structural=st.booleans())
def test_upgrades_repeat_without_effect_and_keep_what_is_not_theirs(before: dict[str, Any], structural: bool) -> None:
    after = crd.upgraded(before, structural=structural)
    assert crd.upgraded(after, structural=structural) == after
    columns = v1(after)["additionalPrinterColumns"]
    assert all(column in columns for column in v1(before).get("additionalPrinterColumns", []))
    assert len({column["name"].lower() for column in columns}) == len(columns)
    assert after["metadata"] == before["metadata"]
    assert after["spec"]["names"] == before["spec"]["names"]


@share(0.3)
@given(before=definitions())
def test_there_and_back_is_nothing(before: dict[str, Any]) -> None:
    assert crd.reverted(crd.upgraded(before), before) == before
