"""elastic.sh with a real mpirun follows the size of its job, and no worker is deleted under a rank."""

from pathlib import Path

import pytest

from lab.cluster import Cluster
from mpijob_elastic import names
from tests.driver.world import MPIS
from tests.lab.elastic_launcher import launcher_of
from tests.lab.job import Job
from tests.lab.suspended import held

pytestmark = [
    pytest.mark.lab,
    pytest.mark.usefixtures("operator", "elastic"),
    pytest.mark.skipif(
        not MPIS["mpich"].folder.is_dir(), reason="make .venv/mpich/made installs MPICH"
    ),
]
OPTIONS = ("--min-np", "1", "--gather", "1")
COMMAND = [names.ELASTIC_PATH, *OPTIONS, "--", "mpiexec", "-np", "{np}", "-f", "{hostfile}"]


async def test_a_size_that_is_edited_is_the_size_of_the_next_start(
    cluster: Cluster, job: Job, tmp_path: Path
) -> None:
    await job.create(replicas=2, command=COMMAND)
    async with launcher_of(cluster, job, tmp_path) as launcher:
        await launcher.start(*OPTIONS)
        await launcher.until_ranks(2, start=1)
        await job.scale(3)
        await launcher.until_ranks(3, start=2)
        await job.scale(1)
        await launcher.until_ranks(1, start=3)
        state = await job.until(lambda state: len(state.workers) == 1, "one worker")
        assert state.hosts == ["train-worker-0:1"]
        await job.told("SurplusDeleted", "drained", times=2)
        await job.scale(3)
        await launcher.until_ranks(3, start=4)
        saved = [note for note in launcher.notes if note[3] == "saved"]
        assert [note[0] for note in saved] == ["1"] * 2 + ["2"] * 3 + ["3"]
        await job.annotate(suspend="true")
        await job.until(lambda state: held(state, 3) and not state.hosts, "gated pods only")
        saved = [note for note in launcher.notes if note[3] == "saved"]
        assert [note[0] for note in saved[-3:]] == ["4"] * 3
