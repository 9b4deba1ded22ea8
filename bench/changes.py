"""The course of a change of size, from the writes after the edit. Pure.

Each time counts from the answer to the edit until the answer to a write. It is 0 if the write was
earlier, because a watcher may see the edit and write before the user has the answer.
- role: the last write of the job's Role, which then names the right workers;
- script: the last write of its ConfigMap, whose discover_hosts.sh then names the right workers;
- created: the creation of the last new worker;
- deleted: the last request to delete a worker, when its deletionTimestamp is set and its container
  is told to end;
- gone: the last worker's removal by its node, when its name is free again.

A separate check makes sure that the objects are right in the end, so the last write made them
right.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from bench.audit import Write
from bench.jobs import AGENT
from lab.operator import account
from mpijob_elastic import names


class Writer(StrEnum):
    """Writers, by User-Agent and user."""

    BENCH = "the benchmark"
    CONTROLLER = "mpijob-elastic"
    CLUSTER = "the cluster"
    OPERATOR = "the operator"


@dataclass(frozen=True, kw_only=True)
class Span:
    """When the first of some writes was received, and the last answered, in milliseconds after the edit."""

    received: float
    answered: float


@dataclass(frozen=True, kw_only=True)
class Course:
    """Times in milliseconds after the edit, None if no such write was needed; number of writes by writer and kind.

    `edited_at` is when the edit was answered, in seconds since the epoch; `steps` has the times of
    the writes of each writer and kind.
    """

    edited_at: float
    role: float | None
    script: float | None
    created: float | None
    deleted: float | None
    gone: float | None
    writes: Mapping[tuple[Writer, str], int]
    steps: Mapping[tuple[Writer, str], Span]

    def count(self, writer: Writer) -> int:
        """Return its number of writes, without Events and without creations and deletions of pods."""
        apart = {"create events", "patch events", "create pods", "delete pods"}
        return sum(
            count for (by, kind), count in self.writes.items() if by is writer and kind not in apart
        )


def writer_of(write: Write) -> Writer:
    """Return the writer of a write."""
    if write.agent.startswith(AGENT):
        return Writer.BENCH
    if write.agent.startswith(names.CONTROLLER):
        return Writer.CONTROLLER
    # All others are nodes, scheduler, controller manager, and people with kubectl.
    return Writer.OPERATOR if write.user.startswith(account.USERS) else Writer.CLUSTER


def course(writes: Sequence[Write], *, job: str) -> Course:
    """Return the course of the last edit of `job` among the writes of its namespace.

    Raises ValueError without edit.
    """
    edits = [
        write
        for write in writes
        if writer_of(write) is Writer.BENCH and write.resource == "mpijobs"
    ]
    if not edits:
        raise ValueError(f"there is no edit of {job} in the audit log")
    edit = edits[-1]
    after = [write for write in writes if write.received > edit.received]
    pods = [write for write in after if write.resource == "pods" and not write.subresource]
    deleted = [write for write in pods if write.verb == "delete"]

    def last(found: Iterable[Write]) -> float | None:
        return max((max(0.0, write.at - edit.at) * 1000 for write in found), default=None)

    return Course(
        edited_at=edit.at,
        role=last(
            write
            for write in after
            if (write.resource, write.name) == ("roles", names.launcher(job))
        ),
        script=last(
            write
            for write in after
            if (write.resource, write.name) == ("configmaps", names.config_map(job))
        ),
        created=last(write for write in pods if write.verb == "create"),
        deleted=last(write for write in deleted if writer_of(write) is not Writer.CLUSTER),
        gone=last(write for write in deleted if writer_of(write) is Writer.CLUSTER),
        writes=Counter((writer_of(write), _kind(write)) for write in after),
        steps=_steps(after, edit),
    )


def _steps(writes: Sequence[Write], edit: Write) -> dict[tuple[Writer, str], Span]:
    steps: dict[tuple[Writer, str], Span] = {}
    for write in writes:
        key = (writer_of(write), _kind(write))
        received, answered = 1000 * (write.received - edit.at), 1000 * (write.at - edit.at)
        known = steps.get(key)
        if known:
            received, answered = min(received, known.received), max(answered, known.answered)
        steps[key] = Span(received=received, answered=answered)
    return steps


def _kind(write: Write) -> str:
    return f"{write.verb} {write.resource}{f'/{write.subresource}' if write.subresource else ''}"
