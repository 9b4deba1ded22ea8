"""Look into pods by exec, with the user's own rights: processes in workers, frozen execs of the launcher.

The looks are bounded in number and time; an error is part of the answer.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import TypeVar

from mpijob_elastic.act import launcher_execs
from mpijob_elastic.act.worker_probes import EACH_PROCESS
from mpijob_elastic.decide import frozen_execs
from mpijob_elastic.explain.facts import Look
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.exec import exec_in_pod
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.kubexec import Exec
from mpijob_elastic.model.pod import Worker

T = TypeVar("T")

# Seconds for a look, looks in all, and looks at once.
PATIENCE = 5.0
MOST = 64
AT_ONCE = 16
# An exec takes a moment to end; after so many seconds it is frozen.
AGAIN_AFTER = 5.0

# Prints the name of each process.
SCRIPT = (
    EACH_PROCESS
    + """\
  name=${stat#*(}
  echo "${name%)*}"
done
"""
)


async def into_workers(client: ApiReader, view: JobView, workers: Sequence[Worker]) -> Mapping[str, Look]:
    """Return what runs in these workers, for the first MOST of them."""
    named = {worker.name: worker for worker in workers}
    return await each(named, lambda name: _look(client, view.namespace, named[name]))


async def each(pods: Iterable[str], look: Callable[[str], Awaitable[T]]) -> Mapping[str, T]:
    """Return what a look shows of each of the first MOST pods, a few at once."""
    slots, chosen = asyncio.Semaphore(AT_ONCE), list(islice(pods, MOST))

    async def bounded(pod: str) -> T:
        async with slots:
            return await look(pod)

    return dict(zip(chosen, await asyncio.gather(*map(bounded, chosen)), strict=True))


async def into_launcher(client: ApiReader, view: JobView) -> tuple[Exec, ...]:
    """Return the execs that the launcher holds, none where nobody can look."""
    found = view.launcher and await launcher_execs.look(client, view, view.launcher, timeout=PATIENCE)
    return found or ()


async def look_for_frozen(view: JobView, look: Callable[[], Awaitable[tuple[Exec, ...]]]) -> tuple[Exec, ...]:
    """Return the execs whose pod is gone, now and again some seconds later; `look` returns the present execs."""
    first = frozen_execs.cut_off(view, await look(), now=time.time())
    if not first:
        return ()
    await asyncio.sleep(AGAIN_AFTER)
    still = {(held.pid, held.pod) for held in await look()}
    return tuple(held for held in first if (held.pid, held.pod) in still)


async def _look(client: ApiReader, namespace: str, worker: Worker) -> Look:
    if worker.opaque:
        return Look(error="its containers share one process namespace, or too many of them may hold ranks")
    command, lines = ["/bin/sh", "-c", SCRIPT], list[str]()
    try:
        for container in worker.containers:
            result = await exec_in_pod(
                client, namespace, worker.name, container=container, command=command, timeout=PATIENCE
            )
            if result.exit_code:
                return Look(error=f"/bin/sh exited with {result.exit_code}")
            lines += result.stdout.splitlines()
    except errors.KubeError as error:  # also in a policy's own words
        return Look(error=" ".join(str(error).split()))
    counted = Counter(lines).most_common()
    return Look(processes=tuple(f"{name} (x{count})" if count > 1 else name for name, count in counted))
