"""Pods that wait at a scheduling gate of ours, which nobody else takes off.

A pod that is deleted comes back with its gate while the webhook is there: mpi-operator makes it
again. So only its job can be changed, or deleted.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from mpijob_elastic import capabilities, names
from mpijob_elastic.install import Refused
from mpijob_elastic.kube.reader import ApiReader, list_objects
from mpijob_elastic.kube.resources import PODS
from mpijob_elastic.model.json_parts import owned
from mpijob_elastic.model.phrases import listed
from mpijob_elastic.observe import facts_pod as pod

_GATES = names.GATES | {names.GATE_PARKED}


def _resume(job: str, namespace: str) -> str:
    """Return what is typed for a suspended job. KubeQueue holds a job at this gate, too."""
    return (
        f"`{names.PROGRAM} resume {job} -n {namespace}` (in a queue of KubeQueue `kubectl "
        f"annotate mpijob {job} -n {namespace} {capabilities.KUBEQUEUE_SUSPEND}=false "
        "--overwrite`)"
    )


def _leave_queue(job: str, namespace: str) -> str:
    return f"`kubectl label mpijob {job} -n {namespace} {capabilities.LABEL_QUEUE}-`"


def _unpark(job: str, namespace: str) -> str:
    return f"`kubectl annotate mpijob {job} -n {namespace} {names.PARKED}-`"


# What is typed so that the pods of a job leave a gate.
_WAYS: Mapping[str, Callable[[str, str], str]] = {
    names.GATE_SUSPENDED: _resume,
    names.GATE_QUEUED: _leave_queue,
    names.GATE_PARKED: _unpark,
}


@dataclass(frozen=True, kw_only=True)
class GatedPod:
    """A pod that waits at a gate of ours."""

    namespace: str
    name: str
    #: "" if no MPIJob controls the pod.
    job: str
    #: Our gates.
    gates: frozenset[str]

    def ways(self) -> list[str]:
        """Return what is typed so that the pods of its job leave these gates."""
        if not self.job:
            return []
        known = sorted(self.gates & _WAYS.keys())
        return [_WAYS[gate](self.job, self.namespace) for gate in known]


async def read(client: ApiReader) -> list[GatedPod]:
    """Return the pods that wait at a gate of ours. Raises `errors.KubeError`."""
    pods = await list_objects(client, PODS.path(), pod.decode, selector=names.POD_SELECTOR)
    return [found for found in map(_read, pods) if found.gates]


def _read(one: pod.ReportedPod) -> GatedPod:
    gates = (one.spec and one.spec.scheduling_gates) or ()
    metadata = owned(one.metadata)
    return GatedPod(
        namespace=metadata.namespace,
        name=metadata.name,
        job=metadata.job,
        gates=_GATES.intersection(gate.name for gate in gates),
    )


def check_none(waiting: Iterable[GatedPod]) -> None:
    """Raise `Refused` if pods wait at a gate of ours."""
    found = list(waiting)
    if not found:
        return
    typed = sorted({way for one in found for way in one.ways()})
    ways = [f"type {listed(typed)}"] if typed else []
    raise Refused(
        "pods wait at a scheduling gate of ours that nobody else takes off: "
        f"{in_words(found)}. For each of their jobs, {', or '.join([*ways, 'delete the job'])}, "
        "and run this again. It does not help to delete the pods: mpi-operator makes them again, "
        "with the gate"
    )


async def left_waiting(client: ApiReader) -> list[str]:
    """Return, in words, the pods that have come to a gate since the last look, if there are any.

    Raises `errors.KubeError`.
    """
    found = await read(client)
    why = f"pods came to a scheduling gate of ours that nobody takes off: {in_words(found)}"
    return (
        [f"During the removal {why}. Delete them: mpi-operator makes them again without the gate."]
        if found
        else []
    )


def in_words(found: Iterable[GatedPod]) -> str:
    """Return the names of pods, as `a/train, b/train and 3 more`."""
    return listed(sorted(f"{one.namespace}/{one.name}" for one in found))
