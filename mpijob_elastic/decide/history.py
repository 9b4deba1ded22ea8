"""What we wrote down about the host list, and whether it can be believed.

The memory is written together with discover_hosts.sh and names it. Where the two do not belong together, somebody else
wrote one of them, and any worker that the list does not name may have been in it a moment ago.
"""

from __future__ import annotations

import msgspec

from mpijob_elastic.decide import clock, launcher_refresh, pacing
from mpijob_elastic.model.job import Config, JobView, Worker
from mpijob_elastic.model.memory import Left, Memory, script_fingerprint


def signed(memory: Memory, *, script: str) -> Memory:
    """The memory as it is written together with that script."""
    return msgspec.structs.replace(memory, script=script_fingerprint(script))


def is_known(config: Config | None) -> bool:
    """Whether the memory tells of every worker that is not in the list why it is not."""
    if config is None or config.memory is None or config.published is None:
        return False
    return config.memory.script == config.fingerprint


def is_anothers(config: Config) -> bool:
    """Whether there is a script, and it is not the one that our memory was written with."""
    if config.memory is None or config.script is None:
        return False
    return config.memory.script != config.fingerprint


def left(view: JobView, worker: Worker, *, now: float) -> Left | None:
    """When this pod left the list; None where no driver can ever have seen it there.

    A pod that came under the name of one that left may have been taken for it by a driver with the old list.
    """
    found = view.memory.left.get(worker.name)
    if found is None or found.pod == worker.ref.fingerprint:
        return found
    known = launcher_refresh.known_since(view, found, now=now)
    return None if known is not None and worker.created_at > known + pacing.SETTLE + clock.SKEW else found
