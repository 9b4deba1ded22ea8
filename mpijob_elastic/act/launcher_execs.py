"""Looks by exec into a launcher, for the `kubectl exec`s that it holds its ranks by.

Of a command line nothing is printed but the pod's name: the rest carries what Horovod keeps secret. Beside the loop,
seldom (decide/frozen) and a few at once; what was seen is kept in memory alone. What two looks found is ended right
after, where decide/frozen allows it.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from mpijob_elastic.act import tasks
from mpijob_elastic.decide import frozen_execs
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.exec import exec_in_pod
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.model.execs import Exec, Held
from mpijob_elastic.model.job import JobView, Launcher

log = logging.getLogger(__name__)

# Seconds for one look, and how many may be under way at once over all jobs.
LOOK_TIMEOUT = 5.0
MOST_AT_ONCE = 4
# Bytes; a line for each rank of a large job.
LONGEST_ANSWER = 2**20

# Only builtins of a POSIX shell. The words of a command line are separated by NULs, which `read` leaves out (dash, bash
# and busybox alike), and [operator] kubexec.sh runs `/opt/kube/kubectl exec POD [--container NAME] -- /bin/sh -c RANK`.
# Field 22 of /proc/PID/stat is when the process started, in hundredths of a second since the boot (proc_pid_stat(5)).
SCRIPT = """\
read -r stat < /proc/1/stat
set -- ${stat##*) }
echo "main ${20}"
for process in /proc/[0-9]*; do
  line=
  read -r line 2>/dev/null < "$process/cmdline"
  case $line in
    /opt/kube/kubectlexec*--/bin/sh*) ;;
    *) continue ;;
  esac
  read -r stat 2>/dev/null < "$process/stat" || continue
  line=${line#/opt/kube/kubectlexec}
  set -- ${stat##*) }
  echo "${process#/proc/} ${20} ${line%%--/bin/sh*}"
done
"""
COMMAND = ["/bin/sh", "-c", SCRIPT]

_TICKS = 100.0
_MAIN = re.compile(r"main ([0-9]+)\n")
_LINE = re.compile(r"(?P<pid>[0-9]+) (?P<ticks>[0-9]+) (?P<pod>[a-z0-9.-]+-worker-[0-9]+)(?:--container[a-z0-9-]+)?\n")

# Tries to end execs of a launcher: says of those it tried whether nothing is left to end.
End = Callable[[JobView, Launcher, tuple[Exec, ...]], Awaitable[Mapping[Exec, bool]]]


class Execs:
    """Asks, has ended what is to be ended, and remembers.

    `wake` is called with a job's namespace and name when an answer is there.
    """

    def __init__(
        self, client: ApiReader, *, end: End, now: Callable[[], float], wake: Callable[[str, str], None]
    ) -> None:
        self._client = client
        self._end = end
        self._now = now
        self._wake = wake
        self._slots = asyncio.Semaphore(MOST_AT_ONCE)
        self._held: dict[str, Held] = {}
        self._launchers: dict[tuple[str, str], str] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}

    def held(self, uid: str) -> Held:
        """What was seen of the launcher with that uid."""
        return self._held.get(uid, Held())

    def watch(self, view: JobView, launcher: Launcher, about: frozenset[str]) -> None:
        """Look into a launcher for these reasons, unless that is under way."""
        uid = launcher.ref.uid
        if uid not in self._asking:
            self._asking[uid] = task = asyncio.create_task(self._ask(view, launcher, about))
            task.add_done_callback(lambda _: self._asking.pop(uid, None))

    def forget(self, namespace: str, name: str) -> None:
        """A job is gone."""
        self._held.pop(self._launchers.pop((namespace, name), ""), None)

    async def close(self) -> None:
        """Stop every look that is under way."""
        await tasks.end(self._asking.values())

    async def _ask(self, view: JobView, launcher: Launcher, about: frozenset[str]) -> None:
        async with self._slots:
            after = await self._look(view, launcher, about)
        self.forget(view.namespace, view.name)  # what was seen of a launcher before this one
        self._launchers[view.namespace, view.name] = launcher.ref.uid
        self._held[launcher.ref.uid] = after
        self._wake(view.namespace, view.name)

    async def _look(self, view: JobView, launcher: Launcher, about: frozenset[str]) -> Held:
        asked_at = self._now()
        before = self.held(launcher.ref.uid)
        found = await look(self._client, view.namespace, launcher, timeout=LOOK_TIMEOUT)
        if found is None:
            return replace(before, asked_at=asked_at, about=about)
        after = _after(before, frozen_execs.cut_off(view, found, now=asked_at), asked_at=asked_at, about=about)
        due = frozen_execs.to_end(view, after)
        return _tried(after, await self._end(view, launcher, due)) if due else after


async def look(
    client: ApiReader,
    namespace: str,
    launcher: Launcher,
    *,
    timeout: float,  # noqa: ASYNC109 - of exec_in_pod
) -> tuple[Exec, ...] | None:
    """The execs that a launcher holds now, None where nobody can tell."""
    if launcher.started_at is None:
        return None
    pod, container = launcher.ref.name, launcher.container
    try:
        result = await exec_in_pod(
            client, namespace, pod, container=container, command=COMMAND, timeout=timeout, limit=LONGEST_ANSWER
        )
    except errors.KubeError as error:
        log.debug("no look into %s/%s: %s", namespace, pod, error)
        return None
    return parse(result.stdout, started_at=launcher.started_at)


def _after(before: Held, suspects: tuple[Exec, ...], *, asked_at: float, about: frozenset[str]) -> Held:
    twice = tuple(one for one in suspects if one in before.suspects)
    tries = {one: before.tries[one] for one in suspects if one in before.tries}
    return Held(asked_at=asked_at, about=about, suspects=suspects, frozen=twice, tries=tries)


def _tried(held: Held, ended: Mapping[Exec, bool]) -> Held:
    """One that was ended stays a suspect: the next look shows whether that helped. It is not tried again."""
    tries = {one: frozen_execs.MOST_TRIES if done else held.tries.get(one, 0) + 1 for one, done in ended.items()}
    still = tuple(one for one in held.frozen if not ended.get(one))
    return replace(held, frozen=still, tries={**held.tries, **tries})


def parse(output: str, *, started_at: float) -> tuple[Exec, ...] | None:
    """What the script printed in a launcher whose main process started then; None where that is not its output.

    Ages count from that process, so no clock of whoever asks takes part.
    """
    main = _MAIN.match(output)
    if main is None:
        return None
    found = (_LINE.fullmatch(line) for line in output.splitlines(keepends=True))
    return tuple(_exec(one, main_at=int(main[1]), started_at=started_at) for one in found if one)


def _exec(found: re.Match[str], *, main_at: int, started_at: float) -> Exec:
    ticks = int(found["ticks"])
    at = started_at + (ticks - main_at) / _TICKS
    return Exec(pid=int(found["pid"]), pod=found["pod"], started_at=at, ticks=ticks)
