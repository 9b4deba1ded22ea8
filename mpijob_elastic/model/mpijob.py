"""The MPIJob (kubeflow.org/v1) as its JSON: the fields that we read, and the operator's defaults.

`job_facts` derives from it what controller, webhook, upgrade and command line need; nothing else
reads an MPIJob. [operator] declares no types for most fields in its definition, so each of them may
be null; it writes `status.conditions: null` itself. Fields and defaults:
pkg/apis/kubeflow/v1/types.go and default.go.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import msgspec

from mpijob_elastic import names
from mpijob_elastic.kube import meta
from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.model import devices, requests
from mpijob_elastic.model.bounds import MOST_INT32
from mpijob_elastic.model.json_parts import Managed, Wire

Profile = Mapping[str, str]
# Characters of a container's name, which is a DNS label, and of a profile's path: the texts that
# are kept of a job are bounded.
_LONGEST_NAME, _LONGEST_PATH = 63, 253


class EnvVar(Wire, frozen=True):
    """An environment variable; `value` is None if it comes from a reference."""

    name: str | None = None
    value: str | None = None


class Resources(Wire, frozen=True):
    """`resources` of a container."""

    limits: dict[str, Any] | None = None
    requests: dict[str, Any] | None = None


class Container(Wire, frozen=True):
    """A container and the words it runs."""

    name: str | None = None
    command: list[str | None] | None = None
    args: list[str | None] | None = None
    env: list[EnvVar | None] | None = None
    resources: Resources | None = None
    # Any values: the API server does not check templates.
    security_context: Any = None
    liveness_probe: Any = None
    readiness_probe: Any = None

    @property
    def command_probe(self) -> str:
        """The first probe that runs a command again and again; "" without one."""
        probes = {"livenessProbe": self.liveness_probe, "readinessProbe": self.readiness_probe}
        for name, probe in probes.items():
            if isinstance(probe, dict) and probe.get("exec"):
                return name
        return ""

    def words(self) -> list[str]:
        """Return command and arguments as one list."""
        return [word or "" for word in (*(self.command or ()), *(self.args or ()))]

    def variable(self, name: str) -> str | None:
        """Return the value of an environment variable.

        None if it is not set or comes from a reference.
        """
        return next(
            (found.value for found in reversed(self.env or ()) if found and found.name == name),
            None,
        )

    def variables(self) -> list[tuple[str, str | None]]:
        """Return the environment variables in their order; None for a value by reference."""
        return [(found.name or "", found.value) for found in self.env or () if found]

    def texts(self) -> Iterator[str]:
        """Yield command, arguments and environment values."""
        yield from self.words()
        yield from (variable.value for variable in self.env or () if variable and variable.value)


class PodSpec(Wire, frozen=True):
    """A pod template's spec."""

    containers: list[Container | None] | None = None
    init_containers: list[Container | None] | None = None
    security_context: Any = None
    termination_grace_period_seconds: int | None = None
    priority_class_name: str | None = None
    preemption_policy: str | None = None
    scheduler_name: str | None = None
    node_name: str | None = None
    node_selector: dict[str, str | None] | None = None

    @property
    def seccomp_profiles(self) -> Mapping[str, Profile]:
        """The profile of each container by its name, and the pod's own profile under "".

        [operator] drops profiles, because the types of Kubernetes 1.15 lack the field.
        """
        containers = (
            one for one in (*(self.init_containers or ()), *(self.containers or ())) if one
        )
        contexts = {
            **{one.name or "": one.security_context for one in containers},
            "": self.security_context,
        }
        found = (
            (name, _profile(context))
            for name, context in contexts.items()
            if len(name) <= _LONGEST_NAME
        )
        return {name: profile for name, profile in found if profile}


def _profile(context: Any) -> Profile | None:
    # The API server does not check an MPIJob's templates, and would refuse a pod with a malformed
    # profile.
    match context:
        case {"seccompProfile": {"type": "RuntimeDefault" | "Unconfined" as kind}}:
            return {"type": kind}
        case {"seccompProfile": {"type": "Localhost", "localhostProfile": str(path)}}:
            descends = (
                len(path) <= _LONGEST_PATH
                and not path.startswith("/")
                and ".." not in path.split("/")
            )
            return {"type": "Localhost", "localhostProfile": path} if descends else None
    return None


class TemplateMeta(Wire, frozen=True):
    """A pod template's metadata."""

    labels: dict[str, str | None] | None = None
    annotations: dict[str, str | None] | None = None


class PodTemplate(Wire, frozen=True):
    """A pod template."""

    metadata: TemplateMeta | None = None
    spec: PodSpec | None = None


