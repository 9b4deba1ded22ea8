"""Find by exec the `kubectl exec`s in a launcher that hold its ranks, and end frozen ones.

The script prints only the name of the pod from a command line, because the rest contains a secret
of Horovod. Looks are seldom (decide/frozen_execs), and a few at once (looks).

The end of frozen execs lets a job go on after a loss while nobody watches it. Execs are ended only
after a second decision from live objects (`Writer`), and only while the lease is held
(`LeaderWriter`). The command checks that each process is still the process that was seen. A single
command ends all of them, in a turn of the looks, because a shell may hang. A failure is counted,
and costs a try.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial

from mpijob_elastic.act.leader_writer import LeaderWriter
from mpijob_elastic.act.looks import FairTurns, Job, Looks, look_into
from mpijob_elastic.act.worker_probes import published_turns
from mpijob_elastic.decide import ended_execs, frozen_execs
from mpijob_elastic.decide.actions import EndExecs, LookIntoLauncher
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.model.bounds import BYTES_AN_EXEC, MOST_EXECS
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.kubexec import MOST_TRIES, Exec, HeldExecs, RollCall
from mpijob_elastic.model.pod import Launcher

# Seconds for a look.
LOOK_TIMEOUT = 5.0
# Looks over all jobs, under way at once (of a namespace at most half of them) and begun in a
# second.
MOST_AT_ONCE, MOST_A_SECOND = 16, 20.0

# Only builtins of a POSIX shell. The words of a command line are separated by NULs, which `read`
# leaves out (dash, bash and busybox alike), and [operator] kubexec.sh runs `/opt/kube/kubectl exec
# POD [--container NAME] -- /bin/sh -c RANK`. RANK holds the rank's environment, and dash reads a
# byte at a time, so the name of the program is read first. Field 22 of /proc/PID/stat is when the
# process started, in hundredths of a second since the boot (proc_pid_stat(5)).
EACH = """\
for process in /proc/[0-9]*; do
"""
_EACH_EXEC = """\
  comm=kubectl line=
  read -r comm 2>/dev/null < "$process/comm"
  [ "$comm" = kubectl ] || continue
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
SCRIPT = (
    """\
read -r stat < /proc/1/stat
set -- ${stat##*) }
echo "main ${20}"
"""
    + EACH
    + _EACH_EXEC
)
COMMAND = ["/bin/sh", "-c", SCRIPT]

# A launcher may see the processes of other containers, with hostPID those of its whole node. Only a
# process in the cgroup of the script itself is in the launcher's container (cgroups(7), v1 and v2
# alike): the namespace of the processes is the same for all.
EACH_OWN = (
    EACH
    + """\
  group "${process#/proc/}"
  [ "$found" = "$own" ] || continue
"""
)
# Finds when the main process started: no other process of the container is older.
MAIN_OF_OWN = (
    """\
group() {
  found=
  while read -r line; do found="$found$line "; done 2>/dev/null < "/proc/$1/cgroup"
}
group self
own=$found main=
[ "$own" ] || { echo hidden; exit; }
"""
    + EACH_OWN
    + """\
  read -r stat 2>/dev/null < "$process/stat" || continue
  set -- ${stat##*) }
  [ "$main" ] && [ "$main" -le "${20}" ] || main=${20}
done
"""
)
SHARED_SCRIPT = MAIN_OF_OWN + 'echo "main $main"\n' + EACH_OWN + _EACH_EXEC
SHARED_COMMAND = ["/bin/sh", "-c", SHARED_SCRIPT]

ENDED, GONE, FAILED = "ended", "gone", "error"

# Like SCRIPT, but for given processes: each is killed only if it is still the `kubectl exec` into
# the given pod.
END_SCRIPT = """\
set -f
for found in "$@"; do
  pid=${found%% *} pod=${found##* } line= stat=
  read -r line 2>/dev/null < "/proc/$pid/cmdline"
  read -r stat 2>/dev/null < "/proc/$pid/stat"
  case $line in
    "/opt/kube/kubectlexec$pod--/bin/sh"*) ;;
    "/opt/kube/kubectlexec$pod--container"*--/bin/sh*) ;;
    *) echo gone; continue ;;
  esac
  set -- ${stat##*) }
  [ "$pid ${20} $pod" = "$found" ] || { echo gone; continue; }
  kill "$pid" && echo ended || echo error
done
"""


