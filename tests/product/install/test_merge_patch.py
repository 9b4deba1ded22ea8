from hypothesis import given
from hypothesis import strategies as st

from mpijob_elastic.install.merge_patch import difference, patched

values = st.recursive(
    st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=2),
    lambda parts: st.dictionaries(st.sampled_from("abc"), parts, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.sampled_from("abc"), values, max_size=3)


@given(objects, objects)
def test_the_difference_makes_one_of_the_other(before: dict[str, object], after: dict[str, object]) -> None:
    assert patched(before, difference(before, after)) == after


def test_the_difference_names_only_what_differs() -> None:
    before = {"same": 1, "gone": 2, "inner": {"same": [1], "changed": [1]}}
    after = {"same": 1, "inner": {"same": [1], "changed": [1, 2], "new": {}}}
    assert difference(before, after) == {"gone": None, "inner": {"changed": [1, 2], "new": {}}}


def test_what_a_patch_does_not_name_stays() -> None:
    assert patched({"a": {"b": 1}, "c": 2}, {"a": {"d": {"e": 3, "f": None}}}) == {"a": {"b": 1, "d": {"e": 3}}, "c": 2}


def test_two_patches_of_one_container_do_not_undo_one_another() -> None:
    before = {"containers": [{"name": "one", "args": ["a"]}, {"name": "two"}]}
    with_env = {"containers": [{"name": "one", "args": ["a"], "env": [{"name": "x"}]}, {"name": "two"}]}
    with_args = {"containers": [{"name": "one", "args": ["a", "b"]}, {"name": "two"}]}
    both = {"containers": [{"name": "one", "args": ["a", "b"], "env": [{"name": "x"}]}, {"name": "two"}]}
    first, second = difference(before, with_env), difference(before, with_args)
    assert patched(patched(before, first), second) == patched(patched(before, second), first) == both


def test_a_list_with_other_names_is_replaced_whole() -> None:
    before, after = {"a": [{"name": "x", "b": 1}]}, {"a": [{"name": "x"}, {"name": "y"}]}
    assert patched({"a": [1]}, difference(before, after)) == after
