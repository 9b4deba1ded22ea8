"""The times at which host names may be used."""

import math
from random import Random

import pytest

from bench.spot.blacklist import Blacklist


def test_a_lost_name_is_lost_for_ever() -> None:
    names = Blacklist(cooldown=None, chance=Random(1))
    names.add("b", 10)
    assert names.usable(["a", "b", "c"], 1e9) == ("a", "c")
    assert names.next_usable(["a", "b"], 10) == math.inf
    assert names.losses == 1


@pytest.mark.parametrize(("losses", "least", "most"), [(1, 20, 30), (2, 40, 50), (3, 80, 90), (4, 100, 100)])
def test_unless_it_may_cool_down_longer_each_time(losses: int, least: float, most: float) -> None:
    names = Blacklist(cooldown=(10, 100), chance=Random(losses))
    for _ in range(losses):
        names.add("b", 1000)
    at = names.next_usable(["a", "b"], 1000)
    assert least <= at - 1000 <= most
    assert names.usable(["a", "b"], at - 0.1) == ("a",)
    assert names.usable(["a", "b"], at) == ("a", "b")
    assert names.next_usable(["a", "b"], at) == math.inf