class ProcessesHidden(Exception):
    """The processes of a launcher cannot be told from those of other containers."""


# Tries to end execs; returns each with True if it is gone.
End = Callable[[], Awaitable[Mapping[Exec, bool]]]

_TICKS = 100.0
# Bounded in each part, because a launcher may print any text.
# What SHARED_SCRIPT prints where it cannot tell the processes of its container from others.
_HIDDEN = "hidden\n"
_MAIN = re.compile(r"main ([0-9]{1,18})\n")
_LINE = re.compile(
    r"(?am)^(\d{1,18}) (\d{1,18}) ([a-z0-9.-]{1,253}-worker-\d{1,10})"
    r"(?:--container[a-z0-9-]{1,63})?\n"
)


@dataclass(frozen=True, kw_only=True)
class _Call:
    """A roll call that waits for its turn. It keeps no view, which may be large."""

    job: Job
    launcher: Launcher
    #: The host names of the workers that are called, by pod.
    hosts: Mapping[str, str]
    #: The most execs that are believed.
    most: int


@dataclass(eq=False)
class Execs(Looks[dict[str, HeldExecs]]):
    """Looks into launchers; remembers by job the launcher's uid and the execs that it holds."""

    _: KW_ONLY
    #: The turns of roll calls, which share them with the looks into published workers.
    calls: FairTurns = field(default_factory=published_turns)

    def __post_init__(self) -> None:
        """Make the turns of its looks."""
        self._turns = FairTurns(at_once=MOST_AT_ONCE, a_second=MOST_A_SECOND)

    def held(self, job: Job, uid: str) -> HeldExecs:
        """Return the result of looks into the launcher with this uid."""
        return self.jobs.get(job, {}).get(uid, HeldExecs())

    def tidy(self, view: JobView) -> None:
        """Forget the execs of a job that has ended, or whose launcher is gone."""
        if view.ended or view.launcher is None:
            self.forget((view.namespace, view.name))

    def begin(self, view: JobView, action: LookIntoLauncher) -> None:
        """Look into a launcher, unless a look is under way."""
        uid, job = action.launcher.ref.uid, (view.namespace, view.name)
        self.jobs[job] = {uid: self.held(job, uid)}
        if not action.is_roll_call:
            self._begin(uid, job, self._turns, partial(self._ask, view, action))
            return
        launcher, hosts, most = action.launcher, action.called, view.most_execs
        call = _Call(job=job, launcher=launcher, hosts=hosts, most=most)
        self._begin(f"call {uid}", job, self.calls, partial(self._call, call))

    def begin_to_end(self, view: JobView, action: EndExecs, end: End) -> None:
        """End execs by `end`, in a turn of the looks.

        None of these execs counts as frozen until the try is over.

        An ended exec stays a suspect: the next look shows whether it has gone. No ended exec is
        tried again.
        """
        uid, job = action.launcher.ref.uid, (view.namespace, view.name)
        held, tried = self.held(job, uid), {*action.execs}
        still = tuple(found for found in held.frozen if found not in tried)
        self.jobs[job] = {uid: replace(held, frozen=still, tried_at=max(self.now(), held.asked_at))}
        self._begin(f"end {uid}", job, self._turns, partial(self._end, job, uid, end))

    async def _ask(self, view: JobView, action: LookIntoLauncher) -> bool:
        asked_at, hidden = self.now(), False
        try:
            found = await look(self.client, view, action.launcher, timeout=LOOK_TIMEOUT)
        except ProcessesHidden:
            found, hidden = None, True
        # Read after the look: execs may have been ended, or the job forgotten, meanwhile.
        known, uid = self.jobs.get((view.namespace, view.name), {}), action.launcher.ref.uid
        before = known.get(uid)
        if before is None:
            return False
        known[uid] = replace(before, asked_at=asked_at, about=action.about, hidden=hidden)
        if found is not None:
            suspects, suspected = (
                frozen_execs.cut_off(view, found, now=asked_at),
                {*before.suspects},
            )
            known[uid] = HeldExecs(
                asked_at=asked_at,
                about=action.about,
                suspects=suspects,
                frozen=tuple(suspect for suspect in suspects if suspect in suspected),
                tries={
                    suspect: before.tries[suspect]
                    for suspect in suspects
                    if suspect in before.tries
                },
                ended=ended_execs.confirmed(view, found, now=asked_at),
                roll_call=before.roll_call,
            )
        return True

    async def _call(self, call: _Call) -> bool:
        """Note which ranks' execs run. It is news if another one is missing than before."""
        asked_at, found = self.now(), None
        with suppress(ProcessesHidden):
            found = await _execs(self.client, call.job[0], call.launcher, most=call.most)
        known, uid = self.jobs.get(call.job, {}), call.launcher.ref.uid
        before = known.get(uid)
        if before is None:
            return False
        if found is None:
            failed = RollCall(asked_at=asked_at, hosts=call.hosts)
            known[uid] = replace(before, roll_call=failed)
            return False
        missing = frozenset(call.hosts).difference(held.pod for held in found)
        answer = RollCall(asked_at=asked_at, answered=True, hosts=call.hosts, missing=missing)
        known[uid] = replace(before, roll_call=answer)
        return not missing <= before.roll_call.missing

    async def _end(self, job: Job, uid: str, end: End) -> bool:
        ended = await end()
        known = self.jobs.get(job, {})
        held = known.get(uid)
        if held is None:
            return False  # the job was forgotten
        tries = {
            found: MOST_TRIES if done else held.tries.get(found, 0) + 1
            for found, done in ended.items()
        }
        frozen = {*held.frozen, *ended}
        still = tuple(found for found in held.suspects if found in frozen and not ended.get(found))
        tried_at = max(self.now(), held.asked_at)
        known[uid] = replace(held, frozen=still, tries={**held.tries, **tries}, tried_at=tried_at)
        return True


