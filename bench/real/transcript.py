"""Resize a training job 2→3→1→3→4→2, and record the course of each change."""

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from bench.audit import Tail
from bench.real import visibility
from bench.real.timeline import Course, course
from bench.real.visibility import Watcher
from lab.cluster import Cluster
from lab.errors import LabError
from lab.processes import spawn
from lab.training.job import NAME, TrainingJob, workers
from lab.training.log import KILLED, Log, first_with, parse
from mpijob_elastic import names

SIZES = (2, 3, 1, 3, 4, 2)
# Seconds. Without a touch a kubelet takes 60 to 90.
LIMIT = 150.0
POLL = 0.25
# Seconds after each change, so that the next starts at rest: a discovery period and the last pod's end.
REST = 4.0
ENVIRONMENT = {"TARGET_STEPS": "1000000", "MAX_STEPS": "1000000", "STEP_SECONDS": "0.25", "COMMIT_STEPS": "4"}


@dataclass(frozen=True, kw_only=True)
class Round:
    """All changes once; number of killed ranks, and of hosts that Horovod blacklisted."""

    courses: Sequence[Course]
    killed: int
    blacklisted: int


def run(cluster: Cluster, *, namespace: str) -> Round:
    """Run a round in a new job. Raises LabError if it does not start to train."""
    job = TrainingJob(cluster=cluster, namespace=namespace)
    with tempfile.TemporaryDirectory() as folder:
        job.create(ENVIRONMENT)
        _await("the launcher runs", lambda: job.outcome() == "Running")
        with _followed(job, Path(folder) / "log") as log, _watched(job, Path(folder) / "sights") as watcher:
            _await("training begins", lambda: first_with(log().steps, size=SIZES[0], since=0) is not None)
            courses = [_change(job, old, new, log, watcher) for old, new in pairwise(SIZES)]
            told = log()
    killed = sum(code == KILLED for code in told.exits)
    return Round(courses=courses, killed=killed, blacklisted=len(told.blacklisted))


def _change(job: TrainingJob, old: int, new: int, log: Callable[[], Log], watcher: Watcher) -> Course:
    tail = Tail(job.cluster.audit_log)
    job.edit(new)
    edits = [write for write in tail.writes() if write.resource == "mpijobs" and write.agent.startswith("kubectl")]
    edited = edits[0].received

    def now() -> Course:
        writes = [write for write in tail.writes() if write.namespace == job.namespace]
        return course(old=old, new=new, edited=edited, writes=writes, sights=watcher.sights(), steps=log().steps)

    def over() -> bool:
        found = now()
        return found.trained is not None and found.listed is not None and set(job.pods()) == _pods(new)

    deadline = time.monotonic() + LIMIT
    while not over() and time.monotonic() < deadline:
        time.sleep(POLL)
    time.sleep(REST)
    return now()


def _pods(size: int) -> set[str]:
    return {*workers(size), names.launcher(NAME)}


def _await(what: str, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT
    while not condition():
        if time.monotonic() > deadline:
            raise LabError(f"this did not happen within {LIMIT:.0f} s: {what}.")
        time.sleep(POLL)


@contextmanager
def _followed(job: TrainingJob, output: Path) -> Iterator[Callable[[], Log]]:
    """Yield a function that reads the launcher's log so far, without a request each time."""
    cluster = job.cluster
    command = [str(cluster.binaries.kubectl), "--kubeconfig", str(cluster.kubeconfig), "--namespace", job.namespace]
    process = spawn([*command, "logs", "--follow", names.launcher(NAME)], log=output, environment=os.environ)
    try:
        yield lambda: parse(output.read_text())
    finally:
        process.kill()
        process.wait()


def _watched(job: TrainingJob, output: Path) -> AbstractContextManager[Watcher]:
    pod, path = names.launcher(NAME), names.DISCOVER_HOSTS_PATH
    return visibility.watched(job.cluster, namespace=job.namespace, pod=pod, path=path, output=output)
