#!/bin/sh
# elastic.sh: runs an MPI program on the hosts of discover_hosts.sh, and starts it again when they change.
# mpijob-elastic mounts it at /etc/mpi in the launchers that name it. It needs a POSIX shell and the
# programs cat, chmod, date, mkdir, mv, rm and sleep (busybox has them). docs/mpi.md has the contract.
#
# A generation is one run of the command, on one list of hosts. No generation starts before all ranks
# of the last one have ended, and the acknowledgement (see `acknowledge`) says on which hosts ranks may
# run: it is written before they start, and after those of the last generation have ended.
set -u

USAGE='Usage: elastic.sh [OPTIONS] -- COMMAND...

Starts COMMAND, mostly an mpirun, on the hosts of the job. When the hosts change, it signals COMMAND,
waits until the ranks have saved their state and ended, and starts COMMAND on the new hosts.

These words of COMMAND are replaced:
  {np}        the number of slots of all hosts
  {hostfile}  the path of a hostfile, in the form that the mpirun of COMMAND reads

Options:
  --np N              slots to wait for before the first start (default: --min-np)
  --min-np N          slots below which COMMAND is stopped, and waits (default: 1)
  --max-np N          slots that COMMAND gets at most (default: all)
  --signal NAME       the signal on which ranks save their state and end with 0 (default: USR1)
  --grace SECONDS     how long ranks may take for that (default: the drain-timeout less 10 s)
  --gather SECONDS    how long new hosts wait for others; mpijob-elastic reads it
  --retries N         failures that are tried again, without a host that left (default: 3)
  --implementation I  open-mpi, mpich or intel-mpi, if COMMAND does not begin with its mpirun
  --help              print this text

Exit codes: that of COMMAND; 2 for a wrong option; 143 after SIGTERM.'

# --- constants; times are in seconds ---
NEWLINE='
'
# How long the ranks of a generation may take to start; then they are known to run without a look.
START_FOR=60
# A failure is forgotten if a host of its generation leaves the list so soon afterwards, and all
# failures are once a generation has run for so long.
EXPLAINED_WITHIN=60
FORGIVEN_AFTER=300
# What mpirun gets to end after SIGTERM, and ranks to save after a SIGTERM of ours.
TERM_FOR=5
LAST_SAVE_FOR=20
# How long a look into a worker may take, how many are made at once, and when hosts that cannot be
# used are looked at again.
LOOK_FOR=10
LOOKS_AT_ONCE=16
LOOK_AGAIN_AFTER=10
# A grace period while the list does not say the drain-timeout.
DEFAULT_GRACE=50

LIST=${MPIJOB_ELASTIC_LIST:-/etc/mpi/discover_hosts.sh}
KUBEXEC=${MPIJOB_ELASTIC_KUBEXEC:-/etc/mpi/kubexec.sh}
FOLDER=${MPIJOB_ELASTIC_FOLDER:-/run/mpijob-elastic}

# Runs in a worker. Ends processes of earlier generations, which carry the mark in their environment,
# and says `clean` or how many are left. A pod may see the processes of other containers: only those
# in the cgroup of this shell are its container's. Only builtins: `read` leaves out NULs.
END_RANKS='
group() { text=; while read -r line; do text="$text$line "; done 2>/dev/null < "/proc/$1/cgroup"; }
marked() {
  while read -r line || [ "$line" ]; do
    case $line in *MPIJOB_ELASTIC_RUN=*) return 0 ;; esac
    line=
  done 2>/dev/null < "/proc/$1/environ"
  return 1
}
group self; own=$text
for try in 1 2 3; do
  left=0
  for process in /proc/[0-9]*; do
    pid=${process#/proc/}
    marked "$pid" || continue
    group "$pid"
    [ "$text" = "$own" ] || continue
    kill -9 "$pid" 2>/dev/null && left=$((left + 1))
  done
  [ "$left" = 0 ] && { echo clean; exit; }
  sleep 1
done
echo "$left left"
'
# Runs in a worker: says `yes` if a rank of the generation $1 runs. MPI gives each rank its number.
SEE_RANK='
for process in /proc/[0-9]*; do
  run= rank=
  while read -r line || [ "$line" ]; do
    case $line in *"MPIJOB_ELASTIC_RUN=$0"*) run=yes ;; esac
    case $line in *OMPI_COMM_WORLD_RANK=*|*PMIX_RANK=*|*PMI_RANK=*) rank=yes ;; esac
    line=
  done 2>/dev/null < "$process/environ"
  [ "$run$rank" = yesyes ] && { echo yes; exit; }
