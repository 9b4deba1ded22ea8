"""Read a MPIJob and a pod to show them: the controller's facts, and some for people."""

from __future__ import annotations

import msgspec

from mpijob_elastic import names
from mpijob_elastic.cli.jobs import pod_states
from mpijob_elastic.explain.facts import Pod
from mpijob_elastic.model import horovodrun
from mpijob_elastic.model.horovodrun import Launch
from mpijob_elastic.model.mpijob import MPIJob
from mpijob_elastic.observe import facts_job, facts_pod
from mpijob_elastic.observe.facts_job import JobFacts
from mpijob_elastic.observe.facts_pod import PodFacts
from mpijob_elastic.observe.owners import Owned
from mpijob_elastic.observe.times import seconds

# [operator] pkg/apis/kubeflow/v1/common_types.go. Running comes first: an evicted worker sets Failed for ever, although
# the job goes on.
_STATES = ("Running", names.CONDITION_FAILED, "Restarting", "Created")


class SeenJob(msgspec.Struct, frozen=True, kw_only=True):
    """A MPIJob. state: a word for its conditions; created_at: seconds since the epoch; launch: how it starts ranks."""

    facts: JobFacts
    state: str
    created_at: float
    launch: Launch | None

    @property
    def metadata(self) -> Owned:
        """The object's name and owner."""
        return self.facts.metadata


class SeenPod(msgspec.Struct, frozen=True, kw_only=True):
    """A pod of a MPIJob. state: its state for an explanation."""

    facts: PodFacts
    state: Pod

    @property
    def metadata(self) -> Owned:
        """The object's name and owner."""
        return self.facts.metadata


_jobs = msgspec.json.Decoder(MPIJob)


def read_job(raw: bytes) -> SeenJob:
    """Read a MPIJob's JSON. Raises msgspec.DecodeError where it is none."""
    job, facts = _jobs.decode(raw), facts_job.read(raw)
    created_at = seconds(job.metadata.creation_timestamp) or 0.0
    launches = (horovodrun.parse(command) for command in job.launcher_commands())
    launch = next((launch for launch in launches if launch), None)
    return SeenJob(facts=facts, state=_state(job, facts), created_at=created_at, launch=launch)


def read_pod(raw: bytes) -> SeenPod:
    """Read a pod's JSON. Raises msgspec.DecodeError where it is none."""
    return SeenPod(facts=facts_pod.read(raw), state=pod_states.read(raw))


def _state(job: MPIJob, facts: JobFacts) -> str:
    if facts.deleting:
        return "Terminating"
    if job.condition(names.CONDITION_SUCCEEDED):
        return names.CONDITION_SUCCEEDED
    if facts.finished:
        return names.CONDITION_FAILED
    return next((state for state in _STATES if job.condition(state)), "Pending")
