"""An MPIJob as the operator sees it, and the defaults it fills in on its own copy."""

from typing import Any

import msgspec

from lab.operator.wire import Key, Metadata, Status

LAUNCHER = "Launcher"
WORKER = "Worker"


class MPIJob(msgspec.Struct, frozen=True, kw_only=True):
    """One job; `metadata` and `spec` are as in the API."""

    metadata: Metadata
    spec: dict[str, Any] = {}
    status: Status = Status()

    @property
    def key(self) -> Key:
        """Its namespace and name."""
        return self.namespace, self.name

    @property
    def version(self) -> int:
        """Its resourceVersion."""
        return int(self.metadata["resourceVersion"])

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.metadata["name"])

    @property
    def namespace(self) -> str:
        """Its namespace."""
        return str(self.metadata["namespace"])

    @property
    def uid(self) -> str:
        """Its uid."""
        return str(self.metadata["uid"])

    @property
    def being_deleted(self) -> bool:
        """Whether its deletion has begun."""
        return "deletionTimestamp" in self.metadata

    @property
    def workers(self) -> list[str]:
        """Names of the workers it asks for, by index."""
        replicas = self.replica_specs[WORKER]["replicas"] if WORKER in self.replica_specs else 0
        return [f"{self.name}-worker-{index}" for index in range(replicas)]

    @property
    def launcher(self) -> str:
        """Name of the launcher pod, its ServiceAccount, Role and RoleBinding."""
        return f"{self.name}-launcher"

    @property
    def config(self) -> str:
        """Name of the ConfigMap."""
        return f"{self.name}-config"

    @property
    def cleans_up(self) -> bool:
        """Whether its workers go when it has ended."""
        return self.spec["cleanPodPolicy"] in {"All", "Running"}

    @property
    def replica_specs(self) -> dict[str, dict[str, Any]]:
        """The launcher's and the workers' part of the spec, where given."""
        specs = self.spec.get("mpiReplicaSpecs") or {}
        return {role: spec for role, spec in specs.items() if spec is not None}

    def with_defaults(self) -> "MPIJob":
        """Return it with cleanPodPolicy None and restartPolicy Never where absent."""
        roles = {
            role: {**spec, "restartPolicy": spec.get("restartPolicy") or "Never"}
            for role, spec in self.replica_specs.items()
        }
        policy = self.spec.get("cleanPodPolicy") or "None"
        return msgspec.structs.replace(self, spec={**self.spec, "cleanPodPolicy": policy, "mpiReplicaSpecs": roles})

    def fatal_flaw(self) -> str | None:
        """Return what in its spec would crash the operator, which follows nil pointers there."""
        specs = self.replica_specs
        if LAUNCHER not in specs:
            return "spec.mpiReplicaSpecs.Launcher is missing"
        if WORKER in specs and specs[WORKER].get("replicas") is None:
            return "spec.mpiReplicaSpecs.Worker.replicas is missing"
        for role, spec in specs.items():
            if not spec.get("template", {}).get("spec", {}).get("containers"):
                return f"spec.mpiReplicaSpecs.{role}.template has no containers"
        return None
