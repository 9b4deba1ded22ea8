"""Look by exec into a launcher for the `kubectl exec`s that hold its ranks.

The script prints only the name of the pod from a command line, because the rest contains a secret of Horovod. Looks run
beside the reconcile loop, seldom (decide/frozen_execs), a few at once and fairly shared (act/turns); results are kept
in memory alone.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from mpijob_elastic.act.exec_looks import Tasks, look_into
from mpijob_elastic.act.turns import FairTurns
from mpijob_elastic.decide import frozen_execs
from mpijob_elastic.decide.actions import EndExecs, LookIntoLauncher
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.model.bounds import BYTES_AN_EXEC, MOST_EXECS
from mpijob_elastic.model.execs import MOST_TRIES, Exec, Held
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.pod import Launcher

# Seconds for a look.
LOOK_TIMEOUT = 5.0
# Looks over all jobs, under way at once (of a namespace at most half of them) and begun in a second.
MOST_AT_ONCE, MOST_A_SECOND = 16, 20.0

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

# Tries to end execs; returns each with True if it is gone.
End = Callable[[], Awaitable[Mapping[Exec, bool]]]

_TICKS = 100.0
# Bounded in each part, because a launcher may print any text.
_MAIN = re.compile(r"main ([0-9]{1,18})\n")
_LINE = re.compile(r"(?am)^(\d{1,18}) (\d{1,18}) ([a-z0-9.-]{1,253}-worker-\d{1,10})(?:--container[a-z0-9-]{1,63})?\n")


class Execs:
    """Looks and remembers; calls `wake` with the namespace and name of a job when there is an answer."""

    def __init__(self, client: ApiReader, *, now: Callable[[], float], wake: Callable[[str, str], None]) -> None:
        self._client = client
        self._now = now
        self._wake = wake
        self._turns = FairTurns(at_once=MOST_AT_ONCE, a_second=MOST_A_SECOND)
        self._held: dict[str, Held] = {}
        self._launchers: dict[tuple[str, str], str] = {}
        self._asking = Tasks()

    def held(self, uid: str) -> Held:
        """Return the result of looks into the launcher with this uid."""
        return self._held.get(uid, Held())

    def begin(self, view: JobView, action: LookIntoLauncher) -> None:
        """Look into a launcher, unless a look is under way."""
        uid, job = action.launcher.ref.uid, (view.namespace, view.name)
        if uid in self._asking:
            return
        if self._launchers.get(job) != uid:
            self.forget(*job)  # the former launcher
            self._launchers[job] = uid
        self._asking.begin(uid, self._ask(view, action))

    def begin_to_end(self, view: JobView, action: EndExecs, end: End) -> None:
        """End execs by `end`, in a turn of the looks. Until that is over none of them counts as frozen.

        An ended exec stays a suspect: the next look shows whether that helped. It is not tried again.
        """
        uid = action.launcher.ref.uid
        held, tried = self.held(uid), {*action.execs}
        still = tuple(found for found in held.frozen if found not in tried)
        self._held[uid] = replace(held, frozen=still, tried_at=max(self._now(), held.asked_at))
        if (key := f"end {uid}") not in self._asking:
            self._asking.begin(key, self._end(view, uid, end))

    def forget(self, namespace: str, name: str) -> None:
        """Forget a job that is gone."""
        self._held.pop(self._launchers.pop((namespace, name), ""), None)

    async def close(self) -> None:
        """Stop every look that is under way."""
        await self._asking.close()

    async def _ask(self, view: JobView, action: LookIntoLauncher) -> None:
        async with self._turns.turn(view.namespace, view.name):
            after = await self._look(view, action)
        if self._launchers.get((view.namespace, view.name)) == action.launcher.ref.uid:  # else it was forgotten
            self._held[action.launcher.ref.uid] = after
            self._wake(view.namespace, view.name)

    async def _end(self, view: JobView, uid: str, end: End) -> None:
        async with self._turns.turn(view.namespace, view.name):
            ended = await end()
        if (held := self._held.get(uid)) is None:
            return  # it was forgotten
        tries = {found: MOST_TRIES if done else held.tries.get(found, 0) + 1 for found, done in ended.items()}
        known = {*held.frozen, *ended}
        frozen = tuple(found for found in held.suspects if found in known and not ended.get(found))
        tried_at = max(self._now(), held.asked_at)
        self._held[uid] = replace(held, frozen=frozen, tries={**held.tries, **tries}, tried_at=tried_at)
        self._wake(view.namespace, view.name)

    async def _look(self, view: JobView, action: LookIntoLauncher) -> Held:
        asked_at = self._now()
        found = await look(self._client, view, action.launcher, timeout=LOOK_TIMEOUT)
        before = self.held(action.launcher.ref.uid)  # not earlier: execs may have been ended meanwhile
        if found is None:
            return replace(before, asked_at=asked_at, about=action.about)
        suspects, suspected = frozen_execs.cut_off(view, found, now=asked_at), {*before.suspects}
        return Held(
            asked_at=asked_at,
            about=action.about,
            suspects=suspects,
            frozen=tuple(suspect for suspect in suspects if suspect in suspected),
            tries={suspect: before.tries[suspect] for suspect in suspects if suspect in before.tries},
        )


async def look(
    client: ApiReader,
    view: JobView,
    launcher: Launcher,
    *,
    timeout: float,  # noqa: ASYNC109 - of exec_in_pod
) -> tuple[Exec, ...] | None:
    """Return the execs that a launcher holds now, None if that cannot be seen."""
    if launcher.facts.started_at is None:
        return None
    result = await look_into(
        client,
        view.namespace,
        launcher.ref.name,
        container=launcher.container,
        command=COMMAND,
        timeout=timeout,
        limit=BYTES_AN_EXEC * view.most_execs,
    )
    return parse(result.stdout, started_at=launcher.facts.started_at, most=view.most_execs) if result else None


def parse(output: str, *, started_at: float, most: int = MOST_EXECS) -> tuple[Exec, ...] | None:
    """Read the output of the script, None if it is not its output, or of more than `most` execs.

    started_at: when the main process started. Ages count from it, so our clock has no part in them.
    """
    main = _MAIN.match(output)
    if main is None or output.count("\n") > most + 1:
        return None
    main_at = int(main[1])
    return tuple(
        Exec(pid=int(pid), pod=pod, started_at=started_at + (int(ticks) - main_at) / _TICKS, ticks=int(ticks))
        for pid, ticks, pod in _LINE.findall(output)
    )
