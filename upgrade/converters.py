"""Convert an MPIJob v1alpha2 or a TrainingJob to an MPIJob v1; pure.

mpi-operator v0.2.3, pkg/apis/kubeflow/v1alpha2/types.go and default.go, v1/types.go, and
pkg/controllers/v1alpha2/mpi_job_controller.go; et-operator 96806fb,
api/v1alpha1/trainingjob_types.go, pkg/controllers/launcher.go, worker.go and resource.go
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mpijob_elastic import names
from mpijob_elastic.install.objects import own_metadata
from mpijob_elastic.kube.resources import MPI_JOBS
from mpijob_elastic.model import launch_command, policy
from mpijob_elastic.model.bounds import MOST_WORKERS
from upgrade import crd, old_names
from upgrade.notes import Notes
from upgrade.old_names import ET_OPERATOR, V1ALPHA2, Object, Source

ET = "kai.alibabacloud.com/v1alpha1"
RUN_POLICY = f"{names.PREFIX}run-policy"

_KEPT = ("slotsPerWorker", "cleanPodPolicy", "mainContainer")
# Fields of v1alpha2 that its run policy has too, and the limit where neither has it.
_LIMITS = ("backoffLimit", "activeDeadlineSeconds")
_RETRIES = 6
_TRAINING_JOB = frozenset(
    {
        "cleanPodPolicy",
        "etReplicaSpecs",
        "launcherAttachMode",
        "slotsPerWorker",
        "restartPolicy",
        "backoffLimit",
    }
)
_REPLICA = ("replicas", "restartPolicy", "template")
_NEVER = "Never"
_GPU = "nvidia.com/gpu"
# Annotations of et-operator's closed supervisor, and of Arena.
_ANNOTATIONS = ("job-supervisor.kube-ai.io/", "arena.kubeflow.org/ssh-secret")
# What the fields of a run policy did in v1alpha2 that nobody read, and what they would do now.
_UNREAD = {
    "ttlSecondsAfterFinished": (
        f"had no effect; left out, because with {RUN_POLICY} it would delete the finished job"
    ),
    "cleanPodPolicy": "had no effect; left out. spec.cleanPodPolicy decides",
    "schedulingPolicy": (
        "had no effect, unless the scheduler KAI read it (docs/kai.md); left out. docs/gangs.md "
        "says how a gang is made"
    ),
}


def from_mpi_job(source: Source, notes: Notes) -> Object:
    """Return the MPIJob v1alpha2 as the same job in v1; its bounds are those for horovodrun."""
    spec = source.get("spec", {})
    notes.unknown(spec, (*_KEPT, *_LIMITS, "mpiReplicaSpecs", "runPolicy"), "spec")
    at, replicas = "spec.mpiReplicaSpecs", spec.get("mpiReplicaSpecs", {})
    notes.unknown(replicas, ("Launcher", "Worker"), at)
    specs = {
        name: _replica(replicas[name], notes, f"{at}.{name}")
        for name in ("Launcher", "Worker")
        if name in replicas
    }
    for name, replica in specs.items():
        if "template" in replica:
            place = f"{at}.{name}.template"
            replica["template"] = old_names.with_labels(replica["template"], V1ALPHA2, notes, place)
    launcher = specs.get("Launcher", {}).get("template", {})
    if "Launcher" in specs:
        _launcher_restarts(specs["Launcher"], notes, f"{at}.Launcher.restartPolicy")
    if "Worker" in specs:
        reads_hosts = policy.names_discovery(old_names.texts(launcher))
        _worker_restarts(specs["Worker"], notes, f"{at}.Worker.restartPolicy", reads_hosts)
    result = {key: spec[key] for key in _KEPT if key in spec} | {"mpiReplicaSpecs": specs}
    result["runPolicy"] = _run_policy(spec, notes)
    bounds = _sizes(launcher, slots=int(spec.get("slotsPerWorker", 1)))
    return _mpi_job(source, result, bounds, more={RUN_POLICY: "true"})


def from_training_job(source: Source, notes: Notes) -> Object:
    """Return the TrainingJob as an MPIJob v1 with minReplicas and maxReplicas as bounds."""
    spec = source.get("spec", {})
    notes.unknown(spec, _TRAINING_JOB, "spec")
    _about_training_job(spec, notes)
    at, replicas = "spec.etReplicaSpecs", spec.get("etReplicaSpecs", {})
    worker = replicas.get("worker", {})
    notes.unknown(replicas, ("launcher", "worker"), at)
    launcher = _replica(replicas.get("launcher", {}), notes, f"{at}.launcher")
    workers = _replica(worker, notes, f"{at}.worker", bounds=("minReplicas", "maxReplicas"))
    for name, replica in (("launcher", launcher), ("worker", workers)):
        place = f"{at}.{name}.template"
        if "template" in replica:
            _about_host_namespaces(replica["template"], notes, place)
            replica["template"] = old_names.with_labels(
                replica["template"], ET_OPERATOR, notes, place
            )
    launcher["template"] = old_names.with_paths(
        launcher.get("template", {}), ET_OPERATOR, notes, f"{at}.launcher.template"
    )
    _launcher_ends(launcher, notes, f"{at}.launcher.restartPolicy")
    reads_hosts = policy.names_discovery(old_names.texts(launcher["template"]))
    _workers_end(workers, notes, f"{at}.worker.restartPolicy", reads_hosts)
    slots = _slots(spec, worker, notes)
    if "minReplicas" not in worker:
        notes.to_do(
            f"{at}.worker.minReplicas",
            f"is not given, so {names.MIN_REPLICAS} is the number of workers, and the job never "
            "shrinks below it; et-operator has no least number. Lower the annotation for ScaleIns",
        )
    result = {
        "slotsPerWorker": slots,
        # et-operator's default, not mpi-operator's.
        "cleanPodPolicy": spec.get("cleanPodPolicy") or "Running",
        "mpiReplicaSpecs": {"Launcher": launcher, "Worker": workers},
    }
    annotations = dict(source["metadata"].get("annotations", {}))
    for key in [key for key in annotations if key.startswith(_ANNOTATIONS)]:
        notes.left_out(f"metadata.annotations[{key}]")
        del annotations[key]
    kept = {**source, "metadata": {**source["metadata"], "annotations": annotations}}
    # As in et-operator's types: the least defaults to `replicas`, the most is unlimited.
    bounds = (worker.get("minReplicas", workers["replicas"]), worker.get("maxReplicas"))
    return _mpi_job(kept, result, bounds)


CONVERTERS: Mapping[tuple[str, str], Callable[[Source, Notes], Object]] = {
    ("kubeflow.org/v1alpha2", "MPIJob"): from_mpi_job,
    (ET, "TrainingJob"): from_training_job,
}


def _launcher_restarts(replica: Object, notes: Notes, at: str) -> None:
    """Leave restarts to the run policy, which counts them; v1alpha2's launcher was a Job."""
    given = replica.pop("restartPolicy", _NEVER)
    if given != _NEVER:
        notes.add(
            at,
            f"{given} becomes Never, and backoffLimit of the run policy limits the restarts; "
            f"with {given} alone, mpi-operator v0.2.3 would start a launcher again without end",
        )


