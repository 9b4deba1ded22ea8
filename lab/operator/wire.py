"""The parts of API objects that the operator looks at, decoded from JSON.

`Status` is the operator's whole Go type for a status (kubeflow/common JobStatus): what it does not name is lost when
the operator writes the status back.
"""

from typing import Any

import msgspec

Metadata = dict[str, Any]
Key = tuple[str, str]
"""Namespace and name."""


class Owner(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An ownerReference."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None


class DependentMetadata(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Who an object is and whose."""

    name: str
    namespace: str = ""
    resource_version: str
    owner_references: tuple[Owner, ...] = ()


class PodStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A pod's phase (Pending, Running, Succeeded, Failed or Unknown) and why, as `Evicted`."""

    phase: str = "Pending"
    reason: str = ""


class Dependent(msgspec.Struct, frozen=True, kw_only=True):
    """An object that may belong to a job; only a pod's status means anything."""

    metadata: DependentMetadata
    status: PodStatus = PodStatus()

    @property
    def key(self) -> Key:
        """Its namespace and name."""
        return self.metadata.namespace, self.metadata.name

    @property
    def version(self) -> int:
        """Its resourceVersion."""
        return int(self.metadata.resource_version)

    @property
    def owner(self) -> Owner | None:
        """The controlling owner, if there is one."""
        return next((owner for owner in self.metadata.owner_references if owner.controller), None)


class Condition(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A job's condition; times are RFC 3339 in whole seconds."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_update_time: str | None = None
    last_transition_time: str | None = None


class ReplicaStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Pods by phase; a zero is not written."""

    active: int = 0
    succeeded: int = 0
    failed: int = 0


def _nil() -> None:
    """Go's nil. As a factory and not a default, so that it is written as null instead of being left out."""


class Status(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A job's status; unset times are left out, unset conditions and replica statuses are null."""

    conditions: tuple[Condition, ...] | None = msgspec.field(default_factory=_nil)
    replica_statuses: dict[str, ReplicaStatus] | None = msgspec.field(default_factory=_nil)
    start_time: str | None = None
    completion_time: str | None = None
    last_reconcile_time: str | None = None