done
echo no
'

# --- what is said ---

say() { echo "$(date -u +%H:%M:%S) elastic.sh: $*" >&2; }

refuse() {
  echo "elastic.sh: $*; see elastic.sh --help" >&2
  exit 2
}

# --- options ---

is_number() {
  case $1 in
    '' | *[!0-9]* | ?????????*) return 1 ;;
  esac
}

# number OPTION VALUE LEAST
number() {
  is_number "$2" || refuse "$1 needs a number, not '$2'"
  [ "$2" -ge "$3" ] || refuse "$1 must be at least $3, not $2"
}

first_np='' min_np=1 max_np='' signal=USR1 grace='' retries=3 implementation=''

# take OPTION VALUE
take() {
  case $1 in
    --np) number "$1" "$2" 1; first_np=$2 ;;
    --min-np) number "$1" "$2" 1; min_np=$2 ;;
    --max-np) number "$1" "$2" 1; max_np=$2 ;;
    --grace) number "$1" "$2" 1; grace=$2 ;;
    --gather) number "$1" "$2" 0 ;;
    --retries) number "$1" "$2" 0; retries=$2 ;;
    --signal)
      signal=${2#SIG}
      kill -l "$signal" >/dev/null 2>&1 || refuse "--signal: no signal is named '$2'"
      ;;
    --implementation)
      case $2 in
        open-mpi | mpich | intel-mpi) implementation=$2 ;;
        *) refuse "--implementation must be open-mpi, mpich or intel-mpi, not '$2'" ;;
      esac
      ;;
    *) refuse "unknown option '$1'" ;;
  esac
}

# --- the list of hosts ---

# Read the list: $list is its number, $drain its drain-timeout, $hosts a line `NAME:SLOTS GENERATION`
# for each host. The file is changed as a whole, and its lines are `echo NAME:SLOTS # GENERATION`.
read_list() {
  new_list='' new_drain='' new_hosts=''
  while read -r word value hash more; do
    case $word in
      '#') [ "$value" = list ] && new_list=$hash new_drain=${more#drain } ;;
      echo) add_host "$value" "${more:-}" ;;
    esac
  done 2>/dev/null < "$LIST" || return 1
  list=$new_list drain=$new_drain hosts=$new_hosts
}

# add_host NAME:SLOTS GENERATION
add_host() {
  is_number "${1##*:}" || return 0
  [ "${1##*:}" -gt 0 ] || return 0
  new_hosts="$new_hosts$1 $2$NEWLINE"
}

