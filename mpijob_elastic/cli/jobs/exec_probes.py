"""Look into pods by exec, with the user's own rights.

A look shows the processes in workers, and the frozen execs and the ranks in the launcher. Looks are
bounded in number and time; an error is part of the answer. Horovod puts HOROVOD_RANK into the
command line of each process that holds a rank. Only that number and the pod are printed, because
the rest of the command line may hold secrets.
"""

import asyncio
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TypeVar

from mpijob_elastic import names
from mpijob_elastic.act import launcher_execs
from mpijob_elastic.act.worker_scripts import EACH_PROCESS
from mpijob_elastic.decide import frozen_execs
from mpijob_elastic.diagnosis.facts import Look
from mpijob_elastic.diagnosis.logged_ranks import Spawn, Spawned
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.exec import ExecFailed, exec_in_pod
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.model.bounds import BYTES_AN_EXEC, MOST_EXECS
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.kubexec import Exec
from mpijob_elastic.model.pod import Launcher, Worker

K = TypeVar("K")
P = TypeVar("P")
T = TypeVar("T")

# Seconds for a look.
PATIENCE = 5.0
# The most looks in all, and the most looks at the same time.
MOST = 64
AT_ONCE = 16
# An exec takes a moment to end; an exec that is still there after these seconds is frozen.
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
# Prints the rank of each process that holds a rank. Written as in act/launcher_execs, for the same
# shells. The controller's own look, which the guard allows, shows no ranks.
_NOW = """\
read -r stat < "/proc/$$/stat"
set -- ${stat##*) }
echo "main $main look ${20}"
"""
_EACH_RANK = """\
  line=
  read -r line 2>/dev/null < "$process/cmdline"
  case $line in
    /opt/kube/kubectlexec*--/bin/sh*HOROVOD_RANK=[0-9]*) ;;
    *) continue ;;
  esac
  read -r stat 2>/dev/null < "$process/stat" || continue
  rank=${line#*HOROVOD_RANK=}
  line=${line#/opt/kube/kubectlexec}
  set -- ${stat##*) }
  echo "${process#/proc/} ${20} ${rank%%[!0-9]*} ${line%%--/bin/sh*}"
done
"""
RANKS = (
    """\
read -r stat < /proc/1/stat
set -- ${stat##*) }
main=${20}
"""
    + _NOW
    + launcher_execs.EACH
    + _EACH_RANK
)
# The same for a launcher that sees the processes of other containers.
SHARED_RANKS = launcher_execs.MAIN_OF_OWN + _NOW + launcher_execs.EACH_OWN + _EACH_RANK

_TICKS = 100.0
# RBAC's words, which name pod and account (apiserver, pkg/endpoints/handlers/responsewriters).
_LACKS_RIGHT = re.compile(r'cannot \w+ resource "pods/exec"')
_HEAD = re.compile(r"main (\d{1,18}) look (\d{1,18})\n", re.ASCII)
_POD = r"[a-z0-9.-]{1,253}-worker-\d{1,10}"
_LINE = re.compile(
    rf"(?am)^(\d{{1,18}}) (\d{{1,18}}) (\d{{1,9}}) ({_POD})(?:--container[a-z0-9-]{{1,63}})?\n"
)


async def into_workers(
    client: ApiReader, view: JobView, workers: Sequence[Worker]
) -> Mapping[str, Look]:
    """Return the processes in the first MOST of these workers, by pod."""
    return await each(
        {worker.name: worker for worker in workers},
        lambda worker: _look(client, view.namespace, worker),
    )


async def each(pods: Mapping[K, P], look: Callable[[P], Awaitable[T]]) -> Mapping[K, T]:
    """Return the outcome of a look into each of the first MOST pods, at most AT_ONCE at a time."""
    slots, chosen = asyncio.Semaphore(AT_ONCE), dict(islice(pods.items(), MOST))

    async def bounded(pod: P) -> T:
        async with slots:
            return await look(pod)

    return dict(zip(chosen, await asyncio.gather(*map(bounded, chosen.values())), strict=True))


