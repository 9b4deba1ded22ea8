"""Hold back new pods of a job that must not start yet, by a scheduling gate for each reason; pure.

https://kubernetes.io/docs/concepts/scheduling-eviction/pod-scheduling-readiness/
A pod gets gates at its creation or never. The controller takes them off (decide/scheduling_gates).
"""

from collections.abc import Iterator

from mpijob_elastic import names
from mpijob_elastic.model.job_facts import JobFacts
from webhook.rules import json_patch
from webhook.rules.json_patch import Patch
from webhook.rules.mutate import Pod, role_of
from webhook.rules.review import Refusal

# The first minor version of Kubernetes 1 with gates that are on by default.
FIRST = 27


def missing(pod: Pod, job: JobFacts | None) -> Patch:
    """Return a patch that adds the gates that a launcher or worker lacks. job: the MPIJob as last seen."""
    # The API server refuses gates on a pod whose node is chosen.
    if job is None or not job.gates or pod.spec.node_name or not role_of(pod, job):
        return ()
    there = [gate.name for gate in pod.spec.scheduling_gates or ()]
    new = [{"name": gate} for gate in job.gates if gate not in there]
    if not there:
        return json_patch.adding(at="/spec/schedulingGates", value=new)
    return tuple(operation for gate in new for operation in json_patch.adding(at="/spec/schedulingGates/-", value=gate))


def refusals(new: JobFacts, old: JobFacts | None, *, minor: int | None) -> Iterator[Refusal]:
    """Yield why a job cannot wait at a gate that it did not have before; minor: of the API server, None if unknown."""
    if minor is None or minor >= FIRST:
        return
    fields = {names.GATE_QUEUED: f"metadata.labels[{names.LABEL_QUEUE}]", names.GATE_SUSPENDED: new.suspended_by}
    for gate in set(new.gates).difference(old.gates if old else ()):
        why = f"Kubernetes 1.{minor} has no scheduling gates, so the pods would start at once; it takes 1.{FIRST}"
        if fields[gate]:
            yield Refusal(field=fields[gate], message=why)
