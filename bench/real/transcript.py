"""Resize a training job 2→3→1→3→4→2, and record the course of each change."""

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from bench.audit import Tail
from bench.real.timeline import LOOP, Course, course, limited, lost, sights
from lab.cluster import Cluster
from lab.errors import LabError
from lab.processes import spawn
from lab.training.allocated import Allocated
from lab.training.job import NAME, TrainingJob, workers
from lab.training.log import KILLED, Log, first_with, parse
from mpijob_elastic import names

SIZES = (2, 3, 1, 3, 4, 2)
# Seconds. Without a touch a kubelet takes 60 to 90.
LIMIT = 150.0
POLL = 0.25
# Seconds after each change, so that the next starts at rest: a discovery period and the last pod's
# end.
REST = 4.0
# Prints the seconds that a rank needs before it can meet the others.
IMPORT = """
import time
began = time.monotonic()
import horovod.torch
print(time.monotonic() - began)
"""
ENVIRONMENT = {
    "TARGET_STEPS": "1000000",
    "MAX_STEPS": "1000000",
    "STEP_SECONDS": "0.25",
    "COMMIT_STEPS": "4",
}


@dataclass(frozen=True, kw_only=True)
class Round:
    """All changes once; number of killed ranks, and of hosts that Horovod blacklisted."""

    courses: Sequence[Course]
    killed: int
    blacklisted: int


def run(cluster: Cluster, namespace: str) -> Round:
    """Run a round in a new job. Raises LabError if it does not start to train."""
    job = TrainingJob(cluster=cluster, namespace=namespace)
    with tempfile.TemporaryDirectory() as folder:
        job.create(ENVIRONMENT)
        _await("the launcher runs", lambda: job.outcome() == "Running")
        printed, seen = Path(folder) / "log", Path(folder) / "sights"
        launcher = names.launcher(NAME)
        loop = ("python3", "-c", LOOP, names.DISCOVER_HOSTS_PATH)

        def log() -> Log:
            return parse(printed.read_text())

        with (
            _followed(job, printed, "logs", "--follow", launcher),
            _followed(job, seen, "exec", launcher, "--", *loop),
            Allocated.watched(job) as held,
        ):
            _await(
                "training begins",
                lambda: first_with(log().steps, size=SIZES[0], since=0) is not None,
            )
            courses = [_change(job, old, new, log, seen, held) for old, new in pairwise(SIZES)]
            told = log()
            worker = ("exec", workers(1)[0], "-n", namespace, "--", "python3", "-c", IMPORT)
            imports = float(cluster.kubectl(*worker))
    killed = sum(code == KILLED for code in told.exits)
    courses = limited(courses, imports=imports)
    return Round(courses=courses, killed=killed, blacklisted=len(told.blacklisted))


def edit(job: TrainingJob, size: int) -> float:
    """Edit the size, and return when the API server received that, in seconds since the epoch."""
    tail = Tail(job.cluster.audit_log)
    job.edit(size)
    edits = [
        write
        for write in tail.writes()
        if write.resource == "mpijobs" and write.agent.startswith("kubectl")
    ]
    return edits[0].received


def within(condition: Callable[[], bool]) -> bool:
    """Wait, and tell whether it happened."""
    deadline = time.monotonic() + LIMIT
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL)
    return True


def _change(
    job: TrainingJob,
    old: int,
    new: int,
    log: Callable[[], Log],
    seen: Path,
    held: Allocated,
) -> Course:
    tail = Tail(job.cluster.audit_log)
    edited = edit(job, new)

    def now() -> Course:
        writes = [write for write in tail.writes() if write.namespace == job.namespace]
        return course(
            old=old, new=new, edited=edited, writes=writes, sights=sights(seen), steps=log().steps
        )

    def over() -> bool:
        found = now()
        return (
            found.trained is not None and found.listed is not None and set(job.pods()) == _pods(new)
        )

    deadline = time.monotonic() + LIMIT
    while not over() and time.monotonic() < deadline:
        time.sleep(POLL)
    given_up_at = time.time()
    time.sleep(REST)
    steps, found = log().steps, now()
    until = given_up_at if found.trained is None else edited + found.trained
    return replace(found, lost=lost(held, steps, edited=edited, until=until))


def _pods(size: int) -> set[str]:
    return {*workers(size), names.launcher(NAME)}


def _await(what: str, condition: Callable[[], bool]) -> None:
    if not within(condition):
        raise LabError(f"this did not happen within {LIMIT:.0f} s: {what}.")


@contextmanager
def _followed(job: TrainingJob, output: Path, *arguments: str) -> Iterator[None]:
    """Have what kubectl tells with these arguments in a file, during the block."""
    cluster = job.cluster
    command = [
        str(cluster.binaries.kubectl),
        "--kubeconfig",
        str(cluster.kubeconfig),
        "--namespace",
        job.namespace,
    ]
    process = spawn([*command, *arguments], log=output, environment=os.environ)
    try:
        yield
    finally:
        process.kill()
        process.wait()
