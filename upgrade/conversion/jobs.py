"""Convert a job of another kind to an elastic MPIJob v1.

mpi-operator v0.2.3, pkg/apis/kubeflow/v1alpha2/types.go and v1/types.go; et-operator, api/v1alpha1/trainingjob_types.go
"""

from mpijob_elastic import names
from upgrade.conversion import elastic
from upgrade.conversion.elastic import Notes, Object, Source

_KEPT = ("slotsPerWorker", "cleanPodPolicy", "mainContainer")
_MOVED = ("backoffLimit", "activeDeadlineSeconds")
_MPI_JOB = frozenset({*_KEPT, *_MOVED, "mpiReplicaSpecs", "runPolicy"})
_TRAINING_JOB = frozenset(
    {"cleanPodPolicy", "etReplicaSpecs", "launcherAttachMode", "slotsPerWorker", "restartPolicy", "backoffLimit"}
)
_GPU = "nvidia.com/gpu"
# Of et-operator's closed supervisor, and of Arena.
_ANNOTATIONS = ("job-supervisor.kube-ai.io/", "arena.kubeflow.org/ssh-secret")
_LAUNCHER, _WORKER = "spec.etReplicaSpecs.launcher", "spec.etReplicaSpecs.worker"


def from_mpi_job(source: Source, notes: Notes) -> Object:
    """Return the MPIJob v1alpha2 as the same job in v1; its bounds are those for horovodrun."""
    spec = source.get("spec", {})
    notes.unknown(spec, _MPI_JOB, "spec")
    replicas = spec.get("mpiReplicaSpecs", {})
    notes.unknown(replicas, frozenset({"Launcher", "Worker"}), "spec.mpiReplicaSpecs")
    specs = {
        name: elastic.replica(replicas[name], notes, f"spec.mpiReplicaSpecs.{name}")
        for name in ("Launcher", "Worker")
        if name in replicas
    }
    result = {key: spec[key] for key in _KEPT if key in spec} | {"mpiReplicaSpecs": specs}
    run_policy = {key: spec[key] for key in _MOVED if key in spec} | spec.get("runPolicy", {})
    if run_policy:
        result["runPolicy"] = run_policy
        kept = f"{', '.join(sorted(run_policy))} kept, but mpi-operator v0.2.3 does not act on it"
        notes.add("spec.runPolicy", f'{kept}: annotate the job {names.PREFIX}run-policy: "true"')
    template = specs.get("Launcher", {}).get("template", {})
    bounds = elastic.sizes(template, slots=int(spec.get("slotsPerWorker", 1)))
    return elastic.mpi_job(source, result, bounds, notes)


def from_training_job(source: Source, notes: Notes) -> Object:
    """Return the TrainingJob as a MPIJob v1 with minReplicas and maxReplicas as bounds."""
    spec = source.get("spec", {})
    notes.unknown(spec, _TRAINING_JOB, "spec")
    _note_job_fields(spec, notes)
    replicas = spec.get("etReplicaSpecs", {})
    worker = replicas.get("worker", {})
    notes.unknown(replicas, frozenset({"launcher", "worker"}), "spec.etReplicaSpecs")
    launcher = elastic.replica(replicas.get("launcher", {}), notes, _LAUNCHER)
    launcher["template"] = elastic.moved(launcher.get("template", {}), notes, f"{_LAUNCHER}.template")
    workers = elastic.replica(worker, notes, _WORKER, known=frozenset({"minReplicas", "maxReplicas"}))
    result = {
        "slotsPerWorker": _slots(spec, worker),
        # et-operator's default, not mpi-operator's.
        "cleanPodPolicy": spec.get("cleanPodPolicy") or "Running",
        "mpiReplicaSpecs": {"Launcher": launcher, "Worker": workers},
    }
    # As in its types: the least defaults to `replicas`, the most is unlimited.
    bounds = (worker.get("minReplicas", workers["replicas"]), worker.get("maxReplicas"))
    return elastic.mpi_job(_without_annotations(source, notes), result, bounds, notes)


def _note_job_fields(spec: Source, notes: Notes) -> None:
    if spec.get("launcherAttachMode", "ssh") == "ssh":
        notes.add("spec.launcherAttachMode", "ssh is replaced by kubexec: images need no sshd, and no keys are created")
    if spec.get("restartPolicy", "Never") != "Never":
        notes.add("spec.restartPolicy", "the job is not restarted as a whole; failed workers are replaced")
    if "backoffLimit" in spec:
        notes.add("spec.backoffLimit", "has no counterpart; left out")


def _slots(spec: Source, worker: Source) -> int:
    """Count as et-operator does: as given, else the GPUs of a worker's first container, else 1."""
    containers = elastic.containers(worker.get("template", {}))
    gpus = containers[0].get("resources", {}).get("limits", {}).get(_GPU, 1) if containers else 1
    return int(spec.get("slotsPerWorker") or gpus)


def _without_annotations(source: Source, notes: Notes) -> Object:
    annotations = dict(source["metadata"].get("annotations", {}))
    for key in [key for key in annotations if key.startswith(_ANNOTATIONS)]:
        notes.add(f"metadata.annotations[{key}]", "has no counterpart; left out")
        del annotations[key]
    return {**source, "metadata": {**source["metadata"], "annotations": annotations}}
