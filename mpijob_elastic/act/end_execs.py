"""End frozen execs of a launcher, so that a job goes on after a loss while nobody watches it.

Only execs of the plan are ended, after a second decision from live objects, and only while the lease is held. The
command in the launcher checks that the process is still the process that was seen. A failure is counted, and costs a
try.
"""

import logging
from collections.abc import AsyncIterator, Callable, Mapping

from mpijob_elastic.act.gate import Gate, NotLeader
from mpijob_elastic.decide.actions import EndExecs
from mpijob_elastic.kube import errors
from mpijob_elastic.model.execs import Exec
from mpijob_elastic.model.job import JobView
from mpijob_elastic.telemetry.metrics import Metrics

log = logging.getLogger(__name__)

ENDED, GONE, FAILED = "ended", "gone", "error"

# As the script of a look (launcher_execs), for a single process: only a `kubectl exec` into that pod may be killed.
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

# Yields the frozen execs that may be ended according to live objects, each just before it is ended.
Recheck = Callable[[JobView, EndExecs], AsyncIterator[Exec]]


def command(found: Exec) -> list[str]:
    """Return the command that ends an exec in its launcher, and prints "ended" or "gone"."""
    return ["/bin/sh", "-c", SCRIPT, "sh", str(found.pid), str(found.ticks), found.pod]


async def end(gate: Gate, view: JobView, action: EndExecs, *, recheck: Recheck, metrics: Metrics) -> Mapping[Exec, str]:
    """Try to end the execs one after the other; return the outcome of each."""
    outcomes: dict[Exec, str] = {}
    try:
        async for found in recheck(view, action):
            outcomes[found] = FAILED
            outcomes[found] = await _end(gate, view.namespace, action, found)
    except (errors.KubeError, NotLeader) as error:  # the rest would most likely fail too
        log.warning("frozen execs of %s/%s not ended: %s", view.namespace, action.launcher.ref.name, error)
    for outcome in outcomes.values():
        metrics.ended_execs.labels(outcome).inc()
    return {found: outcomes.get(found, FAILED) for found in action.execs}


async def _end(gate: Gate, namespace: str, action: EndExecs, found: Exec) -> str:
    launcher = action.launcher
    result = await gate.execute(namespace, launcher.ref.name, container=launcher.container, command=command(found))
    answer = result.stdout.strip()
    return answer if result.exit_code == 0 and answer in (ENDED, GONE) else FAILED
