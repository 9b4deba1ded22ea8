"""Ranks for which the others wait, as Horovod's own check says in the launcher's log. Pure.

Rank 0 prints, while it lasts once in HOROVOD_STALL_CHECK_TIME_SECONDS (60), `Missing ranks:` and a line for each
([horovod] horovod/common/stall_inspector.cc). These are ranks as they are dealt now. A process is known by the rank
with which it was started, which is the same where no rank was dealt again since.
"""

import re
from collections.abc import Iterable, Iterator

from mpijob_elastic import names
from mpijob_elastic.explain.case import Case
from mpijob_elastic.explain.findings import Finding, wrong
from mpijob_elastic.explain.spawned_ranks import PREFIX, Stall, printed_rank
from mpijob_elastic.model.phrases import listed

# Seconds of the log that are read, so that what has passed is not told; and the most lines.
LATELY, MOST_LINES = 150, 500
_BEGINS = re.compile(rb"are waiting for remainder of ranks for more than (\d{1,9}) seconds")
_MISSING = re.compile(rb"(\d{1,9})!?: \[(.*)\]")


def read(lines: Iterable[bytes]) -> Stall | None:
    """Return the last stall that lines of a launcher's log tell of, None if they tell of none."""
    seconds, missing, printed_by, goes_on = 0, dict[int, str](), None, False
    for line in lines:
        rank, text = printed_rank(line), PREFIX.sub(b"", line, count=1)
        if begins := _BEGINS.search(text):
            seconds, missing, printed_by, goes_on = int(begins[1]), {}, rank, True
        elif goes_on and rank == printed_by:
            if found := _MISSING.fullmatch(text):
                missing[int(found[1])] = found[2].decode(errors="replace")
            goes_on = found is not None or text == b"Missing ranks:"
    return Stall(seconds=seconds, missing=missing) if missing else None


def finding(job: Case) -> Iterator[Finding]:
    """Yield that ranks are missing, with their workers and nodes as far as they can be told."""
    stall = job.facts.stall
    if stall is None:
        return
    ranks = listed(_told(job, rank) for rank in stall.missing)
    said = f"{job.name} does not go on: the other ranks have waited for more than {stall.seconds} s for rank {ranks}"
    said += f", which must submit {next(iter(stall.missing.values()))} (from the launcher's log)"
    pods = job.facts.spawned.pods(next(iter(stall.missing))) if job.facts.spawned else []
    step = f"{names.PROGRAM} logs {job.name} -n {job.view.namespace} --tail 20"
    yield wrong("missing-ranks", said, next_step=f"{step} --worker {pods[0]}" if len(pods) == 1 else step)


def _told(job: Case, rank: int) -> str:
    spawned = job.facts.spawned
    pods = spawned.pods(rank) if spawned else []
    if spawned is None or not pods:
        return f"{rank} (its worker is not known)"
    nodes = {worker.name: worker.facts.node for worker in job.view.workers}
    where = " or ".join(f"{pod} on node {nodes.get(pod) or 'unknown'}" for pod in pods)
    return f"{rank} ({where}{'' if spawned.together else ', if ranks are as they were at the start of each'})"
