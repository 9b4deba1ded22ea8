"""What a change of a training costs in worker-seconds, and what it would cost at least."""

import pytest

from bench.real.timeline import Course, limited, lost
from lab.training.allocated import Allocated, Held
from lab.training.log import Told


def step(number: int, *, began: float, size: int = 2) -> Told:
    """A step of a second."""
    hosts = tuple("abc"[:size])
    return Told(
        event="step",
        time=began + 1,
        began=began,
        host="a",
        rank=0,
        size=size,
        step=number,
        hosts=hosts,
    )


def held(*pods: tuple[float, float | None]) -> Allocated:
    return Allocated(
        pods={str(at): Held(name="", bound=one[0], ended=one[1]) for at, one in enumerate(pods)}
    )


TWO = ((0.0, None), (0.0, None))


@pytest.mark.parametrize(
    ("pods", "steps", "expected"),
    [
        pytest.param(TWO, [step(n, began=10 + n) for n in range(10)], 0, id="no pause"),
        pytest.param(TWO, [step(1, began=10), step(2, began=19)], 16, id="a pause of 8 s"),
        pytest.param(TWO, [step(1, began=9.5), step(2, began=19)], 17, id="a step half before"),
        pytest.param(TWO, [step(1, began=10), step(1, began=19)], 18, id="a step done again"),
        pytest.param(
            (*TWO, (15.0, None)), [step(1, began=10), step(2, began=19, size=3)], 20, id="one more"
        ),
        pytest.param(((0.0, None), (0.0, 12.0)), [step(1, began=10)], 10, id="one is gone"),
        pytest.param(((0.0, None), (None, None)), [], 10, id="one has no node"),
    ],
)
def test_worker_seconds_without_a_step(
    pods: tuple[tuple[float, float | None], ...], steps: list[Told], expected: float
) -> None:
    assert lost(held(*pods), steps, edited=10, until=20) == pytest.approx(expected)


def course(title: str, *, pause: float, trained: float | None = 5.0) -> Course:
    return Course(title=title, visible=1, listed=1, trained=trained, pause=pause)


def test_the_limit_is_an_import_of_each_new_rank_and_one_forming() -> None:
    courses = [course("2→3", pause=9), course("3→1", pause=2), course("1→3", pause=8)]
    found = [one.limit for one in limited(courses, imports=4)]
    assert found == [4 + 3 * 2, 1 * 2, 2 * 4 + 3 * 2]


def test_without_a_pause_of_a_forming_there_is_no_limit() -> None:
    courses = [course("2→3", pause=9), course("3→1", pause=2, trained=None)]
    assert [one.limit for one in limited(courses, imports=4)] == [0, 0]
