"""Looks by exec with the user's own rights: what runs in workers, and which execs of the launcher are frozen.

Bounded in number and time; what goes wrong is part of the answer.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence

from mpijob_elastic.act import launcher_execs
from mpijob_elastic.act.worker_probes import EACH_PROCESS
from mpijob_elastic.decide import frozen_execs
from mpijob_elastic.explain.facts import Look
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.exec import exec_in_pod
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.model.execs import Exec
from mpijob_elastic.model.job import JobView, Worker

# Seconds for one look, how many are made at all, and how many at once.
PATIENCE = 5.0
MOST = 64
AT_ONCE = 16
# An exec takes a moment to end; one that is still there after so many seconds is frozen.
AGAIN_AFTER = 5.0

# Prints the name of each of them.
SCRIPT = (
    EACH_PROCESS
    + """\
  name=${stat#*(}
  echo "${name%)*}"
done
"""
)


async def into_workers(client: ApiReader, view: JobView, workers: Sequence[Worker]) -> Mapping[str, Look]:
    """What runs in these workers, the first MOST of them."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def look(worker: Worker) -> Look:
        async with slots:
            return await _look(client, view.namespace, worker)

    chosen = workers[:MOST]
    looks = await asyncio.gather(*map(look, chosen))
    return {worker.name: found for worker, found in zip(chosen, looks, strict=True)}


async def into_launcher(client: ApiReader, view: JobView) -> tuple[Exec, ...]:
    """The execs that the launcher holds, none where nobody can look."""
    if view.launcher is None or not view.driver_running:
        return ()
    return await launcher_execs.look(client, view.namespace, view.launcher, timeout=PATIENCE) or ()


async def look_for_frozen(view: JobView, look: Callable[[], Awaitable[tuple[Exec, ...]]]) -> tuple[Exec, ...]:
    """The execs at whose other end nothing is, now and again some seconds later; `look` gives those that there are."""
    first = frozen_execs.cut_off(view, await look(), now=time.time())
    if not first:
        return ()
    await asyncio.sleep(AGAIN_AFTER)
    still = {(one.pid, one.pod) for one in await look()}
    return tuple(one for one in first if (one.pid, one.pod) in still)


async def _look(client: ApiReader, namespace: str, worker: Worker) -> Look:
    if worker.opaque:
        return Look(error="its containers share their process numbers")
    command = ["/bin/sh", "-c", SCRIPT]
    try:
        result = await exec_in_pod(
            client, namespace, worker.name, container=worker.container, command=command, timeout=PATIENCE
        )
    except errors.Forbidden:
        return Look(error="your rights do not include exec (create pods/exec)")
    except errors.KubeError as error:
        return Look(error=str(error))
    if result.exit_code:
        return Look(error=f"/bin/sh ended with {result.exit_code} there")
    return Look(processes=tuple(_counted(result.stdout.splitlines())))


def _counted(found: Sequence[str]) -> list[str]:
    return [f"{name} (x{count})" if count > 1 else name for name, count in Counter(found).most_common()]
