"""Convert a MPIJob v1alpha2 to v1 (mpi-operator v0.2.3, pkg/apis/kubeflow/v1alpha2/types.go and v1/types.go)."""

from mpijob_elastic import names
from upgrade.conversion import elastic
from upgrade.conversion.elastic import Notes, Object, Source

_KEPT = ("slotsPerWorker", "cleanPodPolicy", "mainContainer")
_MOVED = ("backoffLimit", "activeDeadlineSeconds")
_KNOWN = frozenset({*_KEPT, *_MOVED, "mpiReplicaSpecs", "runPolicy"})


def convert(source: Source, notes: Notes) -> Object:
    """Return the same job in v1; its bounds are those for horovodrun."""
    spec = source.get("spec", {})
    notes.unknown(spec, _KNOWN, "spec")
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
