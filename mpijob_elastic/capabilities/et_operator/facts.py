"""The facts of a ScaleIn or ScaleOut, and the last of them that set the size of a job."""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from mpijob_elastic.capabilities.et_operator.api import FAILED, SUCCEEDED
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.model.capability import Known
from mpijob_elastic.model.wire import Owned


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A ScaleIn or ScaleOut of MPIJob `metadata.job`; that is "" if another kind of object controls it.

    metadata.job_uid: of the MPIJob that controls it. names: the pods that a ScaleIn names. timeout: seconds. pods: that
    leave or come, as its status says once it scales. conditions: as its status has them. has_owners: it has some.
    """

    metadata: Owned
    resource: Resource
    created_at: float = 0.0
    deleting: bool = False
    has_owners: bool = False
    count: int = 0
    names: tuple[str, ...] = ()
    script: bool = False
    timeout: int = 0
    phase: str = ""
    pods: tuple[str, ...] = ()
    conditions: tuple[Mapping[str, str], ...] = ()
    started_at: float = 0.0

    @property
    def grows(self) -> bool:
        """True for a ScaleOut."""
        return self.resource.kind == "ScaleOut"

    @property
    def finished(self) -> bool:
        """True once it has succeeded or failed."""
        return self.phase in (SUCCEEDED, FAILED)

    @property
    def full_name(self) -> str:
        """How et-operator calls it."""
        return f"{self.resource.kind}:{self.metadata.namespace}/{self.metadata.name}"


@dataclass(frozen=True, kw_only=True)
class Scaled(Known):
    """The annotation that says which request set the size last."""

    by: str
