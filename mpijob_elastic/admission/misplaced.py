"""Say what the operator makes of a field that it does not know, and what its author may have meant.

Pure. A field stands in the wrong place, has a typing error, or is newer than the operator.
"""

from mpijob_elastic import names
from mpijob_elastic.model import near_names, operator_types
from mpijob_elastic.model.operator_types import Dropped

# What the loss of an important field means, by `STRUCT.FIELD`.
_MEANS = {
    "Container.restartPolicy": (
        "a sidecar becomes an init container, and its pod waits until that ends"
    ),
    "Container.startupProbe": "the other probes begin at once",
    "Handler.sleep": "no handler is left, so the pods are refused",
    # It is a field of Kubernetes, not a misspelt supplementalGroups.
    "PodSecurityContext.supplementalGroupsPolicy": "the pods do without it",
    "PodSpec.resourceClaims": "the pods get none of these devices",
    "PodSpec.topologySpreadConstraints": "the pods are not spread",
    "Probe.grpc": "no handler is left, so the pods are refused",
    "Volume.ephemeral": "the volume becomes an emptyDir",
}
# Fields without which the API server refuses a pod.
_NEEDED = frozenset(
    {
        "Container.image",
        "Container.name",
        "ContainerPort.containerPort",
        "EnvVar.name",
        "PodSpec.containers",
        "Volume.name",
        "VolumeMount.mountPath",
        "VolumeMount.name",
    }
)
# Fields that are no field of the operator's, but that something else reads.
_READ_BY_OTHERS = frozenset({"MPIJobSpec.managedBy", "RunPolicy.suspend", "RunPolicy.managedBy"})
_NO_EFFECT = "it has no effect"
# Where a field of a struct belongs if it stands directly below spec. The first that knows it wins.
_PLACES = (
    ("ReplicaSpec", "write it below Launcher or Worker of spec.mpiReplicaSpecs"),
    ("PodSpec", "write it below template.spec of Launcher or Worker in spec.mpiReplicaSpecs"),
    ("RunPolicy", "write it below spec.runPolicy"),
)


def is_told(one: Dropped) -> bool:
    """Tell whether the author of a job should know that the operator drops a field."""
    struct = one.known_as.partition(".")[0]
    if one.known_as in operator_types.PUT_BACK or one.known_as in _READ_BY_OTHERS:
        return False
    # The run policy's own words on it are said by the capability.
    return one.field.startswith("spec.") and struct != "SchedulingPolicy"


def meaning(one: Dropped) -> str:
    """Return what the loss of a field means, or what to write instead."""
    if one.known_as in _MEANS:
        return _MEANS[one.known_as]
    struct, _, field = one.known_as.partition(".")
    if struct == operator_types.ROLES:
        roles = (names.ROLE_LAUNCHER.capitalize(), names.ROLE_WORKER.capitalize())
        return _asked(near_names.nearest(field, roles)) or _NO_EFFECT
    if struct == "MPIJobSpec":
        for home, advice in _PLACES:
            if field in operator_types.fields(home):
                return advice
    meant = near_names.nearest(field, operator_types.fields(struct))
    if f"{struct}.{meant}" in _NEEDED:
        return f"{_asked(meant)} The API server refuses the pods without it"
    return _asked(meant) or (_NO_EFFECT if struct == "MPIJobSpec" else "the pods do without it")


def _asked(meant: str) -> str:
    return f"did you mean {meant}?" if meant else ""
