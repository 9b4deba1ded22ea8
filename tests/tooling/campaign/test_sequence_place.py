"""What counts as a hot loop among the writes of a controller."""

import pytest

from tests.campaign.sequence_place import MOST_WRITES, Written, hot_loops

POD = "DELETE /api/v1/namespaces/place-0/pods/s0-worker-1"


def writes(count: int, *, every: float, what: str = POD) -> list[Written]:
    """So many writes, a pause (seconds) apart."""
    return [Written(at=1000.0 + number * every, what=what) for number in range(count)]


@pytest.mark.parametrize(
    ("written", "found"),
    [
        pytest.param([], 0, id="nothing"),
        pytest.param(writes(MOST_WRITES, every=0.01), 0, id="as many as may be"),
        pytest.param(writes(MOST_WRITES + 1, every=0.01), 1, id="one more"),
        pytest.param(writes(1000, every=2.0), 0, id="many in a long time"),
        pytest.param(
            writes(200, every=5.0)
            + [one._replace(at=one.at + 2000.0) for one in writes(70, every=0.1)],
            1,
            id="a loop after a long rest",
        ),
        pytest.param(
            [*writes(40, every=0.1), *writes(40, every=0.1, what="PATCH " + POD)],
            0,
            id="two kinds of writes",
        ),
    ],
)
def test_a_write_that_is_made_again_and_again_is_found(written: list[Written], found: int) -> None:
    assert len([*hot_loops(written)]) == found
