"""Hold back new pods of a job that must not start yet, by a scheduling gate for each reason; pure.

https://kubernetes.io/docs/concepts/scheduling-eviction/pod-scheduling-readiness/
A pod gets gates at its creation or never. The controller takes them off (decide/hold).
"""

from mpijob_elastic.model.job_facts import JobFacts
from webhook.rules import json_patch
from webhook.rules.json_patch import Patch
from webhook.rules.mutate import Pod, role_of


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
