"""The acknowledgement of elastic.sh: on which list of hosts ranks may run.

elastic.sh writes it to /run/mpijob-elastic/acknowledged in the launcher, before ranks start on a
list, and after all ranks of the former one have ended (`acknowledge` in elastic.sh). Its lines are
`list NUMBER`, `state running` or `state waiting`, `NAME:SLOTS POD` for each host in which ranks may
run, and `left NAME` for each host where something of an earlier start may still run.
"""

import re
from dataclasses import dataclass

from mpijob_elastic import names

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
    #: The host names of the workers in which something may run.
    busy: frozenset[str] = frozenset()

    def shows_empty(self, pod: str, *, since: int) -> bool:
        """Tell whether a worker that left with list `since` is known to be empty."""
        return self.number >= since > 0 and pod not in self.busy


def parse(text: str) -> tuple[int, frozenset[str]] | None:
    """Return the number of the list and the busy host names; None for any other text."""
    number = _NUMBER.match(text)
    if number is None or not text.endswith("\n"):
        return None
    return int(number[1]), frozenset([*_HOST.findall(text), *_LEFT.findall(text)])
