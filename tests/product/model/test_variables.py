"""`$(NAME)` becomes the variable's value as Kubernetes does it, and no environment makes it large."""

import pytest

from mpijob_elastic.model import variables
from mpijob_elastic.model.bounds import LONGEST_SCRIPT


@pytest.mark.parametrize(
    ("word", "environment", "expected"),
    [
        ("$(A)", [("A", "1")], "1"),
        ("-np=$(A)$(B)", [("A", "1"), ("B", "2")], "-np=12"),
        ("$(A)", [("A", "1"), ("A", "2")], "2"),
        ("$(A)", [("A", "1"), ("A", None)], "$(A)"),
        ("$(B)", [("A", "1"), ("B", "$(A)x")], "1x"),
        ("$(B)", [("B", "$(A)x"), ("A", "1")], "$(A)x"),
        ("$(A)", [("A", "$(A)")], "$(A)"),
        ("$(A)", [("A", "$$(B)"), ("B", "1")], "$(B)"),
        ("$$(A)", [("A", "1")], "$(A)"),
        ("$$$(A)", [("A", "1")], "$1"),
        ("$($(A)", [("A", "1")], "$(1"),
        ("$A ${A} $( $(", [("A", "1")], "$A ${A} $( $("),
        ("$(A", [("A", "1")], "$(A"),
        ("$()", [("", "1")], "1"),
        ("$(A)", [("A", "")], ""),
    ],
)
def test_a_name_becomes_its_value(
    word: str, environment: list[tuple[str, str | None]], expected: str
) -> None:
    assert variables.replaced([word], environment) == [expected]


def test_values_that_double_end_as_unknown() -> None:
    doubling = [("V0", "x" * 64)] + [(f"V{n}", f"$(V{n - 1})$(V{n - 1})") for n in range(1, 40)]
    [found] = variables.replaced(["$(V39)"], doubling)
    assert len(found) <= 4 * LONGEST_SCRIPT
    assert "$" in found
    [long] = variables.replaced(["$(V)" * 100], [("V", "y" * LONGEST_SCRIPT)])
    assert len(long) <= 4 * LONGEST_SCRIPT


def test_a_word_of_no_dollar_is_given_back() -> None:
    words = ["a", "b"]
    assert variables.replaced(words, [("a", "c")]) == words
