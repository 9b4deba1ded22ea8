"""The host list as the launcher sees it: discover_hosts.sh and the hostfile, read back into names.

Read strictly: a script that is not exactly what we write is `None`, so that a hand edit is noticed and mended.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mpijob_elastic import names

# A pod's name and an int32.
_LINE = re.compile(r"echo (?P<host>[a-z0-9][a-z0-9.-]{0,252}):(?P<slots>[1-9][0-9]{0,9})\n")


@dataclass(frozen=True, kw_only=True)
class Published:
    """What discover_hosts.sh says: host names in its order, and the slots of each (one number for all).

    No two of them stand for the same pod.
    """

    hosts: tuple[str, ...] = ()
    slots: int = 1


def parse_script(script: str) -> Published | None:
    """The hosts of a discover_hosts.sh that we wrote, or None where it is anything else."""
    found = [(match["host"], int(match["slots"])) for match in _LINE.finditer(script)]
    hosts = tuple(host for host, _ in found)
    slots = found[0][1] if found else 1
    # Whatever reading overlooked, writing it again brings to light.
    if (
        len({names.pod_of(host) for host in hosts}) < len(hosts)
        or names.discover_hosts(list(hosts), slots=slots) != script
    ):
        return None
    return Published(hosts=hosts, slots=slots)
