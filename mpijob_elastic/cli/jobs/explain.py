"""`explain`: read the job, look around and into its pods, explain, print."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable

from mpijob_elastic import names
from mpijob_elastic.cli.jobs import dependencies, exec_probes, get, reasons
from mpijob_elastic.cli.jobs.dependencies import Registration
from mpijob_elastic.cli.jobs.snapshot import Snapshot
from mpijob_elastic.cli.target import Where, reached
from mpijob_elastic.explain import explain as find
from mpijob_elastic.explain.facts import Facts, Look
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.model.execs import Exec
from mpijob_elastic.model.job import JobView, Worker
from mpijob_elastic.observe.facts_pod import PodFacts


class NoSuchWorker(errors.KubeError):
    """The job has no such worker; the message says which it has."""


async def explain(
    where: Where, *, job: str, worker: str | None, output: str, look: bool, controller_namespace: str | None = None
) -> bool:
    """Print why workers do not train; tell whether all do. Raises `errors.KubeError`.

    controller_namespace: where the controllers' Lease is; None: where the webhook is served, as far as can be seen.
    """
    async with reached(where) as target:
        snapshot = await get.find(target, job)
        pod = worker_name(snapshot.view, worker) if worker else None
        registered = await dependencies.registration(target.client)
        home = controller_namespace or dependencies.home(registered)
        facts = await _facts(target.client, snapshot, registered, pod=pod, look=look, home=home)
    explanation = find(snapshot.view, facts, now=time.time())
    if pod:
        explanation = explanation.of(pod)
    report = reasons.build(snapshot.view, explanation, state=snapshot.state)
    write = get.WRITERS.get(output)
    print(write(report) if write else "\n".join(reasons.text(report)))  # noqa: T201
    return explanation.all_train


def worker_name(view: JobView, worker: str) -> str:
    """The pod's name, from that or from its index. Raises NoSuchWorker where it is neither there nor wanted."""
    name = names.worker(view.name, int(worker)) if worker.isdecimal() else worker
    known = {*view.wanted_names, *(one.name for one in view.workers)}
    if name in known:
        return name
    first = names.worker(view.name, 0)
    raise NoSuchWorker(f"{view.name} has no worker {worker}; {len(known)} there are, such as 0 or {first}")


async def _facts(
    client: ApiReader, snapshot: Snapshot, registered: Registration | None, *, pod: str | None, look: bool, home: str
) -> Facts:
    view, now = snapshot.view, time.time()
    look = look and not (view.finished or view.deleting or view.foreign)
    controller, webhook, events, threats, looks, frozen = await asyncio.gather(
        dependencies.controller_trouble(lambda: dependencies.lease(client, home), namespace=home, now=now),
        _webhook(client, view, registered),
        dependencies.warnings(client, view.namespace, dict(_troubled(view, pod))),
        dependencies.threats(client, _threatened(snapshot)),
        _looks(client, view, pod=pod, look=look),
        _frozen(client, view, look=look),
    )
    return Facts(
        state=snapshot.state,
        created_at=snapshot.created_at,
        pods={name: seen.state for name, seen in snapshot.pods.items()},
        events=events,
        threats=threats,
        home=home,
        controller=controller,
        webhook=webhook,
        launch=snapshot.launch,
        role_readable=snapshot.role_readable,
        looked=look,
        looks=looks,
        frozen=frozen,
    )


async def _webhook(client: ApiReader, view: JobView, registered: Registration | None) -> str:
    """Of interest only while a launcher may yet be created."""
    is_needed = view.elastic and not view.finished and (view.launcher is None or not view.launcher.mounts_discovery)
    return await dependencies.webhook_trouble(client, registered) if is_needed else ""


def _troubled(view: JobView, pod: str | None) -> Iterable[tuple[str, str]]:
    """Name and uid of what Events may tell more of: the job where a worker is missing, and pods that do not run."""
    if len([worker for worker in view.workers if worker.index < view.replicas]) < view.replicas:
        yield view.name, view.ref.uid
    for worker in view.workers:
        if not worker.running and pod in (None, worker.name):
            yield worker.name, worker.ref.uid


def _threatened(snapshot: Snapshot) -> Iterable[PodFacts]:
    """Pods whose nodes matter: the launcher, with which all ends, and workers that could be in the list and are not."""
    view = snapshot.view
    if view.driver_running and view.launcher:
        yield snapshot.pods[view.launcher.ref.name].facts
    waiting = (one for one in view.workers if one.ready and one.index < view.replicas and not view.is_published(one))
    yield from (snapshot.pods[worker.name].facts for worker in waiting)


async def _looks(client: ApiReader, view: JobView, *, pod: str | None, look: bool) -> dict[str, Look]:
    if not look or not view.driver_running:
        return {}
    running = [worker for worker in view.workers if worker.running and not worker.deleting]
    # The one that is asked about first; whether others train tells what it means that it does not.
    return dict(await exec_probes.into_workers(client, view, sorted(running, key=lambda one: _distance(one, pod))))


def _distance(worker: Worker, pod: str | None) -> tuple[bool, int]:
    return worker.name != pod, worker.index


async def _frozen(client: ApiReader, view: JobView, *, look: bool) -> tuple[Exec, ...]:
    return await exec_probes.look_for_frozen(view, lambda: exec_probes.into_launcher(client, view)) if look else ()
