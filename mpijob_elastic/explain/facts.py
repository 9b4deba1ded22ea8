"""What an explanation needs beside the controller's view: what only people ask for. Times are seconds since the epoch.

Everything has a default that stands for "not known", since nobody has the right to read all of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mpijob_elastic import names
from mpijob_elastic.model.execs import Exec
from mpijob_elastic.model.horovodrun import Launch


@dataclass(frozen=True, kw_only=True)
class Stuck:
    """A container that does not start, or starts again and again: kubelet's reason and message."""

    container: str
    reason: str
    message: str = ""


@dataclass(frozen=True, kw_only=True)
class Pod:
    """How a pod is.

    unscheduled: why no node takes it, in the scheduler's words, "" where one has. unready: why it is not Ready.
    ended: `CONTAINER: REASON` of containers that ended, also before a restart. disrupted: who takes it away, and why.
    """

    node: str = ""
    unscheduled: str = ""
    stuck: Stuck | None = None
    unready: str = ""
    ended: tuple[str, ...] = ()
    message: str = ""
    disrupted: str = ""


@dataclass(frozen=True, kw_only=True)
class Look:
    """What exec showed of a worker: names of processes beside its main one; `error`, where it showed nothing."""

    processes: tuple[str, ...] = ()
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """All of it.

    state: the job's, in one word. pods: by name. events: the newest warning on an object, by its name. threats: why a
    node is about to go, by the pod on it. home: the namespace that controller and webhook are in. controller, webhook:
    what keeps them from working, "" where nothing does. launch: how horovodrun was started. looks: by worker; looked:
    whether anybody looked at all. frozen: `kubectl exec`s of the launcher at whose other end nothing is.
    """

    state: str = ""
    created_at: float = 0.0
    pods: Mapping[str, Pod] = field(default_factory=dict)
    events: Mapping[str, str] = field(default_factory=dict)
    threats: Mapping[str, str] = field(default_factory=dict)
    home: str = names.NAMESPACE
    controller: str = ""
    webhook: str = ""
    launch: Launch | None = None
    role_readable: bool = True
    looked: bool = False
    looks: Mapping[str, Look] = field(default_factory=dict)
    frozen: tuple[Exec, ...] = ()
