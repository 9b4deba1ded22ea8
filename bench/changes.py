"""Course of a change of a job's size, read from what the API server answered after the edit; pure.

What each time means, from the answer to the edit until the answer to (0 where that was earlier, for a watcher may learn
of the edit and write before whoever asked for it has the answer)
- role: the last write of the job's Role, which then names the right workers;
- script: the last write of its ConfigMap, whose discover_hosts.sh then names the right workers;
- created: the creation of the last new worker;
- deleted: the last request to delete a worker, when its deletionTimestamp is set and its container is told to end;
- gone: the last worker's removal by its node, when its name is free again.

That the objects are right in the end is looked at apart from this, and what was written last has made them so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from bench.audit import Write
from bench.jobs import AGENT
from mpijob_elastic import names


class Writer(StrEnum):
    """Writer, recognised by User-Agent and user."""

    BENCH = "the benchmark"
    CONTROLLER = "mpijob-elastic"
    CLUSTER = "the cluster"
    OPERATOR = "the operator"


@dataclass(frozen=True, kw_only=True)
class Course:
    """Times in milliseconds after the edit, None where no such write was needed; writes by writer and kind.

    `edited_at` is when the edit was answered, in seconds since the epoch.
    """

    edited_at: float
    role: float | None
    script: float | None
    created: float | None
    deleted: float | None
    gone: float | None
    writes: Mapping[tuple[Writer, str], int]

    def count(self, writer: Writer) -> int:
        """Its writes, without Events and without the creation and deletion of each pod."""
        apart = {"create events", "patch events", "create pods", "delete pods"}
        return sum(count for (by, kind), count in self.writes.items() if by is writer and kind not in apart)


def writer_of(write: Write) -> Writer:
    """Return the writer."""
    if write.agent.startswith(AGENT):
        return Writer.BENCH
    if write.agent.startswith(names.CONTROLLER):
        return Writer.CONTROLLER
    # Nodes, scheduler, controller manager, and what people do by kubectl.
    own = write.user.startswith("system:") or write.user == "lab-kwok" or write.agent.startswith("kubectl")
    return Writer.CLUSTER if own else Writer.OPERATOR


def course(writes: Sequence[Write], *, job: str) -> Course:
    """Return the course of the last edit of `job` among these writes. Raise ValueError if there is no edit."""
    edits = [one for one in writes if writer_of(one) is Writer.BENCH and one.resource == "mpijobs"]
    if not edits:
        raise ValueError(f"there is no edit of {job} in the audit log")
    edit = edits[-1]
    after = [one for one in writes if one.received > edit.received]
    pods = [one for one in after if one.resource == "pods" and not one.subresource]
    deleted = [one for one in pods if one.verb == "delete"]

    def last(found: Iterable[Write]) -> float | None:
        return max((max(0.0, one.at - edit.at) * 1000 for one in found), default=None)

    return Course(
        edited_at=edit.at,
        role=last(one for one in after if (one.resource, one.name) == ("roles", names.launcher(job))),
        script=last(one for one in after if (one.resource, one.name) == ("configmaps", names.config_map(job))),
        created=last(one for one in pods if one.verb == "create"),
        deleted=last(one for one in deleted if writer_of(one) is not Writer.CLUSTER),
        gone=last(one for one in deleted if writer_of(one) is Writer.CLUSTER),
        writes=Counter((writer_of(one), _kind(one)) for one in after),
    )


def _kind(write: Write) -> str:
    return f"{write.verb} {write.resource}{f'/{write.subresource}' if write.subresource else ''}"
