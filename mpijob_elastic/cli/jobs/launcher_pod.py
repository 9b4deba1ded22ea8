"""A job's launcher as commands that deal with its processes need it, read with few rights: get MPIJobs and pods."""

from dataclasses import dataclass

from mpijob_elastic import names
from mpijob_elastic.cli.jobs import get, shown_facts
from mpijob_elastic.cli.jobs.explain import NoSuchWorker
from mpijob_elastic.cli.jobs.shown_facts import SeenJob, SeenPod
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import MPI_JOBS, PODS
from mpijob_elastic.model.containers import of_driver
from mpijob_elastic.model.pod import Launcher, LauncherPhase
from mpijob_elastic.observe.pod import ContainerStatus, State, decode


class NotStarted(errors.KubeError):
    """The launcher has no log yet, or no more; the message says why."""


@dataclass(frozen=True, kw_only=True)
class LauncherPod:
    """The launcher pod of a job. started: its container runs or has run; ended: it does not run now.

    restarts: of its container. waits: why it has not started, in words.
    """

    launcher: Launcher
    started: bool
    ended: bool
    restarts: int
    waits: str

    @property
    def uid(self) -> str:
        """The pod's uid."""
        return self.launcher.ref.uid


async def find_job(client: ApiReader, namespace: str, job: str) -> SeenJob:
    """Return a job. Raises get.NoSuchJob and other `errors.KubeError`."""
    found = await client.find(MPI_JOBS.path(namespace, job))
    if found is None:
        raise await get.no_such(client, namespace, job)
    return shown_facts.read_job(found)


async def find(client: ApiReader, job: SeenJob) -> LauncherPod | None:
    """Return the launcher, None while there is none of this job. Raises `errors.KubeError`."""
    raw = await client.find(PODS.path(job.metadata.namespace, names.launcher(job.metadata.name)))
    seen = shown_facts.read_pod(raw) if raw else None
    if raw is None or seen is None or seen.metadata.job_uid != job.metadata.uid:
        return None
    container = of_driver(seen.facts.containers, mounting=seen.facts.mounting)
    pod = decode(raw)
    statuses = (pod.status and pod.status.container_statuses) or ()
    status = next((one for one in statuses if one.name == container), ContainerStatus())
    now, before = status.state or State(), status.last_state or State()
    stopped = now.terminated is not None or (now.running is None and before.terminated is not None)
    return LauncherPod(
        launcher=Launcher(facts=seen.facts, container=container),
        started=stopped or now.running is not None,
        # Of a pod whose node is lost nobody says what its containers do.
        ended=stopped or seen.facts.launcher_phase is LauncherPhase.FINISHED,
        restarts=status.restart_count,
        waits=_waits(seen),
    )


def worker_pod(job: SeenJob, worker: str) -> str:
    """Return a worker's pod, given that or its index. Raises NoSuchWorker if it can be none of the job."""
    name = job.metadata.name
    pod = names.worker(name, int(worker)) if worker.isdecimal() else worker
    if names.worker_index(pod, job=name) is None:
        raise NoSuchWorker(f"{name} has no worker {worker}: give a number like 0 or a pod like {names.worker(name, 0)}")
    return pod


def absent(job: SeenJob) -> str:
    """Return why there is no launcher, in words."""
    name = names.launcher(job.metadata.name)
    if job.facts.finished:
        return f"{name} and its log are gone: {job.metadata.name} has ended ({job.state})"
    return f"{name} does not exist yet ({job.state})"


def _waits(seen: SeenPod) -> str:
    facts, state = seen.facts, seen.state
    gates = f"held back by {', '.join(facts.gates)}" if facts.gates else ""
    init = "its init container waits for the workers" if facts.delivering_since is not None else ""
    why = gates or state.unscheduled or (str(state.stuck) if state.stuck else "") or init or facts.phase or "Pending"
    return f"{facts.metadata.name} has not started: {why}"
