"""Two short runs of random lists; `make campaign` has long ones (tests/campaign/mpi_lists.py)."""

from pathlib import Path

import pytest

from tests.driver import random_lists
from tests.driver.world import world_of


@pytest.mark.parametrize(
    ("shell_name", "mpi", "seed"),
    [("dash", "open-mpi", 1), ("busybox", "mpich", 2)],
    ids=["open-mpi", "mpich"],
)
def test_whatever_happens_one_start_runs_at_a_time(
    tmp_path: Path, shell_name: str, mpi: str, seed: int
) -> None:
    with world_of(tmp_path, shell_name=shell_name, mpi=mpi) as world:
        assert random_lists.run(world, seed=seed, changes=12) == [], world.log