# Set $usable to the hosts that a generation gets, and $slots to their slots: those of the list, without
# those that cannot be used, up to --max-np.
find_usable() {
  usable='' slots=0
  while read -r host; do
    [ "$host" ] || continue
    [ "$max_np" ] && [ "$slots" -ge "$max_np" ] && break
    has_line "$unusable" "${host%%:*}" && continue
    usable=$usable$host$NEWLINE
    host=${host%% *}
    slots=$((slots + ${host##*:}))
  done <<HOSTS
$hosts
HOSTS
  [ "$max_np" ] && [ "$slots" -gt "$max_np" ] && slots=$max_np
  return 0
}

# has_line TEXT LINE
has_line() {
  case $NEWLINE$1 in
    *"$NEWLINE$2$NEWLINE"*) return 0 ;;
  esac
  return 1
}

# Set $missing to a host of the first list that is not in the second.
find_missing() {
  missing=''
  while read -r line; do
    [ "$line" ] || continue
    has_line "$2" "$line" || missing=${line%%:*}
  done <<HOSTS
$1
HOSTS
}

look_at_list() {
  read_list || return 1
  find_usable
  explain
}

# --- the acknowledgement ---

# acknowledge STATE HOSTS: write on which list ranks may run. It is changed as a whole.
acknowledge() {
  printf 'list %s\nstate %s\n%s' "${list:-0}" "$1" "$2" > "$FOLDER/acknowledged.new"
  mv "$FOLDER/acknowledged.new" "$FOLDER/acknowledged"
  acknowledged=$list
}

# --- looks into workers ---

# look SCRIPT ARGUMENT HOSTS: run a script in all hosts, and keep each answer in $FOLDER/answers/HOST.
look() {
  rm -rf "$FOLDER/answers"
  mkdir "$FOLDER/answers"
  looks='' count=0
  while read -r host _; do
    [ "$host" ] || continue
    begin_look "${host%%:*}" "$1" "$2"
    count=$((count + 1))
    [ "$((count % LOOKS_AT_ONCE))" = 0 ] && end_looks
  done <<HOSTS
$3
HOSTS
  end_looks
}

# begin_look HOST SCRIPT ARGUMENT
begin_look() {
  # The remote shell joins its words: the script is quoted, and has no quote of this kind.
  "$KUBEXEC" "$1" "/bin/sh -c '$2' '$3'" > "$FOLDER/answers/$1" 2>/dev/null </dev/null &
  looks="$looks $!"
}

# Wait for the looks that were begun, and end those that take too long.
end_looks() {
  [ "$looks" ] || return 0
  # shellcheck disable=SC2086 # $looks is a list of numbers
  { sleep "$LOOK_FOR"; kill -9 $looks; } >/dev/null 2>&1 &
  guard=$!
  for one in $looks; do wait "$one" 2>/dev/null; done
  kill "$guard" 2>/dev/null
  wait "$guard" 2>/dev/null
  looks=''
}

# answer HOST: print what the last look into a host said.
answer() {
  said=''
  read -r said 2>/dev/null < "$FOLDER/answers/$1"
  echo "$said"
}

# end_ranks HOSTS: end what is left of earlier generations there. Where that is not sure, a host is put
# into $unusable, and into $unreached if it cannot be reached; the others are taken out of $unusable.
end_ranks() {
  unreached='' stays=''
  look "$END_RANKS" sh "$1"
  while read -r host _; do
    host=${host%%:*}
    [ "$host" ] || continue
    case $(answer "$host") in
      clean) ;;
      *left) stays=$stays$host$NEWLINE ;;
      *) stays=$stays$host$NEWLINE unreached="$unreached$host " ;;
    esac
  done <<HOSTS
$1
HOSTS
  kept=$(without "$unusable" "$1")
  unusable=${kept%.}$stays
  checked_at=$(date +%s)
  [ "$stays" ] || return 0
  say "nothing is started in $(names "$stays"): what ran there does not end, or cannot be seen"
}

# without NAMES HOSTS: print the names, a line each, that no line of the hosts has.
without() {
  while read -r name; do
    [ "$name" ] || continue
    case $NEWLINE$2 in
      *"$NEWLINE$name$NEWLINE"* | *"$NEWLINE$name:"*) ;;
      *) echo "$name" ;;
    esac
  done <<NAMES
$1
NAMES
  # A substitution of commands takes the last ends of lines off.
  echo .
}

# Set $ranks_run to yes if ranks of this generation run in all of its hosts.
see_ranks() {
  ranks_run=yes
  [ "$(($(date +%s) - started_at))" -ge "$START_FOR" ] && return
  look "$SEE_RANK" "$generation" "$running"
  while read -r host _; do
    host=${host%%:*}
    [ "$host" ] || continue
    [ "$(answer "$host")" = yes ] || ranks_run=no
  done <<HOSTS
$running
HOSTS
}

# --- the files of a start ---

# Sets $FOLDER: the webhook mounts one; without it, the controller cannot read the acknowledgement.
prepare_folder() {
  mkdir -p "$FOLDER" 2>/dev/null
  if ! : 2>/dev/null > "$FOLDER/written"; then
    say "$FOLDER cannot be written, so workers drain for their whole drain-timeout"
    FOLDER=/tmp/mpijob-elastic.$$
    mkdir "$FOLDER" || exit 1
  fi
  rm -f "$FOLDER/written"
}

