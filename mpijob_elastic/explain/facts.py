"""Facts that an explanation needs beside the controller's view. Times are seconds since the epoch.

Every fact has a default that means "not known", because few users may read all of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mpijob_elastic import names
from mpijob_elastic.explain.spawned_ranks import Spawned, Stall
from mpijob_elastic.model.horovodrun import Launch


@dataclass(frozen=True, kw_only=True)
class Stuck:
    """A container that does not start or restarts again and again: the kubelet's reason and message."""

    container: str
    reason: str
    message: str = ""

    def __str__(self) -> str:
        return f"{self.reason}: {self.message}" if self.message else self.reason


@dataclass(frozen=True, kw_only=True)
class Pod:
    """The state of a pod in the words of scheduler and kubelet.

    unscheduled: why no node takes it, "" once a node has. unready: why it is not Ready. ended: `CONTAINER: REASON` of
    containers that ended, also before a restart.
    """

    unscheduled: str = ""
    stuck: Stuck | None = None
    unready: str = ""
    ended: tuple[str, ...] = ()
    message: str = ""


@dataclass(frozen=True, kw_only=True)
class Look:
    """The result of an exec into a worker: names of processes beside its main process, or `error`."""

    processes: tuple[str, ...] = ()
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """The facts on one job.

    state: the job's, in one word. resized_at: since when it has its size, at the latest. pods: by name. events: the
    newest warning on an object, by its name. surplus: when workers beyond the size were created, by name. home: the
    namespace of controller and webhook. controller, webhook: what keeps them from working, "" where nothing does.
    launch: how horovodrun was started. looks: by worker, none with --no-exec. stall: what the launcher's log says of
    missing ranks; spawned: whose they may be.
    """

    state: str = ""
    created_at: float = 0.0
    resized_at: float = 0.0
    pods: Mapping[str, Pod] = field(default_factory=dict)
    events: Mapping[str, str] = field(default_factory=dict)
    surplus: Mapping[str, float] = field(default_factory=dict)
    home: str = names.NAMESPACE
    controller: str = ""
    webhook: str = ""
    launch: Launch | None = None
    role_readable: bool = True
    looks: Mapping[str, Look] = field(default_factory=dict)
    stall: Stall | None = None
    spawned: Spawned | None = None
