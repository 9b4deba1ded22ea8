"""Change the size of a job twice while ranks start slowly, so that Horovod's driver can lose the second change."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from bench.real.transcript import ENVIRONMENT, LIMIT, REST, within
from lab.cluster import Cluster
from lab.errors import LabError
from lab.training.job import NAME, TrainingJob, slow, workers
from lab.training.log import KILLED, first_with
from mpijob_elastic import names

START = 6  # seconds that a rank sleeps before it imports Horovod
# Each from a size to the next, and to the last while the newcomer of that one starts.
TWICE = ((1, 2, 3), (3, 4, 2))


@dataclass(frozen=True, kw_only=True)
class Second:
    """The second of two changes, in seconds from its edit; None if it never happened.

    trained: to the first step of all ranks. settled: until then, and until no other worker is
    there.
    """

    title: str
    trained: float | None
    settled: float | None


@dataclass(frozen=True, kw_only=True)
class SlowRound:
    """All changes once; number of killed ranks, and of hosts that Horovod blacklisted."""

    changes: Sequence[Second]
    killed: int
    blacklisted: int


def run(cluster: Cluster, namespace: str) -> SlowRound:
    """Run a round in a new job. Raises LabError if it does not start to train."""
    job = TrainingJob(cluster=cluster, namespace=namespace)
    begin = TWICE[0][0]
    job.create(ENVIRONMENT, manifest=slow(begin, seconds=START))
    if not within(lambda: first_with(job.log().steps, size=begin, since=0) is not None):
        raise LabError(f"training did not begin within {LIMIT:.0f} s.")
    changes = [_twice(job, *sizes) for sizes in TWICE]
    log = job.log()
    killed = sum(code == KILLED for code in log.exits)
    return SlowRound(changes=changes, killed=killed, blacklisted=len(log.blacklisted))


def _twice(job: TrainingJob, begin: int, first: int, then: int) -> Second:
    launched = len(job.log().launched)
    job.edit(first)
    within(lambda: len(job.log().launched) > launched)
    edited = time.time()
    job.edit(then)

    def trained() -> float | None:
        step = first_with(job.log().steps, size=then, since=edited)
        return step.time - edited if step else None

    def settled() -> bool:
        return trained() is not None and set(job.pods()) == _pods(then)

    is_settled = within(settled)
    after = time.time() - edited if is_settled else None
    time.sleep(REST)
    return Second(title=f"{begin}→{first}→{then}", trained=trained(), settled=after)


def _pods(size: int) -> set[str]:
    return {*workers(size), names.launcher(NAME)}
