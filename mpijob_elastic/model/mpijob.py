"""The fields of a MPIJob (kubeflow.org/v1) that we read, decoded straight from JSON.

Everything else in the object is skipped by the decoder, so an unknown field never breaks us.
Field names and defaults: mpi-operator v0.2.3, pkg/apis/kubeflow/v1/types.go and default.go.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from mpijob_elastic import names
from mpijob_elastic.kube.meta import ObjectMeta


class Wire(msgspec.Struct, frozen=True, rename="camel", kw_only=True, gc=False):
    """Base of what is read from the API: immutable, camelCase on the wire, and never part of a reference cycle."""


class EnvVar(Wire, frozen=True):
    """One environment variable; `value` is None where it comes from a reference."""

    value: str | None = None


class Container(Wire, frozen=True):
    """What a container runs."""

    name: str = ""
    command: list[str] | None = None
    args: list[str] | None = None
    env: list[EnvVar] | None = None

    def texts(self) -> Iterator[str]:
        """Command, arguments and environment values."""
        yield from self.command or ()
        yield from self.args or ()
        yield from (variable.value for variable in self.env or () if variable.value)


class PodSpec(Wire, frozen=True):
    """A pod template's spec."""

    containers: list[Container] | None = None
    active_deadline_seconds: int | None = None


class PodTemplate(Wire, frozen=True):
    """A pod template."""

    spec: PodSpec | None = None


class ReplicaSpec(Wire, frozen=True):
    """Launcher or Worker."""

    replicas: int | None = None
    template: PodTemplate | None = None


class ReplicaSpecs(Wire, frozen=True, rename="pascal"):
    """`mpiReplicaSpecs`: its keys are written with a capital."""

    launcher: ReplicaSpec | None = None
    worker: ReplicaSpec | None = None


class Spec(Wire, frozen=True):
    """`spec`."""

    mpi_replica_specs: ReplicaSpecs | None = None
    slots_per_worker: int | None = None
    clean_pod_policy: str | None = None
    main_container: str | None = None


class Condition(Wire, frozen=True):
    """One of `status.conditions`."""

    type: str = ""
    status: str = ""
    reason: str = ""


class ReplicaStatus(Wire, frozen=True):
    """What is said of the launcher or the workers; `selector` is not the operator's but for the subresource scale."""

    selector: str | None = None


class ReplicaStatuses(Wire, frozen=True, rename="pascal"):
    """`replicaStatuses`: its keys are written with a capital."""

    worker: ReplicaStatus | None = None


class Status(Wire, frozen=True):
    """`status`."""

    conditions: list[Condition] | None = None
    replica_statuses: ReplicaStatuses | None = None
    start_time: str | None = None
    completion_time: str | None = None


class MPIJob(Wire, frozen=True):
    """One MPIJob."""

    metadata: ObjectMeta
    spec: Spec | None = None
    status: Status | None = None

    @property
    def replicas(self) -> int:
        """Workers asked for; a job without a Worker spec has none, a Worker spec without a number means one."""
        worker = self._specs.worker
        if worker is None:
            return 0
        return 1 if worker.replicas is None else worker.replicas

    @property
    def slots(self) -> int:
        """Slots a worker, one by default."""
        return (self.spec.slots_per_worker if self.spec else None) or 1

    @property
    def clean_pod_policy(self) -> str:
        """`None`, `Running` or `All`; the operator's default is `None`."""
        return (self.spec.clean_pod_policy if self.spec else None) or "None"

    def launcher_texts(self) -> list[str]:
        """What the launcher's containers run: commands, arguments, environment values."""
        return [text for container in self.containers(names.ROLE_LAUNCHER) for text in container.texts()]

    def launcher_commands(self) -> list[list[str]]:
        """Command and arguments of each of the launcher's containers, as one list of words."""
        return [[*(one.command or ()), *(one.args or ())] for one in self.containers(names.ROLE_LAUNCHER)]

    def containers(self, role: str) -> list[Container]:
        """The containers of the launcher's or the workers' template."""
        return self._pod(role).containers or []

    @property
    def launcher_deadline(self) -> int | None:
        """Seconds after which the kubelet ends the launcher, None for no limit."""
        return self._pod(names.ROLE_LAUNCHER).active_deadline_seconds

    @property
    def finished(self) -> bool:
        """Whether the operator is done with it.

        [operator] Failed with reason MPIJobEvicted, or without a completionTime, goes on: the launcher is created anew.
        """
        if self.condition(names.CONDITION_SUCCEEDED):
            return True
        failed = self.condition(names.CONDITION_FAILED)
        done = self.status is not None and self.status.completion_time is not None
        return failed is not None and failed.reason != names.REASON_JOB_EVICTED and done

    @property
    def lacks_selector(self) -> bool:
        """Whether the operator has counted the workers and nothing says how to find them."""
        statuses = self.status.replica_statuses if self.status else None
        return statuses is not None and statuses.worker is not None and not statuses.worker.selector

    def condition(self, kind: str) -> Condition | None:
        """The condition of that type where its status is True."""
        conditions = (self.status.conditions if self.status else None) or ()
        return next((one for one in conditions if one.type == kind and one.status == "True"), None)

    def _pod(self, role: str) -> PodSpec:
        replica = self._specs.launcher if role == names.ROLE_LAUNCHER else self._specs.worker
        return (replica.template.spec if replica and replica.template else None) or PodSpec()

    @property
    def _specs(self) -> ReplicaSpecs:
        return (self.spec.mpi_replica_specs if self.spec else None) or ReplicaSpecs()
