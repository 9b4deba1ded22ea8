"""Read the pods of a job, for commands that reach into pods.

Few rights are needed: get MPIJobs and pods. `attach` opens a shell in a pod, by the user's own
kubectl, or runs a command there.
"""

import asyncio
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from mpijob_elastic import names
from mpijob_elastic.cli.connection import reached
from mpijob_elastic.cli.jobs import snapshot
from mpijob_elastic.cli.jobs.explain import NoSuchWorker
from mpijob_elastic.cli.jobs.snapshot import SeenJob, SeenPod
from mpijob_elastic.cli.target import Where
from mpijob_elastic.install import Refused
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.exec import exec_on_terminal
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import MPI_JOBS, PODS
from mpijob_elastic.model.pod import DRIVER_ENDED, Launcher, as_launcher, of_driver
from mpijob_elastic.observe.facts_pod import ContainerStatus, ReportedPod, State, decode
from mpijob_elastic.telemetry import terminal

# Runs on a terminal, so that the shell does not count as a rank (act/worker_scripts).
SHELL = ("/bin/sh", "-c", "command -v bash > /dev/null && exec bash; exec sh")
# Runs the words behind it. Nobody types on the terminal that the pod gives them, so a program that
# reads would wait for ever: it gets an input that has ended, and keeps the terminal.
WITHOUT_INPUT = ("/bin/sh", "-c", 'exec "$@" < /dev/null', "sh")
# Seconds that a command may take.
LONGEST = 7 * 86400.0


class NotStarted(errors.KubeError):
    """The pod, or its log, is not there yet or not any more; the message says why."""


@dataclass(frozen=True, kw_only=True)
class LauncherPod:
    """The launcher pod of a job."""

    launcher: Launcher
    #: The container runs or has run.
    started: bool
    #: The container has run, and does not run now.
    ended: bool
    #: Restarts of the container.
    restarts: int
    #: Why the pod has not started, in words.
    waits: str

    @property
    def uid(self) -> str:
        """The pod's uid."""
        return self.launcher.ref.uid


async def find_job(client: ApiReader, namespace: str, job: str) -> SeenJob:
    """Return a job. Raises NoSuchJob, UnreadableObject and other `errors.KubeError`."""
    found = await client.find(MPI_JOBS.path(namespace, job))
    if found is None:
        raise await snapshot.no_such(client, namespace, job)
    return snapshot.read_named(found, snapshot.read_job, MPI_JOBS, f"{namespace}/{job}")


def _read_pod(raw: bytes, namespace: str, name: str) -> SeenPod:
    """Read a pod. Raises UnreadableObject."""
    return snapshot.read_named(raw, snapshot.read_pod, PODS, f"{namespace}/{name}")


async def find(client: ApiReader, job: SeenJob) -> LauncherPod | None:
    """Return the launcher, None while this job has no launcher. Raises `errors.KubeError`."""
    namespace, name = job.metadata.namespace, names.launcher(job.metadata.name)
    raw = await client.find(PODS.path(namespace, name))
    seen = _read_pod(raw, namespace, name) if raw else None
    if raw is None or seen is None or seen.metadata.job_uid != job.metadata.uid:
        return None
    facts = as_launcher(seen.facts)
    container = of_driver(facts.containers, mounting=facts.mounting)
    status = _status(decode(raw), container)
    now, before = status.state or State(), status.last_state or State()
    stopped = now.terminated is not None or (now.running is None and before.terminated is not None)
    return LauncherPod(
        launcher=Launcher(facts=facts, container=container),
        started=stopped or now.running is not None,
        # If the node of the pod is lost, nobody reports the state of the containers.
        ended=stopped or facts.launcher_phase in DRIVER_ENDED,
        restarts=status.restart_count,
        waits=_waits(seen),
    )


def _status(pod: ReportedPod, container: str) -> ContainerStatus:
    """Return the status of a container; an empty one while the kubelet has not reported any."""
    statuses = (pod.status and pod.status.container_statuses) or ()
    return next((one for one in statuses if one.name == container), ContainerStatus())


def worker_pod(job: SeenJob, worker: str) -> str:
    """Return the name of a worker's pod, given the name or the worker's index.

    Raises NoSuchWorker if the job cannot have such a pod.
    """
    name = job.metadata.name
    pod = names.worker(name, int(worker)) if worker.isdecimal() else worker
    if names.worker_index(pod, job=name) is None:
        raise NoSuchWorker(
            f"{name} has no worker {worker}: give a number like 0 or a pod like "
            f"{names.worker(name, 0)}"
        )
    return pod


