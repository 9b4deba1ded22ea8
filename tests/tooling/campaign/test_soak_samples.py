"""What counts as more at the end of the soak than at its beginning."""

from dataclasses import replace

import pytest

from bench.processes import MIB
from tests.campaign.soak_samples import LEAST, Sample, grown

FIRST = Sample(resident=80 * MIB, files=13, threads=1, cpu=0.0)


@pytest.mark.parametrize(
    ("last", "wrong"),
    [
        (FIRST, []),
        (replace(FIRST, resident=86 * MIB), []),
        (replace(FIRST, resident=87 * MIB), ["the controller's memory grew from 80.0 to 87.0 MiB"]),
        (replace(FIRST, files=14), ["the controller's open files grew from 13 to 14"]),
        (replace(FIRST, threads=2), ["the controller's threads grew from 1 to 2"]),
    ],
)
def test_what_stays_is_told(last: Sample, wrong: list[str]) -> None:
    assert grown([FIRST] * 5 * LEAST + [last] * 5 * LEAST, "controller") == wrong


def test_looks_under_way_are_no_growth() -> None:
    busy = replace(FIRST, files=40, resident=200 * MIB)
    assert grown([FIRST] * 9 * LEAST + [busy, FIRST, FIRST, FIRST, FIRST, busy], "controller") == []