class ReplicaSpec(Wire, frozen=True):
    """Launcher or Worker."""

    replicas: int | None = None
    restart_policy: Any = None  # any value
    template: PodTemplate | None = None


class ReplicaSpecs(Wire, frozen=True, rename="pascal"):
    """`mpiReplicaSpecs`; its keys start with a capital."""

    launcher: ReplicaSpec | None = None
    worker: ReplicaSpec | None = None


class Spec(Wire, frozen=True):
    """`spec`."""

    mpi_replica_specs: ReplicaSpecs | None = None
    slots_per_worker: int | None = None
    clean_pod_policy: str | None = None
    main_container: str | None = None
    run_policy: Any = None  # any value
    managed_by: Any = None  # any value: v0.2.3 does not know the field


class Condition(Wire, frozen=True):
    """An entry of `status.conditions`."""

    type: str | None = None
    status: str | None = None
    reason: str | None = None


class ReplicaStatus(Wire, frozen=True):
    """The status of launcher or workers.

    `selector` is not written by the operator: it is for the scale subresource.
    """

    selector: str | None = None


class ReplicaStatuses(Wire, frozen=True, rename="pascal"):
    """`replicaStatuses`; its keys start with a capital."""

    worker: ReplicaStatus | None = None


class JobStatus(Wire, frozen=True):
    """`status`."""

    conditions: list[Condition | None] | None = None
    replica_statuses: ReplicaStatuses | None = None
    completion_time: str | None = None


class Metadata(ObjectMeta, frozen=True):
    """`metadata`; the managers of fields stay undecoded until somebody asks for them."""

    managed_fields: msgspec.Raw = msgspec.Raw(b"null")


class _Parts(Wire, frozen=True):
    spec: msgspec.Raw = msgspec.Raw(b"null")


_parts = msgspec.json.Decoder(_Parts)

# Containers of a worker whose resources are added up.
_MOST_COUNTED = 8
# GitOps tools, by the names under which they write: Argo CD, and Flux's kustomize-controller and
# helm-controller.
_GITOPS = ("argocd-controller", "kustomize-controller", "helm-controller")
_managed = msgspec.json.Decoder(list[Managed] | None)