def _worker_restarts(replica: Object, notes: Notes, at: str, reads_hosts: bool) -> None:  # noqa: FBT001
    """Restart the workers of a job of fixed size, as v1alpha2's StatefulSet did."""
    replica.pop("restartPolicy", None)
    if reads_hosts:
        notes.add(
            at,
            "v1alpha2 restarted workers in their pods; now a failed worker is replaced, see "
            f"{names.REPLACE_FAILED_WORKERS}",
        )
        return
    replica["restartPolicy"] = "Always"
    notes.add(at, "Always, because v1alpha2 restarted workers whatever was written here")


def _run_policy(spec: Source, notes: Notes) -> Object:
    """Return the run policy with the limits that v1alpha2 acted on."""
    given = spec.get("runPolicy", {})
    for name in sorted(given.keys() - _LIMITS):
        notes.add(
            f"spec.runPolicy.{name}", _UNREAD.get(name, "had no effect, and has none; left out")
        )
    result: Object = {"backoffLimit": _RETRIES}
    for limits in (spec, given):
        result |= {key: limits[key] for key in _LIMITS if key in limits}
    notes.add(
        "spec.runPolicy",
        f"backoffLimit is {result['backoffLimit']}, so often a launcher that fails is started "
        "again in its pod. mpi-operator v0.2.3 does not act on a run policy, so the job is "
        f'annotated {RUN_POLICY}: "true"',
    )
    return result


def _about_training_job(spec: Source, notes: Notes) -> None:
    if spec.get("launcherAttachMode", "ssh") == "ssh":
        notes.add(
            "spec.launcherAttachMode",
            "ssh is replaced by kubexec: images need no sshd, and no keys are created",
        )
    restarts = spec.get("restartPolicy", _NEVER) != _NEVER
    if restarts:
        notes.to_do(
            "spec.restartPolicy",
            "the job is not restarted as a whole; failed workers are replaced. To start a failed "
            f'launcher again, write spec.runPolicy.backoffLimit and annotate {RUN_POLICY}: "true"',
        )
    if "backoffLimit" in spec and not restarts:
        notes.add("spec.backoffLimit", "had no effect without restartPolicy OnFailure; left out")
    elif "backoffLimit" in spec:
        notes.add("spec.backoffLimit", "left out; see spec.restartPolicy")


