"""Looks by exec into a launcher, for the `kubectl exec`s that it holds its ranks by.

Of a command line nothing is printed but the pod's name: the rest carries what Horovod keeps secret.
"""

from __future__ import annotations

import re

from mpijob_elastic.model.execs import Exec

# Only builtins of a POSIX shell. The words of a command line are separated by NULs, which `read` leaves out (dash, bash
# and busybox alike), and [operator] kubexec.sh runs `/opt/kube/kubectl exec POD [--container NAME] -- /bin/sh -c RANK`.
# Field 22 of /proc/PID/stat is when the process started, in hundredths of a second since the boot (proc_pid_stat(5)).
SCRIPT = """\
read -r uptime rest < /proc/uptime
echo "uptime $uptime"
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
_UPTIME = re.compile(r"uptime ([0-9]+\.[0-9]+)\n")
_LINE = re.compile(r"(?P<pid>[0-9]+) (?P<ticks>[0-9]+) (?P<pod>[a-z0-9.-]+-worker-[0-9]+)(?:--container[a-z0-9-]+)?\n")


def parse(output: str, *, now: float) -> tuple[Exec, ...] | None:
    """What the script printed, asked at `now`; None where that is not its output.

    Where the uptime is not the machine's (LXCFS), processes look younger than they are, never older.
    """
    uptime = _UPTIME.match(output)
    if uptime is None:
        return None
    booted = now - float(uptime[1])
    found = (_LINE.fullmatch(line) for line in output.splitlines(keepends=True))
    return tuple(
        Exec(pid=int(one["pid"]), pod=one["pod"], started_at=min(now, booted + int(one["ticks"]) / _TICKS))
        for one in found
        if one
    )
