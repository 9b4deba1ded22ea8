"""Some of the campaign's hostile objects, without its limit of time."""

import math

import pytest

from tests.campaign import hostile_objects
from tests.campaign.part import Options


def test_a_few_thousand_of_them_do_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hostile_objects, "BUDGET", math.inf)
    monkeypatch.setattr(hostile_objects, "RUNS", 1)
    monkeypatch.setattr(hostile_objects, "BATCH", 5_000)
    assert hostile_objects.run(Options(seed=1)).violations == ()
