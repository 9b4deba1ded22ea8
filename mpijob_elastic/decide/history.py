"""What we wrote down about the host list, and whether it can be believed.

The memory is written together with discover_hosts.sh and names it. Where the two do not belong together, somebody else
wrote one of them, and any worker that the list does not name may have been in it a moment ago.
"""

from __future__ import annotations

import hashlib

import msgspec

from mpijob_elastic.model.job import Config, JobView, Worker
from mpijob_elastic.model.memory import Left, Memory


def signed(memory: Memory, *, script: str) -> Memory:
    """The memory as it is written together with that script."""
    return msgspec.structs.replace(memory, script=_fingerprint(script))


def is_known(config: Config | None) -> bool:
    """Whether the memory tells of every worker that is not in the list why it is not."""
    if config is None or config.memory is None or config.published is None:
        return False
    return config.memory.script == _fingerprint(config.script or "")


def left(view: JobView, worker: Worker) -> Left | None:
    """When this very pod left the list; None where it never did, as far as is written down."""
    found = view.memory.left.get(worker.name)
    return found if found is not None and found.uid == worker.ref.uid else None


def _fingerprint(script: str) -> str:
    return hashlib.sha256(script.encode()).hexdigest()[:12]