class MPIJob(Wire, frozen=True, dict=True, gc=True):
    """An MPIJob."""

    metadata: Metadata
    spec: Spec | None = None
    status: JobStatus | None = None

    @cached_property
    def text(self) -> bytes:
        """The JSON that the job was read from; an empty object if it was made otherwise."""
        return b"{}"

    @property
    def spec_text(self) -> bytes:
        """The JSON of the spec, with the fields that nobody here knows."""
        return bytes(_parts.decode(self.text).spec)

    @property
    def replicas(self) -> int | None:
        """The size asked for, 0 without a Worker spec.

        None if the Worker spec has no number that the operator can read: [operator] its number is
        an int32, and it cannot work with such a job.
        """
        size = self._specs.worker.replicas if self._specs.worker else 0
        return size if size is None or abs(size) <= MOST_INT32 else None

    @property
    def slots(self) -> int:
        """Slots of each worker, at least 1."""
        return max(1, (self.spec.slots_per_worker if self.spec else None) or 1)

    def describes(self, role: str) -> bool:
        """Return True if the job has a launcher or workers: the operator runs one without them."""
        return self._role(role) is not None

    def restart_policy(self, role: str) -> object:
        """Return the restart policy of the launcher or the workers, which may be any value."""
        one = self._role(role)
        return one.restart_policy if one else None

    def containers(self, role: str) -> list[Container]:
        """Return the containers of the launcher's or the workers' template."""
        return [container or Container() for container in self.pod(role).containers or ()]

    def pod(self, role: str) -> PodSpec:
        """Return the pod spec of the launcher's or the workers' template."""
        return self._template(role).spec or PodSpec()

    def pod_labels(self, role: str) -> dict[str, str]:
        """Return the labels of the launcher's or the workers' template."""
        return _texts(self._meta(role).labels)

    def pod_annotations(self, role: str) -> dict[str, str]:
        """Return the annotations of the launcher's or the workers' template."""
        return _texts(self._meta(role).annotations)

    @property
    def finished(self) -> bool:
        """True once the operator is done with the job.

        [operator] A job that is Failed with reason MPIJobEvicted, or without a completionTime, goes
        on: the operator creates the launcher again.
        """
        if self.condition(names.CONDITION_SUCCEEDED):
            return True
        failed = self.condition(names.CONDITION_FAILED)
        done = self.status is not None and self.status.completion_time is not None
        return failed is not None and failed.reason != names.REASON_JOB_EVICTED and done

    @property
    def lacks_selector(self) -> bool:
        """True if the operator has counted the workers, but the status lacks their selector."""
        statuses = self.status.replica_statuses if self.status else None
        return statuses is not None and statuses.worker is not None and not statuses.worker.selector

    @property
    def place(self) -> str:
        """A text that is equal for jobs whose workers fit the same places.

        These workers ask the same scheduler for the same kinds of resources and nodes.
        """
        pod, asked = self.pod(names.ROLE_WORKER), set[str]()
        for container in self.containers(names.ROLE_WORKER):
            found = container.resources or Resources()
            asked |= {*(found.limits or ()), *(found.requests or ())}
        return str((pod.scheduler_name, sorted(_texts(pod.node_selector).items()), sorted(asked)))

    @property
    def worker_counts(self) -> dict[str, int]:
        """What each worker at least counts for in a ResourceQuota, by the quota's keys.

        Amounts are those of `requests.Amounts`.
        """
        found = requests.readable({"pods": 1, "count/pods": 1})
        for container in self.containers(names.ROLE_WORKER)[:_MOST_COUNTED]:
            given = container.resources or Resources()
            limits = requests.readable(given.limits)
            asked = {**limits, **requests.readable(given.requests)}
            found.update(requests.quota_counts(limits=limits, given=asked))
            for name, amount in asked.items():
                found.update(dict.fromkeys(devices.quota_keys(name), amount))
        return dict(found)

    @property
    def size_manager(self) -> str:
        """The GitOps tool that manages the size; "" if no such tool does."""
        return next(
            (entry.manager for entry in self._size_managers if entry.manager in _GITOPS), ""
        )

    @property
    def sized(self) -> Managed | None:
        """The last manager that set the size; None if nobody knows.

        Its `at` is later than the change of the size if it has set another field since.
        """
        return max(self._size_managers, key=lambda entry: entry.at, default=None)

    @property
    def edited(self) -> Managed | None:
        """The manager by which a user last edited the job; None if nobody knows.

        A manager that has removed its only field leaves no trace, so this may be an earlier one.
        """
        users = (
            entry
            for entry in self._managers
            if entry.manager != names.PROGRAM and not bytes(entry.fields_v1.status)
        )
        return max(users, key=lambda entry: entry.at, default=None)

    def annotated(self, key: str) -> Managed | None:
        """Return the manager that set an annotation; None if nobody knows.

        Its `at` is later than that if it has set another field since.
        """
        holders = (
            entry for entry in self._managers if f"f:{key}" in entry.fields_v1.metadata.annotations
        )
        return max(holders, key=lambda entry: entry.at, default=None)

    @property
    def resized_at(self) -> float:
        """The latest time at which the size can have been set.

        Seconds since the epoch; 0 if nobody knows.
        """
        return self.sized.at if self.sized else 0.0

    @property
    def _size_managers(self) -> list[Managed]:
        return [
            entry
            for entry in self._managers
            if bytes(entry.fields_v1.spec.replicas.worker.replicas)
        ]

    @cached_property
    def _managers(self) -> list[Managed]:
        try:
            return _managed.decode(self.metadata.managed_fields) or []
        except msgspec.DecodeError:
            return []  # no object that the API server wrote

    def condition(self, kind: str) -> Condition | None:
        """Return the condition of that type if its status is True."""
        conditions = (self.status.conditions if self.status else None) or ()
        return next(
            (
                found
                for found in conditions
                if found and found.type == kind and found.status == "True"
            ),
            None,
        )

    def _role(self, role: str) -> ReplicaSpec | None:
        return self._specs.launcher if role == names.ROLE_LAUNCHER else self._specs.worker

    def _template(self, role: str) -> PodTemplate:
        replica = self._role(role)
        return (replica.template if replica else None) or PodTemplate()

    def _meta(self, role: str) -> TemplateMeta:
        return self._template(role).metadata or TemplateMeta()

    @property
    def _specs(self) -> ReplicaSpecs:
        return (self.spec.mpi_replica_specs if self.spec else None) or ReplicaSpecs()


def _texts(found: dict[str, str | None] | None) -> dict[str, str]:
    return {key: value or "" for key, value in (found or {}).items()}


# Fields of an MPIJob. Its schema allows lists of anything, and half a million containers took 250
# ms.
_MOST_VALUES = 5_000

_decoder = msgspec.json.Decoder(MPIJob)


def decode(raw: bytes | msgspec.Raw) -> MPIJob:
    """Return the MPIJob in its JSON.

    Raises msgspec.DecodeError if that is no MPIJob, or would take long to read.
    """
    meta.check_cost(raw, most=_MOST_VALUES)
    job = _decoder.decode(raw)
    job.__dict__["text"] = bytes(raw)
    return job
