"""The state of a job: everything that one look derives from view, memory and time, and that the steps read.

`derive.derive` makes it once per look. Steps, explanations and the command line read it and derive nothing again.
All times are seconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from mpijob_elastic.model.job import JobView, Worker


class Standing(StrEnum):
    """What a worker is to the job now; the first that holds."""

    SURPLUS = "surplus"  # beyond the size asked for
    GIVEN_UP = "given up"  # failed, or lost its rank, too often
    FAILED = "failed"  # ended badly; it is deleted, so that the operator creates it again
    ENDED = "ended"  # ended, and stays as it is
    TERMINATING = "terminating"  # being deleted, and wanted again
    RANK_LOST = "rank lost"  # the pod runs on without its rank; it comes back under a new host name
    GOING = "going"  # its node or pod is about to go; it leaves and comes back elsewhere
    HELD = "held"  # the same, but it must stay until a replacement trains
    STARTING = "starting"  # not Ready yet
    WANTED = "wanted"  # Ready, and belongs into the host list


@dataclass(frozen=True, kw_only=True)
class Drain:
    """A worker that left the host list.

    since: when it left. began: since when the launcher knows, None while it cannot know. deadline: when the worker may
    be deleted whatever runs in it. drained: exec has shown that nothing trains in it any more.
    """

    since: float
    began: float | None = None
    deadline: float | None = None
    drained: bool = False


@dataclass(frozen=True, kw_only=True)
class WorkerState:
    """One worker pod.

    wanted: the size asks for it. published: its host name in discover_hosts.sh, "" where it has none. host: the host
    name that it has or will get. succeeds_lost: a rank may have died in the pod that had its host name before.
    going: node or pod is about to go, so it is to be elsewhere. rank_lost: it is to get a new host name.
    drain: None where no driver can have seen it in the list, or where it is in it.
    due_at: when a back-off lets it be deleted, None where there is none or its count is not written down yet.
    back_at: from when on it may be published again; 0 where nothing speaks against it.
    """

    pod: Worker
    name: str
    standing: Standing
    wanted: bool
    ready: bool
    published: str
    host: str
    succeeds_lost: bool = False
    going: bool = False
    rank_lost: bool = False
    drain: Drain | None = None
    due_at: float | None = None
    back_at: float = 0.0


@dataclass(frozen=True, kw_only=True)
class LauncherState:
    """What the launcher knows of the host list.

    The kubelet brings a new ConfigMap to the launcher a minute late perhaps, unless the launcher pod is touched. So a
    change counts from the touch on: nothing further is published and no worker is taken for drained before. The
    launcher's annotation says which change it was touched for and when, so a restart knows too.

    sees_hosts: the launcher that trains can learn of a change; true where none trains. may_lose_workers: workers may be
    deleted while it trains. can_be_shown: a touch helps it. shown_at: when it was touched for what is published now,
    None where it was not. refresh_due: it has yet to be touched for that.
    """

    sees_hosts: bool
    may_lose_workers: bool
    can_be_shown: bool
    shown_at: float | None
    refresh_due: bool


@dataclass(frozen=True, kw_only=True)
class JobState:
    """One job at one time.

    foreign: why the job is left alone, in words, "" where it is ours. memory_known: the memory tells of every worker
    that is not in the list why it is not. settled_at: the earliest time of the next change of the list that is ours to
    time, 0 while no driver can read it. resume_at: the earliest time of an addition after a loss, 0 where none waits.
    may_number: the launcher finds the pod of a numbered host name, or will once kubexec.sh says how.
    """

    view: JobView
    now: float
    foreign: str
    memory_known: bool
    may_number: bool
    launcher: LauncherState
    workers: tuple[WorkerState, ...]
    settled_at: float
    resume_at: float
    by_name: Mapping[str, WorkerState]