def _about_host_namespaces(template: Source, notes: Notes, at: str) -> None:
    spec = template.get("spec", {})
    for field in ("hostPID", "hostIPC"):
        if spec.get(field):
            notes.to_do(
                f"{at}.spec.{field}",
                "kept; Arena's charts set it for all jobs, and it shows the pod what runs on its "
                "node. Remove it unless the job needs it",
            )


def _launcher_ends(replica: Object, notes: Notes, at: str) -> None:
    """Give the launcher the policy that et-operator gives to every pod."""
    given = replica.get("restartPolicy", _NEVER)
    if given == _NEVER:
        return
    replica["restartPolicy"] = _NEVER
    notes.add(
        at,
        f"{given} becomes Never, which et-operator gives to every pod; with {given}, mpi-operator "
        "v0.2.3 would start a launcher again that has ended",
    )


def _workers_end(replica: Object, notes: Notes, at: str, reads_hosts: bool) -> None:  # noqa: FBT001
    """Replace failed workers instead of restarting them on their nodes."""
    given = replica.get("restartPolicy", _NEVER)
    if given == _NEVER:
        return
    replica["restartPolicy"] = _NEVER
    if reads_hosts:
        notes.add(
            at,
            f"{given} becomes Never; failed workers are replaced, see "
            f"{names.REPLACE_FAILED_WORKERS}",
        )
        return
    notes.to_do(
        at,
        f"{given} becomes Never, as for every pod of et-operator; nobody replaces a failed worker "
        "of a job that reads no host list",
    )


def _slots(spec: Source, worker: Source, notes: Notes) -> int:
    """Return the slots as et-operator counts them.

    They are as given, else the GPUs of a worker's first container, else 1.
    """
    if given := spec.get("slotsPerWorker"):
        return int(given)
    first = next(iter(old_names.containers(worker.get("template", {}))), {})
    limits = first.get("resources", {}).get("limits", {})
    devices = [name for name in limits if "/" in str(name) and name != _GPU]
    if devices and _GPU not in limits:
        notes.add(
            "spec.slotsPerWorker",
            f"1, because et-operator counts {_GPU} only; a worker has "
            + ", ".join(f"{name}: {limits[name]}" for name in devices),
        )
    return int(limits.get(_GPU, 1))


def _mpi_job(
    source: Source,
    spec: Object,
    bounds: tuple[int | None, int | None],
    *,
    more: Mapping[str, str] | None = None,
) -> Object:
    """Return the MPIJob v1 with this spec, and the source's name, labels and annotations.

    bounds: the least and the most workers. more: annotations that the source may have itself.
    """
    metadata = own_metadata(source)
    annotations = {
        key: value
        for key, value in metadata.get("annotations", {}).items()
        if key != crd.LAST_APPLIED
    }
    added = dict(more or {}) | {
        key: str(min(bound, MOST_WORKERS))
        for key, bound in zip((names.MIN_REPLICAS, names.MAX_REPLICAS), bounds, strict=True)
        if bound is not None
    }
    annotations |= {key: value for key, value in added.items() if key not in annotations}
    rest = {
        key: value
        for key, value in metadata.items()
        if key not in ("annotations", "ownerReferences")
    }
    return {
        "apiVersion": MPI_JOBS.api_version,
        "kind": MPI_JOBS.kind,
        "metadata": rest | ({"annotations": annotations} if annotations else {}),
        "spec": spec,
    }


def _replica(source: Source, notes: Notes, at: str, *, bounds: tuple[str, ...] = ()) -> Object:
    """Convert a replica spec; the caller handles the fields `bounds`, and the restarts."""
    notes.unknown(source, (*_REPLICA, *bounds), at)
    # [operator] v0.2.3 ends silently on a replica spec without replicas.
    return {"replicas": 1, **{key: source[key] for key in _REPLICA if key in source}}


def _sizes(template: Source, *, slots: int) -> tuple[int | None, int | None]:
    """Return the least and most workers, of `slots` each, for horovodrun; None for no bound."""
    for container in old_names.containers(template):
        if launch := launch_command.parse(_words(container), _variables(container)):
            least = None if launch.min_np is None else max(1, -(-launch.min_np // slots))
            most = None if launch.max_np is None else max(1, launch.max_np // slots)
            return least, most
    return None, None


def _words(container: Source) -> list[str]:
    words: list[Any] = [*container.get("command", []), *container.get("args", [])]
    return [str(word) for word in words]


def _variables(container: Source) -> Iterator[tuple[str, str | None]]:
    """Yield the environment variables in their order; None for a value by reference."""
    for variable in container.get("env", []):
        value = variable.get("value")
        yield str(variable.get("name")), None if value is None else str(value)
