"""elastic.sh with real MPI implementations, under random lists, lost workers and killed ranks.

See tests/driver/random_lists.py.
"""

from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.campaign.part import Options, Outcome, say
from tests.driver import random_lists
from tests.driver.world import MPIS, SHELLS, why_not, world_of

# Changes of a run.
CHANGES = 25


def run(options: Options) -> Outcome:
    """Make runs, each with the next shell and MPI."""
    if why := why_not():
        return Outcome(runs=0, violations=(why,))
    pairs = [*product(SHELLS, MPIS)]
    violations: list[str] = []
    runs, starts = 0, 0
    for number in options.runs(12):
        shell, mpi = pairs[number % len(pairs)]
        seed = options.seed + number
        with (
            TemporaryDirectory() as folder,
            world_of(Path(folder), shell_name=shell, mpi=mpi) as world,
        ):
            found = random_lists.run(world, seed=seed, changes=CHANGES)
            starts += max((note.start for note in world.notes), default=0)
        violations += [f"{shell}, {mpi}, seed {seed}: {text}" for text in found]
        runs += 1
        say(f"mpi-lists: {runs} runs, {starts} starts, {len(violations)} violations")
    return Outcome(runs=runs, violations=tuple(violations), numbers=f"{starts:,} starts")
