"""`attach`: a shell in a worker or the launcher, by the user's own kubectl."""

import asyncio
import os
import shutil
import sys

from mpijob_elastic import names
from mpijob_elastic.cli.jobs import launcher_pod, shown_facts
from mpijob_elastic.cli.jobs.launcher_pod import NotStarted
from mpijob_elastic.cli.jobs.shown_facts import SeenJob
from mpijob_elastic.cli.target import Where, reached
from mpijob_elastic.install import Refused
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import PODS
from mpijob_elastic.model.containers import of_driver

# On a terminal, so that the shell is no rank (act/worker_probes).
SHELL = ("/bin/sh", "-c", "command -v bash > /dev/null && exec bash; exec sh")


def attach(where: Where, *, job: str, worker: str | None) -> None:
    """Become kubectl, whose exit code is that of the shell; worker: None for the launcher.

    Raises Refused without kubectl or terminal, and as `options`.
    """
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        raise Refused("the shell is started by kubectl, and there is no kubectl in the PATH")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Refused("a shell needs a terminal; without one its processes would count as a rank")
    words = asyncio.run(options(where, job=job, worker=worker))
    os.execv(kubectl, [kubectl, "exec", "-it", *words, "--", *SHELL])  # noqa: S606 - no shell reads these words


async def options(where: Where, *, job: str, worker: str | None) -> list[str]:
    """Return kubectl's options. Raises NoSuchJob, NoSuchWorker, NotStarted and other `errors.KubeError`."""
    async with reached(where) as (client, namespace):
        assert namespace is not None
        found = await launcher_pod.find_job(client, namespace, job)
        name = launcher_pod.worker_pod(found, worker) if worker is not None else names.launcher(found.metadata.name)
        container = await _container(client, found, name)
    given = [("--kubeconfig", where.kubeconfig), ("--context", where.context)]
    chosen = [str(word) for option, value in given if value for word in (option, value)]
    return [*chosen, "-n", namespace, name, "-c", container]


async def _container(client: ApiReader, job: SeenJob, name: str) -> str:
    """Return the container of the driver or of the ranks. Raises NotStarted."""
    raw = await client.find(PODS.path(job.metadata.namespace, name))
    seen = shown_facts.read_pod(raw) if raw else None
    state = seen.facts.phase if seen and seen.metadata.job_uid == job.metadata.uid else "there is no such pod"
    if seen is None or state != "Running":
        raise NotStarted(f"{name} does not run: {state}; `{names.PROGRAM} explain {job.metadata.name}` says more")
    return of_driver(seen.facts.containers, mounting=seen.facts.mounting)
