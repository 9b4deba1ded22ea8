"""The acknowledgement of elastic.sh: on which list of hosts ranks may run.

elastic.sh writes it to /run/mpijob-elastic/acknowledged in the launcher, before ranks start on a
list, and after all ranks of the former one have ended (`acknowledge` in elastic.sh). Its lines are
`list NUMBER`, `state running` or `state waiting`, `NAME:SLOTS POD` for each host in which ranks may
run, and `left NAME` for each host where something of an earlier start may still run.
"""

import re
from dataclasses import dataclass

from mpijob_elastic import names
from mpijob_elastic.model.bounds import BESIDE_A_HOST, FEWEST_HOSTS, MOST_WORKERS

PATH = f"{names.ELASTIC_FOLDER}/acknowledged"
# Bounded in each part, because a launcher may print any text.
_NUMBER = re.compile(r"list ([0-9]{1,10})\n")
_HOST = re.compile(r"(?m)^([a-z0-9][a-z0-9.-]{0,252}):[0-9]{1,10} ")
_LEFT = re.compile(r"(?m)^left ([a-z0-9][a-z0-9.-]{0,252})$")


@dataclass(frozen=True, kw_only=True)
class Acknowledgement:
    """What a look into a launcher has shown; times are seconds since the epoch."""

    #: The time of the last look; 0 if there was none.
    asked_at: float = 0.0
    #: The number of looks in a row that gave no answer.
    failed: int = 0
    #: The number of the list; -1 if no look has shown one.
    number: int = -1
    #: The names of the job's workers in which something may run.
    busy: frozenset[str] = frozenset()

    def shows_empty(self, pod: str, *, since: int) -> bool:
        """Tell whether a worker that left with list `since` is known to be empty."""
        return self.number >= since > 0 and pod not in self.busy


def longest(job: str, *, workers: int) -> int:
    """Return the most bytes that an acknowledgement of this job may have."""
    hosts = max(workers, FEWEST_HOSTS) + 1
    return hosts * (2 * len(names.worker(job, MOST_WORKERS)) + BESIDE_A_HOST)


def parse(text: str, *, job: str) -> tuple[int, frozenset[str]] | None:
    """Return the number of the list and the busy workers of that job; None for any other text.

    Other names are left out: they would only be kept. No worker is left out because it does not
    drain: it may begin to drain while the text is on its way.
    """
    number = _NUMBER.match(text)
    if number is None or not text.endswith("\n"):
        return None
    pods = map(names.pod_of, {*_HOST.findall(text), *_LEFT.findall(text)})
    return int(number[1]), frozenset(pod for pod in pods if _may_have_ranks(pod, job=job))


def _may_have_ranks(pod: str, *, job: str) -> bool:
    index = names.worker_index(pod, job=job)
    return index is not None and index < MOST_WORKERS
