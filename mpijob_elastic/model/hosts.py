"""The host list: discover_hosts.sh read back into names.

Reading is strict: a script that differs from what we write is `None`, so that an edit by hand is noticed and mended.
"""

import re
from dataclasses import dataclass

from mpijob_elastic import names
from mpijob_elastic.model.bounds import MOST_WORKERS

# A pod's name and an int32.
_LINE = re.compile(r"echo (?P<host>[a-z0-9][a-z0-9.-]{0,252}):(?P<slots>[1-9][0-9]{0,9})\n")

_SLOTS = re.compile(r" slots=([1-9][0-9]{0,9})$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Published:
    """The content of discover_hosts.sh: host names in its order, each of another pod, and the slots of each."""

    hosts: tuple[str, ...] = ()
    slots: int = 1


def hostfile_slots(hostfile: str) -> int | None:
    """Return the slots of the first host in a hostfile; None if it names none."""
    found = _SLOTS.search(hostfile)
    return int(found[1]) if found else None


def parse_script(script: str) -> Published | None:
    """Return the hosts of a discover_hosts.sh that we wrote; None for any other script."""
    if script.count("\n") > MOST_WORKERS + 1:
        return None
    found = [(match["host"], int(match["slots"])) for match in _LINE.finditer(script)]
    hosts = tuple(host for host, _ in found)
    slots = found[0][1] if found else 1
    # Writing the list again shows any difference that reading missed.
    if (
        len({names.pod_of(host) for host in hosts}) < len(hosts)
        or names.discover_hosts(list(hosts), slots=slots) != script
    ):
        return None
    return Published(hosts=hosts, slots=slots)
