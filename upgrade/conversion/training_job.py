"""Convert et-operator's TrainingJob to an elastic MPIJob v1 (et-operator, api/v1alpha1/trainingjob_types.go)."""

from upgrade.conversion import elastic
from upgrade.conversion.elastic import Notes, Object, Source

_KNOWN = frozenset(
    {"cleanPodPolicy", "etReplicaSpecs", "launcherAttachMode", "slotsPerWorker", "restartPolicy", "backoffLimit"}
)
_GPU = "nvidia.com/gpu"
# Of et-operator's closed supervisor, and of Arena.
_ANNOTATIONS = ("job-supervisor.kube-ai.io/", "arena.kubeflow.org/ssh-secret")
_LAUNCHER, _WORKER = "spec.etReplicaSpecs.launcher", "spec.etReplicaSpecs.worker"


def convert(source: Source, notes: Notes) -> Object:
    """Return the job as a MPIJob v1 with minReplicas and maxReplicas as bounds."""
    spec = source.get("spec", {})
    notes.unknown(spec, _KNOWN, "spec")
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
