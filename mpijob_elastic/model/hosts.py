"""The host list as the launcher sees it: discover_hosts.sh and the hostfile, read back into names.

Read strictly: a script that is not exactly what we write is `None`, so that a hand edit is noticed and mended.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mpijob_elastic import names

_LINE = re.compile(r"echo (?P<host>[a-z0-9][a-z0-9.-]*):(?P<slots>[1-9][0-9]*)")


@dataclass(frozen=True, kw_only=True)
class Published:
    """What discover_hosts.sh says: host names in its order, and the slots of each (one number for all)."""

    hosts: tuple[str, ...] = ()
    slots: int = 1


def parse_script(script: str) -> Published | None:
    """The hosts of a discover_hosts.sh that we wrote, or None where it is anything else."""
    if not script.startswith(names.SCRIPT_HEADER):
        return None
    lines = script.removeprefix(names.SCRIPT_HEADER).splitlines()
    matches = [_LINE.fullmatch(line) for line in lines]
    found = [(match["host"], int(match["slots"])) for match in matches if match]
    hosts = tuple(host for host, _ in found)
    slots = {number for _, number in found} or {1}
    if len(found) != len(lines) or len(set(hosts)) != len(hosts) or len(slots) > 1:
        return None
    return Published(hosts=hosts, slots=slots.pop())
