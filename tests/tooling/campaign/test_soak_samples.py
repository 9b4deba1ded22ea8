"""What counts as more at the end of the soak than at its beginning."""

from dataclasses import replace

import pytest

from bench.processes import MIB
from tests.campaign.soak_samples import LEAST, Sample, grown

FIRST = Sample(resident=80 * MIB, files=13, threads=1, cpu=0.0)
BUSY = replace(FIRST, files=40, threads=3)


@pytest.mark.parametrize(
    ("last", "rest", "wrong"),
    [
        (FIRST, FIRST, []),
        (BUSY, FIRST, []),
        (replace(FIRST, resident=86 * MIB), FIRST, []),
        (replace(FIRST, resident=87 * MIB), FIRST, ["the controller's memory grew from 80.0 to 87.0 MiB"]),
        (FIRST, replace(FIRST, files=15), []),
        (FIRST, replace(FIRST, files=16), ["the controller's open files grew from 13 to 16"]),
        (FIRST, replace(FIRST, threads=2), ["the controller's threads grew from 1 to 2"]),
    ],
)
def test_what_stays_is_told(last: Sample, rest: Sample, wrong: list[str]) -> None:
    hour = [BUSY, *[FIRST] * 5 * LEAST, *[last] * 5 * LEAST]
    assert grown(hour, [BUSY, rest, rest], "controller") == wrong


def test_a_moment_of_much_work_is_no_growth() -> None:
    peak = replace(FIRST, resident=200 * MIB)
    assert grown([FIRST] * 9 * LEAST + [peak, *[FIRST] * (LEAST - 2), peak], [FIRST], "controller") == []
