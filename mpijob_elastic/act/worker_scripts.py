"""The scripts of the looks into workers.

They stand beside `worker_probes` because `get` looks by one of them, and needs nothing else of it.
"""

from mpijob_elastic import names
from mpijob_elastic.model import progress

# Bytes of the answer of a look.
LONGEST_ANSWER = 2 * progress.LONGEST

# The name that a look gives its shell, at most 15 bytes (proc_pid_comm(5)). A command line would be
# another mark, but `read` takes seconds for a long one.
LOOK = "mpijob-look"
MARK = f'echo {LOOK} 2>/dev/null > "/proc/$$/comm"\n'
# Only builtins of a POSIX shell, so the script starts no process that it would count. It skips
# - process 1, which is the container's main process;
# - the shell itself;
# - zombies: `sleep` as process 1 never reaps an orphaned rank;
# - the pauses of the main process that our webhook gives (admission/worker_grace): their
#   parent, group and session are 1;
# - processes with a controlling terminal, such as somebody's shell (`attach`): kubexec.sh starts
#   ranks without a terminal;
# - looks of others, which have given themselves that name, and their `head`.
# /proc/PID/stat is `PID (NAME) STATE PPID GROUP SESSION TERMINAL ...`; NAME may hold anything
# (proc_pid_stat(5)).
EACH_PROCESS = f"""\
{MARK}answer=idle
for process in /proc/[0-9]*; do
  pid=${{process#/proc/}}
  [ "$pid" = 1 ] && continue
  [ "$pid" = "$$" ] && continue
  read -r stat 2>/dev/null < "$process/stat" || continue
  set -- ${{stat##*) }}
  [ "$1" = Z ] && continue
  [ "$5" = 0 ] || continue
  case $stat in *" (sleep) "?" 1 1 1 "*) continue ;; esac
  case $stat in *" ({LOOK}) "*|*" (head) "*) continue ;; esac
"""
# Prints the line of progress, and whether the process that wrote it still runs. It needs `head`,
# because `read` would take in a file of any length; without `head` there is no line.
TELL_PROGRESS = f"""\
file=${{{progress.VARIABLE}:-{progress.PATH}}}
[ -f "$file" ] || exit 0
line=$(head -c {progress.LONGEST} "$file" 2>/dev/null)
set -f
set -- $line
case $2 in ''|*[!0-9]*) exit 0 ;; esac
state=ended process=$2 ticks=$3 stat=
read -r stat 2>/dev/null < "/proc/$process/stat"
set -- ${{stat##*) }}
[ "${{20}}" = "$ticks" ] && state=alive
printf '%s\n' "$state $line"
exit 0
"""
SCRIPT = f"""\
{EACH_PROCESS}  answer=busy
  break
done
echo "$answer"
{TELL_PROGRESS}"""


def _by_our_main(command: str) -> str:
    """Return a script that runs a command if process 1 is the main process of our webhook."""
    return f"""\
read -r main < /proc/1/cmdline
case $main in *"{names.MAIN_BEGINS}") {command} ;; esac
echo told
"""


# The last words of our main process in a worker that has drained, and then ends. Any other main
# process keeps its own last words.
TELL = _by_our_main(f'echo "{names.RANKS_LEFT}" > /dev/termination-log || exit')
# Ends the ranks of a worker whose job is gone, so that the main process ends too. In a container
# that shares processes with others, or with its node, ours is not process 1, and nothing is killed.
END = _by_our_main("kill -KILL -1")