# find_implementation COMMAND...: set $implementation by what its mpirun says of itself.
find_implementation() {
  [ "$implementation" ] && return
  case ${1##*/} in
    mpirun* | mpiexec* | orterun | prterun) ;;
    *) return ;;
  esac
  case $("$1" --version 2>&1 </dev/null) in
    *'Open MPI'* | *OpenRTE* | *PRTE*) implementation=open-mpi ;;
    *'Intel(R) MPI'*) implementation=intel-mpi ;;
    *HYDRA* | *Hydra*) implementation=mpich ;;
  esac
}

# write_hostfiles: write both forms, `NAME slots=N` and `NAME:N`.
write_hostfiles() {
  slots_form='' colon_form=''
  while read -r host _; do
    [ "$host" ] || continue
    slots_form="$slots_form${host%%:*} slots=${host##*:}$NEWLINE"
    colon_form="$colon_form$host$NEWLINE"
  done <<HOSTS
$running
HOSTS
  printf %s "$slots_form" > "$FOLDER/hostfile"
  printf %s "$colon_form" > "$FOLDER/hostfile.hydra"
}

# write_agent: write the remote shell by which all processes of this generation carry its mark. It notes
# when it begins and how it ends, and turns the end of kubectl by a signal into an exit code.
write_agent() {
  : > "$FOLDER/agents"
  cat > "$FOLDER/agent.new" <<AGENT
#!/bin/sh
while [ "\${1#-}" != "\$1" ]; do shift; done
host=\$1
shift
echo "begins \$host" >> "$FOLDER/agents"
$KUBEXEC "\$host" "MPIJOB_ELASTIC_RUN=$generation; export MPIJOB_ELASTIC_RUN; \$*"
code=\$?
echo "ends \$host \$code" >> "$FOLDER/agents"
exit "\$code"
AGENT
  chmod +x "$FOLDER/agent.new"
  mv "$FOLDER/agent.new" "$FOLDER/agent"
}

# Set $broken to a host whose remote shell has not ended with 0 although the command has ended; "" if
# there is none. What the command has started there ends within a moment.
find_broken() {
  broken=''
  end_at=$(($(date +%s) + TERM_FOR))
  while :; do
    open='' broken=''
    while read -r what host agent_code; do
      case $what in
        begins) open=$open$host$NEWLINE ;;
        ends)
          open=$(without "$open" "$host$NEWLINE")
          open=${open%.}
          [ "$agent_code" = 0 ] || broken=$host
          ;;
      esac
    done < "$FOLDER/agents"
    [ "$open" ] || return 0
    [ "$(date +%s)" -lt "$end_at" ] || break
    sleep "$TICK"
  done
  broken=${open%%"$NEWLINE"*}
}

