"""A worker that is truly slow is named, by an Event, within three minutes; a paused rank never is.

The slow one gets a small part of a core (cpu.max of cgroups, or cpu.cfs_quota_us); the paused one
is stopped by SIGSTOP for a minute.
"""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from lab.cluster import Cluster
from lab.node import cgroups
from lab.training.mpi.job import MPIS
from mpijob_elastic import names
from tests.real.mpi import MpiTraining
from tests.real.pods import until

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("mpi_image", "operator", "elastic", "own_node"),
]

ROOT = Path(__file__).parents[2]
REASON = "SlowWorker"
SIZE, VICTIM = 4, 2
# Seconds of CPU in a step, and microseconds of CPU in each period that the slow worker gets.
WORK, QUOTA, PERIOD = 0.02, 2_000, 100_000
NAMED_WITHIN, PAUSED_FOR, WATCHED_FOR = 180.0, 60.0, 150.0


@pytest.fixture
def training(cluster: Cluster, namespace: str, tmp_path: Path) -> Iterator[MpiTraining]:
    if not (ROOT / "mpijob_elastic" / "capabilities" / "stragglers").is_dir():
        pytest.skip(f"no notice {REASON} in this build")
    begun = MpiTraining.begun(MPIS[0], cluster, namespace, tmp_path, size=SIZE, work_seconds=WORK)
    with begun as training:
        yield training


def rank_in(training: MpiTraining, pod: str) -> int:
    """Return the process of the rank in a worker, as the machine numbers it."""
    path = "jsonpath={.status.containerStatuses[0].containerID}"
    told = training.job.cluster.kubectl("-n", training.job.namespace, "get", "pod", pod, "-o", path)
    container = told.rpartition("/")[2]
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (process / "cmdline").read_bytes()
            is_there = container in (process / "cgroup").read_text()
            if is_there and words.startswith(b"python3\0"):
                found.append(int(process.name))
    [rank] = found
    return rank


def limit(process: int) -> None:
    """Give the container of a process a small part of a core."""
    for line in Path(f"/proc/{process}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for hierarchy in cgroups.hierarchies():
            group = hierarchy / path.lstrip("/")
            if not controllers and (group / "cpu.max").exists():
                (group / "cpu.max").write_text(f"{QUOTA} {PERIOD}")
            elif "cpu" in controllers.split(",") and (group / "cpu.cfs_quota_us").exists():
                (group / "cpu.cfs_period_us").write_text(f"{PERIOD}")
                (group / "cpu.cfs_quota_us").write_text(f"{QUOTA}")


def named(training: MpiTraining) -> list[str]:
    """Return the messages of the Events that name a slow worker."""
    words = (
        "get",
        "events",
        f"--field-selector=reason={REASON}",
        "-o",
        "jsonpath={.items[*].message}",
    )
    told = training.job.cluster.kubectl("-n", training.job.namespace, *words)
    return [told] if told else []


def test_a_slow_worker_is_named(training: MpiTraining, capsys: pytest.CaptureFixture[str]) -> None:
    victim = names.worker(training.job.name, VICTIM)
    time.sleep(130)  # no worker has joined just now
    rank = rank_in(training, victim)
    since = time.time()
    limit(rank)
    [message] = until("it is named", lambda: named(training) or None, patience=NAMED_WITHIN)
    with capsys.disabled():
        print(f"\nnamed after {time.time() - since:.0f} s: {message}", end="")  # noqa: T201
    assert victim in message
    assert set(training.job.pods().values()) == {"Running"}, "nobody removes it"


def test_a_paused_rank_is_never_named(training: MpiTraining) -> None:
    time.sleep(130)
    rank = rank_in(training, names.worker(training.job.name, VICTIM))
    os.kill(rank, signal.SIGSTOP)
    time.sleep(PAUSED_FOR)
    os.kill(rank, signal.SIGCONT)
    continued = time.time()
    training.steps_with(SIZE, since=continued)
    time.sleep(WATCHED_FOR)
    assert named(training) == []
