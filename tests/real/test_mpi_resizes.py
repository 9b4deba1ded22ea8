"""2→3→1→3 with elastic.sh and the mpirun of three MPIs: each change is one restart that loses no step.

Beside it the same two mpirun runs by hand, in a job of a fixed size: the end of the one by SIGUSR1,
and the start of the other.
"""

from pathlib import Path

import pytest

from lab.cluster import Cluster
from lab.training.mpi.job import MPIS, Mpi
from tests.real.mpi import Change, MpiTraining, by_hand, told

pytestmark = pytest.mark.usefixtures("mpi_image", "operator", "elastic")


@pytest.mark.parametrize("made", MPIS, ids=lambda made: made.name)
@pytest.mark.timeout(900)
def test_each_change_is_one_restart_and_loses_no_step(
    made: Mpi,
    cluster: Cluster,
    namespace: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with MpiTraining.begun(made, cluster, namespace, tmp_path, size=2) as training:
        changes: list[Change] = []
        for before, after in ((2, 3), (3, 1), (1, 3)):
            hand = by_hand(made, cluster, namespace, tmp_path, before, after)
            changes.append(training.resized(before, after, hand=hand))
            with capsys.disabled():
                print(f"\n{told(made, changes[-1])}", end="")  # noqa: T201
        assert [change.lost for change in changes] == [0, 0, 0]
        assert [change.codes for change in changes] == [[0], [0], [0]]
        training.finished()
