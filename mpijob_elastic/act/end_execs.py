"""Ends frozen execs of a launcher, so that a job goes on after a loss though nobody watches it.

Narrowly: only what decide/frozen allows, decided once more from live objects just before; only for as long as the lease
is held; and the launcher itself checks that the process is still the one that was seen. Whatever goes wrong is counted,
and costs a try.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping

from mpijob_elastic.act.events import Events
from mpijob_elastic.act.gate import Gate, NotLeader
from mpijob_elastic.decide import frozen_execs
from mpijob_elastic.kube import errors
from mpijob_elastic.model.execs import Exec
from mpijob_elastic.model.job import JobView, Launcher
from mpijob_elastic.telemetry.metrics import Metrics

log = logging.getLogger(__name__)

# Of one launcher after one look; one command each, one after the other.
MOST_AT_A_TIME = 32
ENDED, GONE, FAILED = "ended", "gone", "error"

# As the look's (act/execs), which it repeats for one process: what may be killed is that `kubectl exec` and no other.
SCRIPT = """\
pid=$1 ticks=$2 pod=$3 line= stat=
read -r line 2>/dev/null < "/proc/$pid/cmdline"
read -r stat 2>/dev/null < "/proc/$pid/stat"
case $line in
  "/opt/kube/kubectlexec$pod--/bin/sh"*) ;;
  "/opt/kube/kubectlexec$pod--container"*--/bin/sh*) ;;
  *) echo gone; exit ;;
esac
set -- ${stat##*) }
[ "${20}" = "$ticks" ] || { echo gone; exit; }
kill "$pid" && echo ended
"""

# Those of a job's frozen execs that may be ended as its objects are live.
Recheck = Callable[[JobView, tuple[Exec, ...]], Awaitable[tuple[Exec, ...]]]


def command(one: Exec) -> list[str]:
    """What ends that one in its launcher, and says so or that it is gone."""
    return ["/bin/sh", "-c", SCRIPT, "sh", str(one.pid), str(one.ticks), one.pod]


class Unfreezer:
    """Ends execs, and says so on the job."""

    def __init__(self, gate: Gate, *, recheck: Recheck, events: Events, metrics: Metrics) -> None:
        self._gate = gate
        self._recheck = recheck
        self._events = events
        self._metrics = metrics

    async def end(self, view: JobView, launcher: Launcher, execs: tuple[Exec, ...]) -> Mapping[Exec, bool]:
        """Those whose turn it was, and whether there is nothing left to end of each."""
        turn = execs[:MOST_AT_A_TIME]
        outcomes = await self._outcomes(view, launcher, turn)
        done = [one for one, outcome in outcomes.items() if outcome == ENDED]
        if done:
            self._events.emit(view, frozen_execs.ended(view, done))
        return {one: outcomes.get(one, FAILED) != FAILED for one in turn}

    async def _outcomes(self, view: JobView, launcher: Launcher, execs: tuple[Exec, ...]) -> Mapping[Exec, str]:
        outcomes: dict[Exec, str] = {}
        try:
            for one in await self._recheck(view, execs):
                outcomes[one] = FAILED
                outcomes[one] = await self._end(view.namespace, launcher, one)
        except (errors.KubeError, NotLeader) as error:  # the others would most likely fare alike
            log.warning("frozen execs of %s/%s not ended: %s", view.namespace, launcher.ref.name, error)
        for outcome in outcomes.values():
            self._metrics.ended_exec(outcome)
        return outcomes

    async def _end(self, namespace: str, launcher: Launcher, one: Exec) -> str:
        pod, container = launcher.ref.name, launcher.container
        result = await self._gate.execute(namespace, pod, container=container, command=command(one))
        answer = result.stdout.strip()
        return answer if result.exit_code == 0 and answer in (ENDED, GONE) else FAILED
