"""Shared by all conversions to an elastic MPIJob v1."""

from mpijob_elastic import names
from mpijob_elastic.install.objects import own_metadata
from mpijob_elastic.kube.resources import MPI_JOBS
from mpijob_elastic.model import policy
from mpijob_elastic.model.bounds import MOST_WORKERS
from upgrade.conversion import commands
from upgrade.conversion.results import Notes, Object, Source

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
# [operator] treats ExitCode as Never.
_EXIT_CODE = "ExitCode"
_REPLICA_FIELDS = frozenset({"replicas", "template", "restartPolicy"})


def mpi_job(source: Source, spec: Object, bounds: tuple[int | None, int | None], notes: Notes) -> Object:
    """Return the MPIJob v1 with this spec, and the source's name, labels and annotations; bounds: of its workers."""
    metadata = own_metadata(source)
    annotations = {key: value for key, value in metadata.get("annotations", {}).items() if key != _LAST_APPLIED}
    for key, bound in zip((names.MIN_REPLICAS, names.MAX_REPLICAS), bounds, strict=True):
        if bound is not None and key not in annotations:
            annotations[key] = str(min(bound, MOST_WORKERS))
    rest = {key: value for key, value in metadata.items() if key not in ("annotations", "ownerReferences")}
    if not policy.names_discovery(commands.texts(spec["mpiReplicaSpecs"].get("Launcher", {}).get("template", {}))):
        notes.add(
            "spec.mpiReplicaSpecs.Launcher.template",
            f"reads no host list, so the job keeps its size unless horovodrun runs with --host-discovery-script "
            f"{names.DISCOVER_HOSTS_PATH}",
        )
    return {
        "apiVersion": MPI_JOBS.api_version,
        "kind": MPI_JOBS.kind,
        "metadata": rest | ({"annotations": annotations} if annotations else {}),
        "spec": spec,
    }


def replica(source: Source, notes: Notes, at: str, *, known: frozenset[str] = frozenset()) -> Object:
    """Convert a replica spec; the caller handles the fields `known`."""
    notes.unknown(source, _REPLICA_FIELDS | known, at)
    result = {key: source[key] for key in ("replicas", "restartPolicy", "template") if key in source}
    if result.get("restartPolicy") == _EXIT_CODE:
        result["restartPolicy"] = "Never"
        notes.add(
            f"{at}.restartPolicy",
            f"ExitCode becomes Never; failed workers are replaced, see {names.REPLACE_FAILED_WORKERS}",
        )
    # [operator] v0.2.3 ends silently on a replica spec without replicas.
    return {"replicas": 1, **result}