def end_command(execs: Sequence[Exec]) -> list[str]:
    """Return the command that ends execs in their launcher.

    The command prints "ended", "gone" or "error" for each exec.
    """
    return [
        "/bin/sh",
        "-c",
        END_SCRIPT,
        "sh",
        *(f"{found.pid} {found.ticks} {found.pod}" for found in execs),
    ]


async def end(
    leader_writer: LeaderWriter, namespace: str, launcher: Launcher, execs: Sequence[Exec]
) -> Mapping[Exec, str]:
    """End execs; return the outcome of each, or no outcomes if the command gives no valid answer.

    Raises as `LeaderWriter.execute` does.
    """
    result = await leader_writer.execute(
        namespace, launcher.ref.name, container=launcher.container, command=end_command(execs)
    )
    answers = result.stdout.split()
    is_ours = (
        result.exit_code == 0 and len(answers) == len(execs) and {*answers} <= {ENDED, GONE, FAILED}
    )
    return dict(zip(execs, answers, strict=True)) if is_ours else {}


async def look(
    client: ApiReader,
    view: JobView,
    launcher: Launcher,
    *,
    timeout: float,  # noqa: ASYNC109 - of exec_in_pod
) -> tuple[Exec, ...] | None:
    """Return the execs that a launcher holds now; None if a look fails.

    Raises ProcessesHidden.
    """
    return await _execs(client, view.namespace, launcher, most=view.most_execs, timeout=timeout)


async def _execs(
    client: ApiReader,
    namespace: str,
    launcher: Launcher,
    *,
    most: int,
    timeout: float = LOOK_TIMEOUT,  # noqa: ASYNC109 - of exec_in_pod
) -> tuple[Exec, ...] | None:
    """Return the execs that a launcher holds, as `look` does."""
    if launcher.facts.started_at is None:
        return None
    result = await look_into(
        client,
        namespace,
        launcher.ref.name,
        container=launcher.container,
        command=SHARED_COMMAND if launcher.facts.shares_processes else COMMAND,
        timeout=timeout,
        limit=BYTES_AN_EXEC * most,
    )
    if result is None or result.exit_code != 0:
        return None
    if result.stdout == _HIDDEN:
        raise ProcessesHidden
    return parse(result.stdout, started_at=launcher.facts.started_at, most=most)


def parse(output: str, *, started_at: float, most: int = MOST_EXECS) -> tuple[Exec, ...] | None:
    """Return the execs in the output of SCRIPT; None for other output, or for over `most` execs.

    started_at: the start of the main process. Ages count from that start, so our clock does not
    affect them.
    """
    main = _MAIN.match(output)
    if main is None or output.count("\n") > most + 1:
        return None
    main_at = int(main[1])
    return tuple(
        Exec(
            pid=int(pid),
            pod=pod,
            started_at=started_at + (int(ticks) - main_at) / _TICKS,
            ticks=int(ticks),
        )
        for pid, ticks, pod in _LINE.findall(output)
    )
