"""The example with MPI changes its size by elastic.sh, and does each step once."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mpijob_elastic.model.progress import ProgressLine, parse
from tests.driver.world import MPIS, ROOT, World, until, world_of

EXAMPLES = ROOT / "docs" / "examples"
PROGRAM = EXAMPLES / "elastic-mpi" / "train_mpi.py"
# Each worker has a file of its own, as a pod has its own /dev/shm.
WITH_PROGRESS = 'MPIJOB_ELASTIC_PROGRESS=$PROGRESS.$(hostname) exec "$@"'
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


def progress_of(world: World, pod: str) -> ProgressLine:
    """Return the line that the ranks of a worker have written last."""
    text = (world.folder / f"progress.{pod}").read_text().strip()
    line = parse(f"ended {text}", asked_at=0)
    assert line, text
    return line


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
        "PYTHONPATH": EXAMPLES,
        "PROGRESS": f"{world.folder}/progress",
    }
    program = ["sh", "-c", WITH_PROGRESS, "sh", f"{world.mpi.folder}/python", f"{PROGRAM}"]
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
    lines = {pod: progress_of(world, pod) for pod in ("w0", "w1", "w2")}
    assert [line.ranks for line in lines.values()] == [1, 3, 3]
    assert lines["w0"].step == STEPS
    assert lines["w1"].step == lines["w2"].step, "all ranks end with the same step"
    for line in lines.values():
        assert (line.samples, line.total) == (60, STEPS)
        assert (line.repeated, line.again, line.open) == (0, 0, 0)
        assert line.own_ms < line.step_ms
    # A step takes 0.1 s at least, and w0 was there all the time.
    assert 0.099 * STEPS <= lines["w0"].kept <= lines["w0"].at - lines["w0"].first
    assert 0.099 * lines["w1"].step <= lines["w1"].kept <= lines["w1"].at - lines["w1"].first
    assert lines["w2"].kept < lines["w1"].kept
