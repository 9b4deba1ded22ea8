"""Measurements one after the other, of which one fails."""

import pytest

from bench.parts.partial_results import until_trouble
from lab.errors import LabError


def test_all_are_taken_in_order() -> None:
    assert until_trouble({"one": lambda: 1, "two": lambda: 2}) == ([1, 2], [])


def test_what_came_before_a_failure_is_kept_and_nothing_is_taken_after_it() -> None:
    def fail() -> int:
        raise LabError("the operator ended with exit code 255")

    taken, failures = until_trouble({"first": lambda: 1, "with the peer": fail, "third": lambda: pytest.fail("taken")})
    assert taken == [1]
    assert [str(one) for one in failures] == ["with the peer: the operator ended with exit code 255"]


def test_a_mistake_of_ours_is_no_failed_measurement() -> None:
    with pytest.raises(ZeroDivisionError):
        until_trouble({"one": lambda: 1 // 0})
