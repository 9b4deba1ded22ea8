"""Avoided nodes at admission: a new worker gets a preference for other nodes; pure.

Only a preferred term is added, after those of the template; required terms stay as they are. The
term names the Node itself and not a label of it, so each node takes a requirement of its own, and
all of them must hold (nodeSelectorRequirementsAsFieldSelector in k8s.io/component-helpers,
scheduling/corev1/nodeaffinity/nodeaffinity.go).
"""

from collections.abc import Iterable, Sequence
from typing import Any

from mpijob_elastic import names
from mpijob_elastic.admission import json_patch
from mpijob_elastic.admission.interface import CapabilityAdmission, Lookup
from mpijob_elastic.admission.json_patch import Patch
from mpijob_elastic.admission.mutate import AdmittedPod, PreferredNodes, role_of
from mpijob_elastic.capabilities.avoided_nodes import words
from mpijob_elastic.model.job_facts import JobFacts

_AFFINITY = "/spec/affinity"
_OF_NODES = f"{_AFFINITY}/nodeAffinity"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
# Weights of a term [kubernetes].
_LARGEST, _SMALLEST = 100, 1


class AvoidedNodesAdmission(CapabilityAdmission):
    """What the webhook does for a job that avoids nodes."""

    def patched(self, pod: AdmittedPod, job: JobFacts, _lookup: Lookup) -> Patch:
        """Return a patch that lets a new worker prefer other nodes."""
        if words.REASON not in job.notices or not job.acts_elastic:
            return ()  # most jobs
        nodes = words.nodes_in(job.notices)
        if not nodes or role_of(pod, job) != names.ROLE_WORKER:
            return ()
        others = {"matchFields": [_other_than(node) for node in nodes]}
        terms = _terms(pod)
        if any(term.preference == others for term in terms):
            return ()  # the webhook is called again if another one changes the pod
        return _adding(pod, {"weight": _weight(terms), "preference": others})


def _other_than(node: str) -> dict[str, Any]:
    return {"key": "metadata.name", "operator": "NotIn", "values": [node]}


def _terms(pod: AdmittedPod) -> Sequence[PreferredNodes]:
    """Return the terms by which a pod prefers nodes."""
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return ()
    return affinity.node_affinity.preferred or ()


def _weight(terms: Iterable[PreferredNodes]) -> int:
    """Return the largest weight that comes after those of the template.

    The user's own wishes count more than our guess. Karpenter even follows only the term with the
    largest weight, and reads no requirement on a name: ours would hide those of the user
    (newPodRequirements in sigs.k8s.io/karpenter, pkg/scheduling/requirements.go).
    """
    lightest = min((term.weight for term in terms), default=_LARGEST + 1)
    return max(_SMALLEST, lightest - 1)


def _adding(pod: AdmittedPod, term: dict[str, Any]) -> Patch:
    """Return a patch that adds a term to those by which a pod prefers nodes."""
    affinity = pod.spec.affinity
    if affinity is None:
        return json_patch.adding(at=_AFFINITY, value={"nodeAffinity": {_PREFERRED: [term]}})
    if affinity.node_affinity is None:
        return json_patch.adding(at=_OF_NODES, value={_PREFERRED: [term]})
    at = f"{_OF_NODES}/{_PREFERRED}"
    if affinity.node_affinity.preferred:
        return json_patch.adding(at=f"{at}/-", value=term)
    return json_patch.adding(at=at, value=[term])
