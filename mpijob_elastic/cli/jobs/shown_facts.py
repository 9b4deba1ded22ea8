"""Read an MPIJob and a pod to show them: the controller's facts, and some for people."""

import msgspec

from mpijob_elastic import names
from mpijob_elastic.cli.jobs import pod_states
from mpijob_elastic.explain.facts import Pod
from mpijob_elastic.model import job_facts, mpijob
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.mpijob import MPIJob
from mpijob_elastic.model.wire import Owned
from mpijob_elastic.observe import facts_pod
from mpijob_elastic.observe.facts_pod import PodFacts
from mpijob_elastic.observe.pod import decode

# [operator] pkg/apis/kubeflow/v1/common_types.go. Running comes first: an evicted worker sets Failed for ever, although
# the job goes on.
_STATES = ("Running", names.CONDITION_FAILED, "Restarting", "Created")


class SeenJob(msgspec.Struct, frozen=True, kw_only=True):
    """An MPIJob. state: a word for its conditions."""

    facts: JobFacts
    state: str

    @property
    def metadata(self) -> Owned:
        """The object's name and owner."""
        return self.facts.metadata


class SeenPod(msgspec.Struct, frozen=True, kw_only=True):
    """A pod of an MPIJob. state: its state for an explanation."""

    facts: PodFacts
    state: Pod

    @property
    def metadata(self) -> Owned:
        """The object's name and owner."""
        return self.facts.metadata


def read_job(raw: bytes) -> SeenJob:
    """Read an MPIJob's JSON. Raises msgspec.DecodeError where it is none."""
    job = mpijob.decode(raw)
    facts = job_facts.of(job)
    return SeenJob(facts=facts, state=_state(job, facts))


def read_pod(raw: bytes) -> SeenPod:
    """Read a pod's JSON. Raises msgspec.DecodeError where it is none."""
    pod = decode(raw)
    return SeenPod(facts=facts_pod.of(pod), state=pod_states.of(pod))


def _state(job: MPIJob, facts: JobFacts) -> str:
    if facts.deleting:
        return "Terminating"
    if job.condition(names.CONDITION_SUCCEEDED):
        return names.CONDITION_SUCCEEDED
    if facts.finished:
        return names.CONDITION_FAILED
    return next((state for state in _STATES if job.condition(state)), "Pending")
