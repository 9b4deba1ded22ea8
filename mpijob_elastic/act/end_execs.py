"""End frozen execs of a launcher, so that a job goes on after a loss while nobody watches it.

Only execs of the plan are ended, after a second decision from live objects, and only while the lease is held. The
command in the launcher checks that each process is still the process that was seen. It is a single command for all, in
a turn of the looks (launcher_execs), because a shell may hang. A failure is counted, and costs a try.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence

from mpijob_elastic.act.gate import Gate, NotLeader
from mpijob_elastic.decide.actions import EndExecs
from mpijob_elastic.kube import errors
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.kubexec import Exec
from mpijob_elastic.telemetry.metrics import Metrics

log = logging.getLogger(__name__)

ENDED, GONE, FAILED = "ended", "gone", "error"

# As the script of a look (launcher_execs), for these processes: only a `kubectl exec` into that pod may be killed.
SCRIPT = """\
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

# Returns the frozen execs that may be ended according to live objects.
Recheck = Callable[[JobView, EndExecs], Awaitable[Sequence[Exec]]]


def command(execs: Sequence[Exec]) -> list[str]:
    """Return the command that ends execs in their launcher, and prints "ended", "gone" or "error" for each."""
    return ["/bin/sh", "-c", SCRIPT, "sh", *(f"{found.pid} {found.ticks} {found.pod}" for found in execs)]


async def end(gate: Gate, view: JobView, action: EndExecs, *, recheck: Recheck, metrics: Metrics) -> Mapping[Exec, str]:
    """Try to end the execs; return the outcome of each."""
    outcomes: dict[Exec, str] = {}
    try:
        if frozen := await recheck(view, action):
            outcomes = dict.fromkeys(frozen, FAILED)
            outcomes |= await _end(gate, view.namespace, action, frozen)
    except (errors.KubeError, NotLeader) as error:
        log.warning("frozen execs of %s/%s not ended: %s", view.namespace, action.launcher.ref.name, error)
    for outcome in outcomes.values():
        metrics.ended_execs.labels(outcome).inc()
    return {found: outcomes.get(found, FAILED) for found in action.execs}


async def _end(gate: Gate, namespace: str, action: EndExecs, execs: Sequence[Exec]) -> Mapping[Exec, str]:
    launcher = action.launcher
    result = await gate.execute(namespace, launcher.ref.name, container=launcher.container, command=command(execs))
    answers = result.stdout.split()
    is_ours = result.exit_code == 0 and len(answers) == len(execs) and {*answers} <= {ENDED, GONE, FAILED}
    return dict(zip(execs, answers, strict=True)) if is_ours else {}
