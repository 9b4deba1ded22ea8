"""What one sync does, as values."""

from dataclasses import dataclass
from typing import Any

from lab.operator.kinds import Resource
from lab.operator.status import Event
from lab.operator.wire import Status


@dataclass(frozen=True, kw_only=True)
class Create:
    """Create `body`; where that fails, send a Warning that begins with `complaint` (unless it is empty)."""

    resource: Resource
    name: str
    body: dict[str, Any]
    complaint: str = ""


@dataclass(frozen=True, kw_only=True)
class Delete:
    """Delete an object; one that is gone already fails the sync unless `may_be_gone`."""

    resource: Resource
    name: str
    may_be_gone: bool = True


@dataclass(frozen=True, kw_only=True)
class Send:
    """Send an Event on the job."""

    event: Event


@dataclass(frozen=True, kw_only=True)
class WriteStatus:
    """Write the job's status as a whole."""

    status: Status


@dataclass(frozen=True, kw_only=True)
class Fail:
    """Give up, and sync again after a pause."""

    message: str


Step = Create | Delete | Send | WriteStatus | Fail