async def into_launcher(client: ApiReader, view: JobView) -> tuple[Exec, ...]:
    """Return the execs that the launcher holds; none if a look is impossible."""
    if view.launcher is None:
        return ()
    try:
        found = await launcher_execs.look(client, view, view.launcher, timeout=PATIENCE)
    except launcher_execs.ProcessesHidden:  # of which a notice of the controller tells
        return ()
    return found or ()


async def look_for_frozen(
    view: JobView, look: Callable[[], Awaitable[tuple[Exec, ...]]]
) -> tuple[Exec, ...]:
    """Return the execs whose pod is gone, and which are still there AGAIN_AFTER seconds later.

    look: returns the execs that the launcher holds now.
    """
    first = frozen_execs.cut_off(view, await look(), now=time.time())
    if not first:
        return ()
    await asyncio.sleep(AGAIN_AFTER)
    still = {(held.pid, held.pod) for held in await look()}
    return tuple(held for held in first if (held.pid, held.pod) in still)


async def ranks(client: ApiReader, namespace: str, launcher: Launcher) -> Spawned:
    """Return the processes that hold ranks now. Raises `errors.KubeError`."""
    result = await exec_in_pod(
        client,
        namespace,
        launcher.ref.name,
        container=launcher.container,
        command=["/bin/sh", "-c", SHARED_RANKS if launcher.facts.shares_processes else RANKS],
        timeout=PATIENCE,
        limit=BYTES_AN_EXEC * MOST_EXECS,
    )
    found = parse_ranks(result.stdout, started_at=launcher.facts.started_at or 0.0)
    if found is None:
        raise ExecFailed(f"{launcher.ref.name}: /bin/sh does not list processes")
    job = launcher.ref.name.removesuffix(names.launcher(""))
    ours = (spawn for spawn in found.spawns if names.worker_index(spawn.pod, job=job) is not None)
    return replace(found, spawns=frozenset(ours))


def parse_ranks(output: str, *, started_at: float) -> Spawned | None:
    """Read the output of the script RANKS; return None for any other text.

    started_at: when the main process started, in seconds since the epoch.
    """
    head = _HEAD.match(output)
    if head is None:
        return None

    def at(ticks: str) -> float:
        return started_at + (int(ticks) - int(head[1])) / _TICKS

    found = _LINE.findall(output)
    spawns = (
        Spawn(pid=int(pid), rank=int(rank), pod=pod, started_at=at(ticks))
        for pid, ticks, rank, pod in found
    )
    return Spawned(at=at(head[2]), spawns=frozenset(spawns))


def _forbidden(error: errors.Forbidden, namespace: str) -> str:
    """Return why exec is refused: the same short words for each pod, or a policy's own."""
    if _LACKS_RIGHT.search(error.message):
        return f"your account may not exec into pods of namespace {namespace} (pods/exec)"
    return f"exec into pods is refused: {' '.join(error.message.split())}"


async def _look(client: ApiReader, namespace: str, worker: Worker) -> Look:
    if worker.opaque:
        return Look(
            error="its containers share one process namespace, or too many of them may hold ranks"
        )
    command, lines = ["/bin/sh", "-c", SCRIPT], list[str]()
    try:
        for container in worker.containers:
            result = await exec_in_pod(
                client,
                namespace,
                worker.name,
                container=container,
                command=command,
                timeout=PATIENCE,
            )
            if result.exit_code:
                return Look(error=f"/bin/sh exited with {result.exit_code}")
            lines += result.stdout.splitlines()
    except errors.Forbidden as error:
        return Look(error=_forbidden(error, namespace))
    except errors.KubeError as error:
        return Look(error=" ".join(str(error).split()))
    counted = Counter(lines).most_common()
    return Look(
        processes=tuple(f"{name} (x{count})" if count > 1 else name for name, count in counted)
    )
