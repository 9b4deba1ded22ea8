"""The example with MPI changes its size by elastic.sh, and does each step once."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.driver.world import MPIS, ROOT, World, until, world_of

PROGRAM = ROOT / "docs" / "examples" / "elastic-mpi" / "train_mpi.py"
STEPS = 60
# What comes out of so many steps, whatever the sizes were.
WEIGHTS = [1.7298, -0.864, 0.4925]


@pytest.fixture(params=MPIS)
def world(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    """A job with three workers, whose environment has mpi4py."""
    with world_of(tmp_path, shell_name="dash", mpi=request.param) as made:
        if not list(made.mpi.folder.parent.glob("lib/python*/site-packages/mpi4py")):
            pytest.skip(f"make .venv/{request.param}/made installs the mpi4py that this needs")
        made.add("w0", "w1", "w2")
        yield made


def told(world: World, event: str) -> list[dict[str, Any]]:
    """Return what the ranks told of an event."""
    lines = [line[line.index("{") :] for line in world.log.splitlines() if '{"event"' in line]
    found = [json.loads(line) for line in lines]
    return [one for one in found if one["event"] == event]


def trains(world: World, ranks: int, steps: int) -> None:
    """Wait until so many ranks have done so many steps."""
    until(
        lambda: Counter(one["size"] for one in told(world, "step"))[ranks] >= steps,
        f"{steps} steps of {ranks} ranks",
        shown=lambda: world.log,
    )


def test_each_step_is_done_once_whatever_the_size_is(world: World) -> None:
    variables = {
        "CHECKPOINT": f"{world.folder}/checkpoint",
        "STEPS": STEPS,
        "STEP_SECONDS": 0.1,
        # MPICH's UCX takes the workers for one machine, and their shared memory fails: all have one
        # network, but namespaces of processes of their own.
        "UCX_TLS": "tcp,self",
    }
    program = [f"{world.mpi.folder}/python", f"{PROGRAM}"]
    mpirun, *words = world.mpi.command
    world.start(
        command=[
            *(f"{world.mpi.folder}/{mpirun}", *words),
            *("env", *(f"{name}={value}" for name, value in variables.items()), *program),
        ]
    )
    world.publish("w0", "w1")
    trains(world, 2, 5)
    world.publish("w0", "w1", "w2")
    trains(world, 3, 5)
    world.publish("w0")
    trains(world, 1, 5)
    assert world.code() == 0
    assert [one["step"] for one in told(world, "step")] == [*range(1, STEPS + 1)]
    assert sorted(one["step"] for one in told(world, "start"))[:2] == [0, 0]
    [end] = told(world, "end")
    assert end["step"] == STEPS
    assert end["weights"] == WEIGHTS
