"""The facts of an MPIJob: derived once from its JSON, for controller, webhook, upgrade and command line."""

from collections.abc import Iterable, Mapping

import msgspec

from mpijob_elastic import names
from mpijob_elastic.model import horovodrun, mpijob, policy
from mpijob_elastic.model.horovodrun import Launch
from mpijob_elastic.model.mpijob import Container, MPIJob
from mpijob_elastic.model.policy import Policy, Problem
from mpijob_elastic.model.wire import Owned, owned, seconds

GLOO_TIMEOUT = "HOROVOD_GLOO_TIMEOUT_SECONDS"


class JobFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One MPIJob; times are seconds since the epoch.

    launch: how its launcher starts the ranks, None if the command cannot be read. gloo_timeout: seconds until Gloo
    gives up a peer, 0 if nothing says. reported: the operator has written its status. started_at: when the operator saw
    it first. deadline: seconds that the launcher may run, None without a limit. finished: Succeeded, or Failed for
    good. succeeded_at: when, None unless it did. notices: our annotation on it, "" without. lacks_selector: its status
    counts the workers and does not say how to find them. pod_labels: of the templates, by role.
    """

    metadata: Owned
    created_at: float
    replicas: int
    slots: int
    elastic: bool
    policy: Policy
    problems: tuple[Problem, ...]
    launch: Launch | None
    gloo_timeout: int
    clean_pod_policy: str
    deleting: bool
    reported: bool
    started_at: float | None
    deadline: int | None
    finished: bool
    succeeded_at: float | None
    notices: str
    lacks_selector: bool
    pod_labels: Mapping[str, Mapping[str, str]]

    @property
    def np_workers(self) -> int:
        """Workers that horovodrun waits for at its start (-np); 0 if its command does not say."""
        return self._workers(self.launch.np if self.launch else None)

    @property
    def min_np_workers(self) -> int:
        """Workers below which training waits (--min-np, or -np); 0 if the command does not say."""
        return self._workers(self.launch.effective_min_np if self.launch else None)

    @property
    def max_np_workers(self) -> int:
        """Workers above which no more ranks start (--max-np); 0 if the command does not say."""
        return self._workers(self.launch.max_np if self.launch else None)

    @property
    def counts_resets(self) -> bool:
        """True if horovodrun ends the job after so many resets (--reset-limit)."""
        return self.launch is not None and self.launch.reset_limit is not None

    def _workers(self, slots: int | None) -> int:
        return -(-(slots or 0) // self.slots)


def read(raw: bytes) -> JobFacts:
    """Return the facts in an MPIJob's JSON. Raises msgspec.DecodeError if it is none."""
    return of(mpijob.decode(raw))


def of(job: MPIJob) -> JobFacts:
    """Return the facts of a decoded MPIJob."""
    asked, problems = policy.parse(job.metadata.annotations)
    launcher = job.containers(names.ROLE_LAUNCHER)
    texts = (text for container in launcher for text in container.texts())
    spec, status = job.spec or mpijob.Spec(), job.status or mpijob.Status()
    succeeded = job.condition(names.CONDITION_SUCCEEDED) is not None
    # [operator] Only the first container of a launcher gets kubectl and the hostfile.
    launch = horovodrun.parse(launcher[0].words()) if launcher else None
    return JobFacts(
        metadata=owned(job.metadata),
        created_at=seconds(job.metadata.creation_timestamp) or 0.0,
        replicas=job.replicas,
        slots=job.slots,
        elastic=policy.names_discovery(texts) if asked.enabled is None else asked.enabled,
        policy=asked,
        problems=tuple(problems),
        launch=launch,
        gloo_timeout=_gloo_timeout(launch, [*launcher[:1], *job.containers(names.ROLE_WORKER)]),
        clean_pod_policy=spec.clean_pod_policy or "None",
        deleting=job.metadata.deleting,
        reported=bool(status.conditions),
        started_at=seconds(status.start_time),
        deadline=job.pod(names.ROLE_LAUNCHER).active_deadline_seconds,
        finished=job.finished,
        succeeded_at=seconds(status.completion_time) if succeeded else None,
        notices=job.metadata.annotations.get(names.STATUS, ""),
        lacks_selector=job.lacks_selector,
        pod_labels={role: job.pod_labels(role) for role in (names.ROLE_LAUNCHER, names.ROLE_WORKER)},
    )


def _gloo_timeout(launch: Launch | None, containers: Iterable[Container]) -> int:
    """Return the timeout; horovodrun hands its option, else the launcher's variable, on to all ranks (gloo_run.py)."""
    if launch and launch.gloo_timeout is not None:
        return launch.gloo_timeout
    said = (container.variable(GLOO_TIMEOUT) for container in containers)
    return horovodrun.number(next((text for text in said if text is not None), None)) or 0