def absent(job: SeenJob) -> str:
    """Return the reason why the job has no launcher, in words."""
    name = names.launcher(job.metadata.name)
    if job.facts.finished:
        return f"{name} and its log are gone: {job.metadata.name} has ended ({job.state})"
    return f"{name} does not exist yet ({job.state})"


def attach(where: Where, *, job: str, worker: str | None, command: Sequence[str] = ()) -> int:
    """Run a shell or a command in a pod; return the exit code of a command.

    On a terminal this process is replaced by kubectl, which exits with the exit code. worker: None
    for the launcher. Raises Refused if a shell has no kubectl or no terminal, what `options`
    raises, and the errors of an exec.
    """
    is_on_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    kubectl = shutil.which("kubectl")
    if command and not (is_on_terminal and kubectl):
        return asyncio.run(_run(where, job=job, worker=worker, command=command))
    if kubectl is None:
        raise Refused("the shell is started by kubectl, and there is no kubectl in the PATH")
    if not is_on_terminal:
        raise Refused(
            "a shell needs a terminal; without a terminal, its processes would count as ranks. "
            "Type what to run: attach JOB -- COMMAND"
        )
    words = asyncio.run(options(where, job=job, worker=worker))
    return _become(kubectl, ["exec", "-it", *words, "--", *(command or SHELL)])


def _become(program: str, words: Sequence[str]) -> NoReturn:
    """Replace this process by a program."""
    os.execv(program, [program, *words])  # noqa: S606 - no shell reads these words


async def _run(where: Where, *, job: str, worker: str | None, command: Sequence[str]) -> int:
    """Run a command in a pod without input, and print its output; return its exit code.

    The command has a terminal in the pod, so that its processes do not count as ranks
    (act/worker_scripts).
    """
    async with reached(where) as (client, namespace):
        assert namespace is not None
        found = await find_job(client, namespace, job)
        name = _pod_name(found, worker)
        container = await _container(client, found, name)
        output = TerminalLines()
        result = await exec_on_terminal(
            client,
            namespace,
            name,
            container=container,
            command=[*WITHOUT_INPUT, *command],
            timeout=LONGEST,
            tell=output.add,
        )
        output.end()
    return result.exit_code


class TerminalLines:
    """Prints what a command writes to a terminal in a pod, with plain line breaks."""

    def __init__(self) -> None:
        self._rest = b""

    def add(self, _channel: int, data: bytes) -> None:
        """Print the lines that are complete."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            terminal.copy(line.removesuffix(b"\r"))

    def end(self) -> None:
        """Print the last line, which has no line break."""
        terminal.put(self._rest.decode(errors="replace"))
        self._rest = b""


def _pod_name(job: SeenJob, worker: str | None) -> str:
    """Return the name of a worker's pod, or of the launcher's. Raises NoSuchWorker."""
    return names.launcher(job.metadata.name) if worker is None else worker_pod(job, worker)


async def options(where: Where, *, job: str, worker: str | None) -> list[str]:
    """Return the options for `kubectl exec`.

    Raises NoSuchJob, NoSuchWorker, NotStarted and other `errors.KubeError`.
    """
    async with reached(where) as (client, namespace):
        assert namespace is not None
        found = await find_job(client, namespace, job)
        name = _pod_name(found, worker)
        container = await _container(client, found, name)
    given = [("--kubeconfig", where.kubeconfig), ("--context", where.context)]
    chosen = [str(word) for option, value in given if value for word in (option, value)]
    return [*chosen, "-n", namespace, name, "-c", container]


async def _container(client: ApiReader, job: SeenJob, name: str) -> str:
    """Return the container of the driver or of the ranks.

    Raises NotStarted if the pod does not run, and other `errors.KubeError`.
    """
    namespace = job.metadata.namespace
    raw = await client.find(PODS.path(namespace, name))
    seen = _read_pod(raw, namespace, name) if raw else None
    state = (
        seen.facts.phase
        if seen and seen.metadata.job_uid == job.metadata.uid
        else "there is no such pod"
    )
    if seen is None or state != "Running":
        raise NotStarted(
            f"{name} does not run: {state}; `{names.PROGRAM} explain {job.metadata.name}` says more"
        )
    return of_driver(seen.facts.containers, mounting=seen.facts.mounting)


def _waits(seen: SeenPod) -> str:
    facts, state = as_launcher(seen.facts), seen.state
    gates = f"held back by {', '.join(facts.gates)}" if facts.gates else ""
    init = "its init container waits for the workers" if facts.delivering_since is not None else ""
    why = (
        gates
        or state.unscheduled
        or (str(state.stuck) if state.stuck else "")
        or init
        or facts.phase
        or "Pending"
    )
    return f"{facts.metadata.name} has not started: {why}"
