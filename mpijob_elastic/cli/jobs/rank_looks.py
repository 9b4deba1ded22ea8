"""Look by exec into a launcher, with the user's own right, for the processes that hold its ranks.

Horovod puts HOROVOD_RANK into the command line of each. Only that number and the pod are printed, because the rest may
hold secrets.
"""

import re

from mpijob_elastic.cli.jobs.exec_probes import PATIENCE
from mpijob_elastic.explain.spawned_ranks import Spawn, Spawned
from mpijob_elastic.kube.exec import ExecFailed, exec_in_pod
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.model.bounds import BYTES_AN_EXEC, MOST_EXECS
from mpijob_elastic.model.pod import Launcher

# As act/launcher_execs, for the same shells: a controller's look, which the guard allows, shows no ranks.
SCRIPT = """\
read -r stat < /proc/1/stat
set -- ${stat##*) }
main=${20}
read -r stat < "/proc/$$/stat"
set -- ${stat##*) }
echo "main $main look ${20}"
for process in /proc/[0-9]*; do
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
COMMAND = ["/bin/sh", "-c", SCRIPT]

_TICKS = 100.0
_HEAD = re.compile(r"main (\d{1,18}) look (\d{1,18})\n", re.ASCII)
_POD = r"[a-z0-9.-]{1,253}-worker-\d{1,10}"
_LINE = re.compile(rf"(?am)^(\d{{1,18}}) (\d{{1,18}}) (\d{{1,9}}) ({_POD})(?:--container[a-z0-9-]{{1,63}})?\n")


async def look(client: ApiReader, namespace: str, launcher: Launcher) -> Spawned:
    """Return the processes that hold ranks now. Raises `errors.KubeError`."""
    result = await exec_in_pod(
        client,
        namespace,
        launcher.ref.name,
        container=launcher.container,
        command=COMMAND,
        timeout=PATIENCE,
        limit=BYTES_AN_EXEC * MOST_EXECS,
    )
    found = parse(result.stdout, started_at=launcher.facts.started_at or 0.0)
    if found is None:
        raise ExecFailed(f"{launcher.ref.name}: /bin/sh does not list processes")
    return found


def parse(output: str, *, started_at: float) -> Spawned | None:
    """Read the output of the script, None if it is not its output. started_at: when the main process started."""
    head = _HEAD.match(output)
    if head is None:
        return None

    def at(ticks: str) -> float:
        return started_at + (int(ticks) - int(head[1])) / _TICKS

    found = _LINE.findall(output)
    spawns = (Spawn(pid=int(pid), rank=int(rank), pod=pod, started_at=at(ticks)) for pid, ticks, rank, pod in found)
    return Spawned(at=at(head[2]), spawns=frozenset(spawns))