# unless_own VARIABLE VALUE: set a variable of MPI, unless somebody else than the operator has set it.
unless_own() {
  eval "there=\${$1:-}"
  case $there in
    '' | /etc/mpi/*) export "$1=$2" ;;
  esac
}

# What each mpirun reads: the remote shell and the hosts. Workers have no kubectl, so none of them
# starts others, as a tree of many hosts would.
set_variables() {
  unless_own OMPI_MCA_plm_rsh_agent "$FOLDER/agent"
  unless_own OMPI_MCA_orte_default_hostfile "$FOLDER/hostfile"
  unless_own OMPI_MCA_plm_rsh_no_tree_spawn 1
  unless_own PRTE_MCA_plm_ssh_agent "$FOLDER/agent"
  unless_own PRTE_MCA_prte_default_hostfile "$FOLDER/hostfile"
  unless_own PRTE_MCA_plm_ssh_no_tree_spawn 1
  unless_own HYDRA_LAUNCHER rsh
  unless_own HYDRA_LAUNCHER_EXEC "$FOLDER/agent"
  unless_own HYDRA_HOST_FILE "$FOLDER/hostfile.hydra"
  unless_own I_MPI_HYDRA_BOOTSTRAP rsh
  unless_own I_MPI_HYDRA_BOOTSTRAP_EXEC "$FOLDER/agent"
}

# --- a generation ---

# start COMMAND...
start() {
  number=$((number + 1))
  generation=$run.$number.
  running=$usable np=$slots
  write_hostfiles
  write_agent
  acknowledge running "$running"
  started_at=$(date +%s)
  say "start $number on $np slots (list ${list:-none}): $(names "$running")"
  for word; do  # each word is taken from the front, and put at the end
    shift
    case $word in
      '{np}') word=$np ;;
      '{hostfile}') word=$FOLDER/hostfile$suffix ;;
    esac
    set -- "$@" "$word"
  done
  "$@" &
  child=$!
}

# names HOSTS: print the names of up to eight hosts.
names() {
  shown='' count=0
  while read -r host _; do
    [ "$host" ] || continue
    count=$((count + 1))
    [ "$count" -le 8 ] && shown="$shown${host%%:*} "
  done <<HOSTS
$1
HOSTS
  [ "$count" -gt 8 ] && shown="${shown}and $((count - 8)) more"
  echo "${shown% }"
}

has_ended() { ! kill -0 "$child" 2>/dev/null; }

# wait_for_end SECONDS: fail if the command still runs then.
wait_for_end() {
  end_at=$(($(date +%s) + $1))
  until has_ended; do
    [ "$(date +%s)" -lt "$end_at" ] || return 1
    sleep "$TICK"
  done
}

# end_command SIGNAL SECONDS: signal the command, and insist.
end_command() {
  kill -s "$1" "$child" 2>/dev/null
  wait_for_end "$2" && return
  say "still running after $2 s: SIGTERM"
  kill -s TERM "$child" 2>/dev/null
  wait_for_end "$TERM_FOR" && return
  say "still running: SIGKILL"
  kill -s KILL "$child" 2>/dev/null
}

# Set $code to the exit code of the command, which has ended.
take_code() {
  wait "$child" 2>/dev/null
  code=$?
}

# The ranks save and end, because the hosts have changed.
stop() {
  see_ranks
  if [ "$ranks_run" = yes ]; then
    find_grace
    say "list ${list:-none} has $slots slots: SIG$signal, at most $limit s"
    end_command "$signal" "$limit"
  else
    say "list ${list:-none} has $slots slots, and not all ranks have started: SIGTERM"
    end_command TERM "$TERM_FOR"
  fi
  take_code
  [ "$code" = 0 ] || end_ranks "$running"
  say "start $number ended with $code after $(($(date +%s) - started_at)) s"
}

# Set $limit to what ranks get to save.
find_grace() {
  limit=$grace
  [ "$limit" ] && return
  limit=$DEFAULT_GRACE
  is_number "$drain" && limit=$((drain > 15 ? drain - 10 : 5))
}

# The launcher is to end: the ranks may save first.
terminate() {
  trap : TERM INT
  if [ "$child" ] && ! has_ended; then
    find_grace
    see_ranks
    [ "$limit" -le "$LAST_SAVE_FOR" ] || limit=$LAST_SAVE_FOR
    [ "$ranks_run" = yes ] || signal=TERM
    say "SIGTERM came: SIG$signal, at most $limit s"
    end_command "$signal" "$limit"
  fi
  exit 143
}

# rest: let a moment pass, and end if the launcher is to end.
rest() {
  sleep "$TICK"
  [ "$term" ] && terminate
  return 0
}

# Watch the command and the hosts; set $stopped if the command was stopped because they changed.
watch() {
  stopped=''
  while :; do
    rest
    has_ended && break
    look_at_list || continue
    look_again
    if [ "$usable" != "$running" ]; then
      stop
      stopped=yes
      return
    fi
    [ "$list" = "$acknowledged" ] || acknowledge running "$running"
  done
  take_code
}

# --- between generations ---

# look_again: see whether listed hosts that could not be used can be used now.
look_again() {
  [ "$unusable" ] || return 0
  [ "$(($(date +%s) - checked_at))" -ge "$LOOK_AGAIN_AFTER" ] || return 0
  listed=''
  while read -r host; do
    has_line "$unusable" "${host%%:*}" && listed=$listed$host$NEWLINE
  done <<HOSTS
$hosts
HOSTS
  [ "$listed" ] && end_ranks "$listed"
  find_usable
}

# wait_for_slots LEAST
wait_for_slots() {
  told=''
  while :; do
    if look_at_list; then
      look_again
      [ "$slots" -ge "$1" ] && return
      [ "$list" = "$acknowledged" ] || acknowledge waiting ''
      [ "$told" = "$slots" ] || say "waits for $1 slots; list ${list:-none} has $slots"
      told=$slots
    fi
    rest
  done
}

# explain: forget the recent failures if a host on which they came has left the list.
explain() {
  [ "$recent" -gt 0 ] || return 0
  [ "$(date +%s)" -le "$explained_until" ] || return 0
  find_missing "$failed_on" "$hosts"
  [ "$missing" ] || return 0
  say "$missing has left the list, so the failure does not count"
  recent=0
}

# count_failure: count the end of a generation that nobody asked for.
count_failure() {
  now=$(date +%s)
  ran=$((now - started_at))
  if [ "$ran" -ge "$FORGIVEN_AFTER" ]; then
    failures=0 recent=0
  elif [ "$now" -gt "$explained_until" ]; then
    failures=$((failures + recent)) recent=0
  fi
  say "start $number ended with $code after $ran s"
  if [ "$unreached" ]; then
    say "${unreached% } cannot be reached, so the failure does not count"
    return
  fi
  recent=$((recent + 1)) explained_until=$((now + EXPLAINED_WITHIN)) failed_on=$running
}

# Set $pause to the seconds until the next try.
find_pause() {
  case $((failures + recent)) in
    0 | 1) pause=1 ;;
    2) pause=2 ;;
    3) pause=5 ;;
    4) pause=10 ;;
    *) pause=30 ;;
  esac
}

# The command failed: return when it is to be tried again.
after_failure() {
  count_failure
  acknowledge waiting ''
  find_pause
  try_at=$(($(date +%s) + pause))
  while :; do
    look_at_list && { [ "$list" = "$acknowledged" ] || acknowledge waiting ''; }
    if [ "$((failures + recent))" -le "$retries" ]; then
      [ "$usable" = "$running" ] || return 0
      [ "$(date +%s)" -lt "$try_at" ] || return 0
    elif [ "$(date +%s)" -gt "$explained_until" ]; then
      say "gives up after $((failures + recent)) failures (--retries $retries)"
      exit "$code"
    fi
    rest
  done
}

# is_done: tell whether the program has done its work. Open MPI 5 also ends with 0 when a host is lost.
is_done() {
  [ "$code" = 0 ] && [ ! "$unreached" ] || return 1
  find_broken
  [ "$broken" ] || return 0
  say "start $number ended with 0, but what ran in $broken did not"
  return 1
}

main() {
  while [ $# -gt 0 ] && [ "$1" != -- ]; do
    case $1 in
      -h | --help) echo "$USAGE"; exit 0 ;;
      --*=*) take "${1%%=*}" "${1#*=}"; shift ;;
      --*)
        [ $# -gt 1 ] || refuse "$1 needs a value"
        take "$1" "$2"
        shift 2
        ;;
      *) refuse "'$1' is no option; write -- before the command" ;;
    esac
  done
  [ $# -gt 1 ] || refuse "no command after --"
  shift
  find_implementation "$@"
  suffix=.hydra
  case $implementation in
    open-mpi) suffix='' ;;
    '')
      for word; do
        [ "$word" = '{hostfile}' ] || continue
        refuse "the form of {hostfile} depends on the MPI: give --implementation"
      done
      ;;
  esac
  [ "${max_np:-$min_np}" -ge "$min_np" ] || refuse "--max-np is below --min-np"

  run='' number=0 child='' term='' unusable='' unreached='' checked_at=0 acknowledged=none
  failures=0 recent=0 explained_until=0 failed_on='' list='' drain='' hosts='' usable='' slots=0
  read -r run 2>/dev/null < /proc/sys/kernel/random/uuid || run=$$.$(date +%s)
  TICK=0.2
  sleep "$TICK" 2>/dev/null || TICK=1
  trap 'term=yes' TERM INT
  prepare_folder
  set_variables

  least=${first_np:-$min_np}
  [ "$least" -ge "$min_np" ] || least=$min_np
  wait_for_slots "$least"
  # Ranks of a launcher before this one may be left.
  end_ranks "$hosts"
  while :; do
    wait_for_slots "$least"
    least=$min_np
    start "$@"
    watch
    [ "$stopped" ] && continue
    end_ranks "$running"
    find_usable
    is_done && break
    after_failure
  done
  say "start $number ended with 0: done"
  acknowledge waiting ''
}

main "$@"
