"""Look by exec how far trainings are, with the user's own rights (model/progress).

Looks are bounded in number and time, and a look that fails finds no line: a list of jobs must not
wait for a pod, or fail because of one.
"""

import asyncio
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from mpijob_elastic.act.worker_scripts import LONGEST_ANSWER, MARK, TELL_PROGRESS
from mpijob_elastic.cli.jobs.progress_report import is_ours
from mpijob_elastic.cli.jobs.snapshot import Snapshot
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.exec import exec_in_pod
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.model import phrases, progress
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.pod import Worker
from mpijob_elastic.model.progress import ProgressLine

log = logging.getLogger(__name__)

# The most looks, and the most at the same time.
MOST, AT_ONCE = 64, 16
# Seconds for a look, and for all of them.
PATIENCE, IN_ALL = 2.0, 3.0
# Looks do not count one another as ranks, by the name that each gives itself (act/worker_scripts).
SCRIPT = f"{MARK}{TELL_PROGRESS}"


@dataclass(frozen=True, kw_only=True)
class FoundLines:
    """The outcome of looks into workers."""

    #: The line of each worker that has one, by the uid of the pod.
    lines: Mapping[str, ProgressLine]
    #: The namespaces into whose pods this user may not exec, in words; "" if no look was refused.
    refused: str = ""


async def with_lines(
    client: ApiReader, found: Sequence[Snapshot], *, whole: bool
) -> tuple[list[Snapshot], str]:
    """Return jobs with the lines of their workers, and `FoundLines.refused`.

    whole: look into each published worker, not only into one of each job.
    """
    views = [snapshot.view for snapshot in found if not snapshot.fault]
    workers = [worker for view in views for worker in (listed(view) if whole else first(view))]
    looked = await look(client, workers)
    # Nobody misses the progress of a job that does not train.
    refused = looked.refused if any(map(trains, views)) else ""
    return [replace(snapshot, lines=looked.lines) for snapshot in found], refused


def trains(view: JobView) -> bool:
    """Tell whether the ranks of an elastic job may be at work now."""
    return is_ours(view) and view.driver_running and not view.facts.finished


def listed(view: JobView) -> list[Worker]:
    """Return the published workers that a look can show, also while no driver runs."""
    if not is_ours(view):
        return []
    return [one for one in view.workers if one.name in view.host_of and _is_open(one)]


def first(view: JobView) -> list[Worker]:
    """Return the first published worker of a job that trains, if a look can show it."""
    return listed(view)[:1] if trains(view) else []


def _is_open(worker: Worker) -> bool:
    return worker.ready and not worker.opaque


async def look(client: ApiReader, workers: Iterable[Worker]) -> FoundLines:
    """Return the lines of the first MOST workers, as far as they are known after IN_ALL seconds."""
    chosen = list(workers)[:MOST]
    if not chosen:
        return FoundLines(lines={})
    slots, closed = asyncio.Semaphore(AT_ONCE), set[str]()

    async def bounded(worker: Worker) -> ProgressLine | None:
        async with slots:
            if worker.ref.namespace in closed:
                return None
            try:
                return await into(client, worker)
            except errors.Forbidden:
                closed.add(worker.ref.namespace)
            except errors.KubeError as error:
                log.debug("no line of %s: %s", worker.name, error)
            return None

    looks = {asyncio.create_task(bounded(worker)): worker for worker in chosen}
    try:
        in_time, _ = await asyncio.wait(looks, timeout=IN_ALL)
    finally:
        for task in looks:
            task.cancel()
    await asyncio.gather(*looks, return_exceptions=True)
    done = {worker.ref.uid: task.result() for task, worker in looks.items() if task in in_time}
    lines = {uid: line for uid, line in done.items() if line}
    return FoundLines(lines=lines, refused=phrases.listed(sorted(closed)))


async def into(client: ApiReader, worker: Worker) -> ProgressLine | None:
    """Return the line of a worker; None without one. Raises `errors.KubeError`."""
    found = list[ProgressLine]()
    for container in worker.containers:
        result = await exec_in_pod(
            client,
            worker.ref.namespace,
            worker.name,
            container=container,
            command=["/bin/sh", "-c", SCRIPT],
            timeout=PATIENCE / len(worker.containers),
            limit=LONGEST_ANSWER,
        )
        line = progress.parse(result.stdout.strip(), asked_at=time.time())
        if line:
            found.append(line)
    return progress.newest(found)
