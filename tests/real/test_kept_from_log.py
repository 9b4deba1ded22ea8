"""The tester's own figures of a training, of logs of a few lines."""

import ast
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.real import kept_from_log
from tests.real.kept_from_log import Share, shares, total

# Number, begin, end and hosts of a step.
Step = tuple[int, float, float, Sequence[str]]
A, B = ("a",), ("a", "b")


def log(*steps: Step) -> str:
    """Return what rank 0 says, behind what horovodrun puts before it."""
    told = (
        {"event": "step", "time": ended, "rank": 0, "step": number, "hosts": hosts, "began": began}
        for number, began, ended, hosts in steps
    )
    lines = [f"[0]<stdout>:{json.dumps(one)}\n" for one in told]
    return "".join(["noise\n", '[0]<stdout>:{"event": "start", "time": 1.0}\n', *lines])


def even(first: int, last: int, *, at: float, hosts: Sequence[str] = A) -> list[Step]:
    """Return steps of a second each, without pauses."""
    return [
        (number, at + number - first, at + number - first + 1, hosts)
        for number in range(first, last + 1)
    ]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param([], {}, id="nothing"),
        pytest.param(even(1, 4, at=10), {"a": Share(kept=4, steps=4)}, id="one rank"),
        pytest.param(
            [*even(1, 4, at=10), *even(5, 6, at=20, hosts=B)],
            {"a": Share(kept=6, steps=6), "b": Share(kept=2, steps=2)},
            id="a pause and another worker",
        ),
        pytest.param(
            [*even(1, 6, at=10, hosts=B), *even(5, 8, at=30)],
            {
                "a": Share(kept=8, repeated=2, steps=8, again=2),
                "b": Share(kept=4, repeated=2, steps=4, again=2),
            },
            id="two steps back, and one rank is gone",
        ),
        pytest.param(
            [*even(1, 3, at=10), *even(2, 3, at=30), *even(2, 3, at=50)],
            {"a": Share(kept=3, repeated=4, steps=3, again=4)},
            id="back twice to the same step",
        ),
        pytest.param(
            [*even(1, 5, at=10), (6, 15, 25, A), *even(7, 9, at=25)],
            {"a": Share(kept=9, steps=9)},
            id="a stalled step counts as the median",
        ),
        pytest.param(
            even(1, 2, at=1, hosts=("a.r2",)), {"a": Share(kept=2, steps=2)}, id="another host name"
        ),
    ],
)
def test_where_the_time_went(steps: list[Step], expected: dict[str, Share]) -> None:
    assert shares(log(*steps)) == expected
    assert shares(log(*steps) * 2) == expected


def test_all_workers_together() -> None:
    found = shares(log(*even(1, 4, at=10, hosts=B)))
    assert total(found.values()) == Share(kept=8, steps=8)


def test_it_uses_nothing_of_the_product() -> None:
    tree = ast.parse(Path(kept_from_log.__file__).read_text())
    modules = [one.module or "" for one in ast.walk(tree) if isinstance(one, ast.ImportFrom)]
    modules += [
        name.name for one in ast.walk(tree) if isinstance(one, ast.Import) for name in one.names
    ]
    ours = {"mpijob_elastic", "webhook", "lab", "bench", "tests"}
    assert not ours & {module.partition(".")[0] for module in modules}
