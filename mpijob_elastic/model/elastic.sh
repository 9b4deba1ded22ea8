#!/bin/sh
# elastic.sh: runs an MPI program on the hosts of discover_hosts.sh, and starts it again when they change.
# mpijob-elastic mounts it at /etc/mpi in the launchers that name it. It needs a POSIX shell and the
# programs cat, chmod, date, env, mkdir, mv, rm and sleep, and uses setsid if it is there (busybox has
# all of them). docs/decisions/0048-a-driver-for-any-mpi-program.md has the reasons.
#
# A generation is one run of the command, on one list of hosts. No generation starts before all ranks
# of the last one have ended, and the acknowledgement (see `acknowledge`) says on which hosts ranks may
# run: it is written before they start, and after those of the last generation have ended.
set -u

USAGE='Usage: elastic.sh [OPTIONS] -- COMMAND...

Starts COMMAND, mostly an mpirun, on the hosts of the job. When the hosts change, it signals COMMAND,
waits until the ranks have saved their state and ended, and starts COMMAND on the new hosts.

In the words of COMMAND these are replaced:
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

Exit codes: that of COMMAND; 1 if COMMAND ended with 0 and lost a host; 2 for a wrong option; 143 after
SIGTERM.'

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
# How long a look into a worker may take: to end ranks, and while ranks run or time is short. How many
# looks are made at once, and when hosts that cannot be used are looked at again.
LOOK_FOR=10
QUICK_LOOK_FOR=3
LOOKS_AT_ONCE=64
LOOK_AGAIN_AFTER=10
# So many starts in a row that run for less than FORGIVEN_AFTER are too many for each try, whatever
# explains them.
MOST_SHORT_STARTS=20
# While ranks save, so often it is seen whether a host that left the list is lost: ranks may wait for
# it in vain.
LOST_AFTER=10
# A grace period while the list does not say the drain-timeout.
DEFAULT_GRACE=50

LIST=${MPIJOB_ELASTIC_LIST:-/etc/mpi/discover_hosts.sh}
KUBEXEC=${MPIJOB_ELASTIC_KUBEXEC:-/etc/mpi/kubexec.sh}
FOLDER=${MPIJOB_ELASTIC_FOLDER:-/run/mpijob-elastic}

# The beginning of both scripts that run in workers. A pod may see the processes of other containers:
# only those in the cgroup of the script itself are its container's.
IN_CONTAINER='
group() { text=; while read -r line; do text="$text$line "; done 2>/dev/null < "/proc/$1/cgroup"; }
group self
own=$text
'
# Runs in a worker, and in the launcher. Ends the processes of earlier generations and their children,
# and says `clean` or how many are left. They carry the mark in their environment, which is
# `RUN.NUMBER.`; of the run $1 only numbers up to $2 are earlier. With $3 only processes in the namespace
# of this shell count. Only builtins: `read` leaves out NULs.
END_RANKS=$IN_CONTAINER'
run=$1 last=$2 only=$3
marked() {
  while read -r line || [ "$line" ]; do
    case $line in
      *MPIJOB_ELASTIC_RUN="$run".*)
        number=${line##*MPIJOB_ELASTIC_RUN="$run".}
        [ "${number%%.*}" -le "$last" ]
        return
        ;;
      *MPIJOB_ELASTIC_RUN=*) return 0 ;;
    esac
    line=
  done 2>/dev/null < "/proc/$1/environ"
  return 1
}
find_earlier() {
  earlier=" " others=
  for process in /proc/[0-9]*; do
    pid=${process#/proc/}
    [ "$pid" = $$ ] && continue
    group "$pid"
    [ "$text" = "$own" ] || continue
    [ -z "$only" ] || [ "$process/ns/pid" -ef /proc/self/ns/pid ] || continue
    if marked "$pid"; then earlier="$earlier$pid "; else others="$others$pid "; fi
  done
  found=yes
  while [ "$found" ]; do
    found=
    for pid in $others; do
      read -r stat 2>/dev/null < "/proc/$pid/stat" || continue
      set -- ${stat##*) }
      case $earlier in *" $pid "*) continue ;; esac
      case $earlier in *" $2 "*) earlier="$earlier$pid " found=yes ;; esac
    done
  done
}
for try in 1 2 3 4 5; do
  left=0
  find_earlier
  for pid in $earlier; do
    if kill -9 "$pid" 2>/dev/null || [ -e "/proc/$pid" ]; then left=$((left + 1)); fi
  done
  [ "$left" = 0 ] && { echo clean; exit; }
  sleep 0.2 2>/dev/null || sleep 1
done
echo "$left left"
'
# Runs in a worker: says `yes` if a rank of the start $2 of the run $1 runs. MPI gives each rank its
# number.
SEE_RANK=$IN_CONTAINER'
for process in /proc/[0-9]*; do
  group "${process#/proc/}"
  [ "$text" = "$own" ] || continue
  mark= rank=
  while read -r line || [ "$line" ]; do
    case $line in *"MPIJOB_ELASTIC_RUN=$1.$2."*) mark=yes ;; esac
    case $line in *OMPI_COMM_WORLD_RANK=*|*PMIX_RANK=*|*PMI_RANK=*) rank=yes ;; esac
    line=
  done 2>/dev/null < "$process/environ"
  [ "$mark$rank" = yesyes ] && { echo yes; exit; }
done
echo no
'

# --- what is said ---

say() { echo "$(date -u +%H:%M:%S) elastic.sh: $*" >&2; }

# amount SLOTS: print it in words.
amount() {
  case $1 in
    1) echo '1 slot' ;;
    *) echo "$1 slots" ;;
  esac
}

refuse() {
  echo "elastic.sh: $*; see elastic.sh --help" >&2
  exit 2
}

# --- options ---

# Leading zeros would be octal numbers.
is_number() {
  case $1 in
    '' | *[!0-9]* | 0?* | ?????????*) return 1 ;;
  esac
}

# Set $now to the seconds since the boot: the clock of the day may step.
clock() {
  read -r now _ < /proc/uptime
  now=${now%%.*}
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
      case $signal in
        USR1 | USR2 | TERM | INT | HUP | QUIT | ALRM | CONT) ;;
        *) refuse "--signal must be USR1, USR2, TERM, INT, HUP, QUIT, ALRM or CONT, not '$2'" ;;
      esac
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

# Read the list: $list is its number, $drain its drain-timeout, $hosts a line `NAME:SLOTS POD` for each
# host. The file is changed as a whole, and its lines are `echo NAME:SLOTS # POD`. $is_new says whether
# it is another list; one that has the same number is not read to its end.
read_list() {
  new_list='' new_drain='' new_hosts='' is_new=yes
  while read -r word value hash more; do
    case $word in
      '#')
        [ "$value" = list ] || continue
        [ "$hash" = "$list" ] && is_new='' && return
        new_list=$hash new_drain=${more#drain }
        ;;
      echo) add_host "$value" "${more:-}" ;;
    esac
  done 2>/dev/null < "$LIST" || return 1
  [ "$new_list" ] || [ "$new_hosts" != "$hosts" ] || is_new=''
  list=$new_list drain=$new_drain hosts=$new_hosts
}

# add_host NAME:SLOTS POD
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

# Set $absent to the lines of the first text that the second does not have.
find_absent() {
  absent=''
  while read -r line; do
    [ "$line" ] || continue
    has_line "$2" "$line" || absent=$absent$line$NEWLINE
  done <<LINES
$1
LINES
}

# Look at the list; fail if it cannot be read. No host gets a rank before what an earlier launcher may
# have left there has ended.
look_at_list() {
  if ! read_list; then
    [ "$cannot_read" ] || say "$LIST cannot be read"
    cannot_read=yes
    return 1
  fi
  cannot_read=''
  [ "$is_new" ] || return 0
  clock
  list_seen_at=$now
  find_absent "$hosts" "$known"
  new=$absent known=$hosts
  # Ranks that are to save do not wait for looks into new hosts.
  if [ "$child" ] && ! has_ended; then
    find_absent "$running" "$hosts"
    [ "$absent" ] && unclean=$unclean$new new=''
  fi
  if [ "$new" ]; then end_ranks "$new" "$LOOK_FOR"; else find_usable; fi
  explain
}

# --- the acknowledgement ---

# acknowledge STATE HOSTS: write on which list ranks may run. After the hosts come lines `left NAME` for
# those where something of an earlier start may run. The file is changed as a whole.
acknowledge() {
  {
    printf 'list %s\nstate %s\n%s' "${list:-0}" "$1" "$2" &&
      for host in $unusable; do echo "left $host" || return; done
  } > "$FOLDER/acknowledged.new" &&
    mv "$FOLDER/acknowledged.new" "$FOLDER/acknowledged" &&
    acknowledged=$list
}

# acknowledge_new STATE HOSTS: the same, unless the list is acknowledged already.
acknowledge_new() { [ "$list" = "$acknowledged" ] || acknowledge "$1" "$2"; }

# --- looks into workers ---

# look SCRIPT NUMBER HOSTS SECONDS: run a script in all hosts, and keep each answer in
# $FOLDER/answers/HOST. It gets the name of this run, and a number.
look() {
  rm -rf "$FOLDER/answers"
  mkdir "$FOLDER/answers"
  looks='' count=0
  while read -r host _; do
    [ "$host" ] || continue
    begin_look "${host%%:*}" "$1" "$2"
    count=$((count + 1))
    [ "$((count % LOOKS_AT_ONCE))" = 0 ] && end_looks "$4"
  done <<HOSTS
$3
HOSTS
  end_looks "$4"
}

# begin_look HOST SCRIPT NUMBER
begin_look() {
  # The remote shell joins its words: the script is quoted, and has no quote of this kind.
  $OWN_GROUP "$KUBEXEC" "$1" "/bin/sh -c '$2' sh $run $3 \"\"" > "$FOLDER/answers/$1" 2>/dev/null </dev/null &
  looks="$looks $!"
}

# end_looks SECONDS: wait for the looks that were begun, and end those that take longer. kubectl may be
# a child of what was started, so its group ends.
end_looks() {
  [ "$looks" ] || return 0
  # shellcheck disable=SC2086 # $looks is a list of numbers
  {
    sleep "$1"
    for one in $looks; do kill -9 "-$one" || kill -9 "$one"; done
  } >/dev/null 2>&1 &
  guard=$!
  for one in $looks; do wait_for "$one"; done
  kill -9 "$guard" 2>/dev/null
  wait "$guard" 2>/dev/null
  looks=''
}

# wait_for PROCESS: a signal to this shell ends a `wait` early.
wait_for() {
  while kill -0 "$1" 2>/dev/null; do wait "$1" 2>/dev/null; done
}

# answer HOST: print what the last look into a host said.
answer() {
  said=''
  read -r said 2>/dev/null < "$FOLDER/answers/$1"
  echo "$said"
}

# end_ranks HOSTS SECONDS: end what is left of earlier generations there. Where that is not sure, a host
# is put into $unusable, and into $unreached if it cannot be reached; the others are taken out of
# $unusable.
end_ranks() {
  unreached='' stays=''
  look "$END_RANKS" "$ended" "$1" "$2"
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
  take_out "$1"
  unusable=$unusable$stays
  clock
  checked_at=$now
  find_usable
  [ "$stays" ] && [ "$stays" != "$stayed" ] &&
    say "nothing is started in $(names "$stays"): what ran there does not end, or cannot be seen"
  stayed=$stays
}

# take_out HOSTS: take hosts out of $unusable.
take_out() {
  kept=''
  while read -r name; do
    [ "$name" ] || continue
    case $NEWLINE$1 in
      *"$NEWLINE$name$NEWLINE"* | *"$NEWLINE$name:"*) ;;
      *) kept=$kept$name$NEWLINE ;;
    esac
  done <<NAMES
$unusable
NAMES
  unusable=$kept
}

# Set $ranks_run to no if a host says that no rank of this generation runs in it. $looked says whether
# every host has said that one runs.
see_ranks() {
  ranks_run=yes looked=''
  clock
  [ "$((now - started_at))" -ge "$START_FOR" ] && return
  look "$SEE_RANK" "$number" "$running" "$QUICK_LOOK_FOR"
  looked=yes
  while read -r host _; do
    host=${host%%:*}
    [ "$host" ] || continue
    case $(answer "$host") in
      yes) ;;
      no) ranks_run=no ;;
      *) looked='' ;;
    esac
  done <<HOSTS
$running
HOSTS
}

# --- the files of a start ---

# Make $FOLDER, and tell whether files can be written there.
make_folder() {
  mkdir -p "$FOLDER" 2>/dev/null
  # In a subshell: a redirection that fails ends this shell.
  (: > "$FOLDER/written") 2>/dev/null
}

# Sets $FOLDER: the webhook mounts one; without it, the controller cannot read the acknowledgement.
prepare_folder() {
  make_folder && return
  say "$FOLDER cannot be written, so workers drain for their whole drain-timeout"
  FOLDER=${TMPDIR:-/tmp}/mpijob-elastic
  make_folder && return
  refuse "neither /run/mpijob-elastic nor $FOLDER can be written; mount an emptyDir at one of them"
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

# check_words COMMAND...: refuse what would start ranks elsewhere than on the hosts of the list.
check_words() {
  before='' has_hostfile='' has_machinefile=''
  for word; do
    case $word in
      *'{hostfile}'*)
        has_hostfile=yes
        [ "$before" = -machinefile ] && has_machinefile=yes
        ;;
      */etc/mpi/hostfile*) refuse "$word names all workers; write {hostfile}" ;;
    esac
    before=$word
  done
  if [ "$implementation" = intel-mpi ] && [ ! "$has_machinefile" ]; then
    refuse "Intel MPI counts the slots of hosts only with -machinefile; write -machinefile {hostfile}"
  fi
  if [ "$has_hostfile" ] && [ ! "$implementation" ]; then
    refuse "the form of {hostfile} depends on the MPI: give --implementation"
  fi
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
# when it begins and how it ends, and turns the end of kubectl by a signal into an exit code. It takes
# no host that is not of this generation.
write_agent() {
  agents=$FOLDER/agents.$number
  rm -f "$FOLDER"/agents.*
  (: > "$agents")
  cat > "$FOLDER/agent.new" <<AGENT
#!/bin/sh
while [ "\${1#-}" != "\$1" ]; do shift; done
host=\$1 known=
shift
while read -r line; do
  [ "\${line%%:*}" = "\$host" ] && known=yes
done < "$FOLDER/hostfile.hydra"
[ "\$known" ] || { echo "elastic.sh: \$host is not in the list of hosts" >&2; exit 1; }
echo "begins \$host" >> "$agents"
$KUBEXEC "\$host" "MPIJOB_ELASTIC_RUN=$run.$number.; export MPIJOB_ELASTIC_RUN; \$*"
code=\$?
echo "ends \$host \$code" >> "$agents"
exit "\$code"
AGENT
  chmod +x "$FOLDER/agent.new"
  mv "$FOLDER/agent.new" "$FOLDER/agent"
}

# Set $broken to a host whose remote shell has not ended with 0 although the command has ended; "" if
# there is none. What the command has started there ends within a moment.
find_broken() {
  clock
  end_at=$((now + TERM_FOR))
  while :; do
    begun=0 ended=0 broken=''
    while read -r what host agent_code; do
      case $what in
        begins) begun=$((begun + 1)) ;;
        ends)
          ended=$((ended + 1))
          [ "$agent_code" = 0 ] || broken=$host
          ;;
      esac
    done < "$agents"
    [ "$begun" -gt "$ended" ] || return 0
    clock
    [ "$now" -lt "$end_at" ] || break
    sleep "$TICK"
  done
  broken=${broken:-a worker}
}

# unless_own VARIABLE VALUE: set a variable of MPI, unless somebody else than the operator has set it.
unless_own() {
  eval "there=\${$1:-}"
  case $there in
    '' | /etc/mpi/*) export "$1=$2" ;;
  esac
}

# Set $interface to the one by which the launcher reaches others; "" if there is none.
find_interface() {
  interface=''
  while read -r name to _; do
    [ "$to" = 00000000 ] && interface=$name && return
  done 2>/dev/null < /proc/net/route
  return 0
}

# What each mpirun reads: the remote shell and the hosts. Workers have no kubectl, so none of them
# starts others, as a tree of many hosts would. Open MPI takes the first remote shell of a list that
# is there, and its daemons end where none is: workers have kubexec.sh alone. Hydra would tell
# workers the name of the launcher, which they cannot resolve; by an interface it tells an address.
set_variables() {
  unless_own OMPI_MCA_plm_rsh_agent "$FOLDER/agent:$KUBEXEC"
  unless_own OMPI_MCA_orte_default_hostfile "$FOLDER/hostfile"
  unless_own OMPI_MCA_plm_rsh_no_tree_spawn 1
  unless_own PRTE_MCA_plm_ssh_agent "$FOLDER/agent:$KUBEXEC"
  unless_own PRTE_MCA_prte_default_hostfile "$FOLDER/hostfile"
  unless_own PRTE_MCA_plm_ssh_no_tree_spawn 1
  unless_own HYDRA_LAUNCHER rsh
  unless_own HYDRA_LAUNCHER_EXEC "$FOLDER/agent"
  find_interface
  if [ "$interface" ]; then
    unless_own HYDRA_IFACE "$interface"
    unless_own I_MPI_HYDRA_IFACE "$interface"
  fi
  unless_own HYDRA_HOST_FILE "$FOLDER/hostfile.hydra"
  unless_own I_MPI_HYDRA_BOOTSTRAP rsh
  unless_own I_MPI_HYDRA_BOOTSTRAP_EXEC "$FOLDER/agent"
  unless_own I_MPI_HYDRA_BRANCH_COUNT 0
}

# --- a generation ---

# start COMMAND...
start() {
  number=$((number + 1)) starts=$((starts + 1))
  running=$usable
  write_hostfiles
  write_agent
  acknowledge running "$running"
  clock
  started_at=$now
  say "start $number on $(amount "$slots") (list ${list:-none}): $(names "$running")"
  for word; do  # each word is taken from the front, and put at the end
    shift
    replace "$word" '{np}' "$slots"
    replace "$word" '{hostfile}' "$FOLDER/hostfile$suffix"
    set -- "$@" "$word"
  done
  # The mark tells what the command leaves in the launcher.
  env "MPIJOB_ELASTIC_RUN=$run.$number." "$@" &
  child=$!
}

# replace TEXT OLD NEW: set $word to the text with NEW in the place of each OLD.
replace() {
  word='' rest=$1
  while :; do
    case $rest in
      *"$2"*) ;;
      *) break ;;
    esac
    word=$word${rest%%"$2"*}$3
    rest=${rest#*"$2"}
  done
  word=$word$rest
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

# Set $target to the mpirun among the command and what it has started, or else to the command: a
# command may be a script, which forwards no signal.
find_target() {
  target=$child below=" $child " more=yes
  while [ "$more" ]; do
    more=''
    for process in /proc/[0-9]*; do
      pid=${process#/proc/}
      case $below in *" $pid "*) continue ;; esac
      read -r stat 2>/dev/null < "$process/stat" || continue
      after=${stat##*) }
      parent=${after#* }
      case $below in
        *" ${parent%% *} "*) ;;
        *) continue ;;
      esac
      below="$below$pid " more=yes
      # The last one found is the lowest: Intel's mpirun is a script that runs mpiexec.hydra.
      case $stat in
        *'(mpirun'* | *'(mpiexec'* | *'(prterun)'* | *'(orterun)'*) target=$pid ;;
      esac
    done
  done
}

# wait_for_end SECONDS: fail if the command still runs then. Once the launcher is to end, it has little
# time.
wait_for_end() {
  clock
  end_at=$((now + $1)) is_short=''
  until has_ended; do
    clock
    if [ "$term" ] && [ ! "$is_short" ]; then
      is_short=yes
      [ "$end_at" -le "$((now + LAST_SAVE_FOR))" ] || end_at=$((now + LAST_SAVE_FOR))
    fi
    [ "$now" -lt "$end_at" ] || return 1
    sleep "$TICK"
  done
}

# Set $lost to a host of this generation that has left the list and cannot be reached, or whose name
# another pod has; "" if there is none.
find_lost() {
  lost=''
  find_absent "$running" "$hosts"
  [ "$absent" ] || return 0
  look "$SEE_RANK" "$number" "$absent" "$QUICK_LOOK_FOR"
  # In a subshell: what is new in the list is not to be missed later.
  listed=$NEWLINE$(read_list; echo "$hosts")
  while read -r host _; do
    host=${host%%:*}
    [ "$host" ] || continue
    case $(answer "$host") in
      yes | no) ;;
      *) lost=$host ;;
    esac
    case $listed in
      *"$NEWLINE$host:"*) lost=$host ;;
    esac
  done <<HOSTS
$absent
HOSTS
}

# end_command SIGNAL SECONDS: signal the command, and insist.
end_command() {
  find_target
  kill -s "$1" "$target" 2>/dev/null
  rest=$2 lost=''
  while [ "$rest" -gt "$LOST_AFTER" ] && [ ! "$lost" ]; do
    wait_for_end "$LOST_AFTER" && return
    rest=$((rest - LOST_AFTER))
    [ "$term" ] && [ "$rest" -gt "$LAST_SAVE_FOR" ] && rest=$LAST_SAVE_FOR
    find_lost
  done
  if [ "$lost" ]; then
    say "$lost is lost: SIGTERM"
  else
    wait_for_end "$rest" && return
    say "still running after $2 s: SIGTERM"
  fi
  kill -s TERM "$target" 2>/dev/null
  wait_for_end "$TERM_FOR" && return
  say "still running: SIGKILL"
  kill -s KILL "$target" "$child" 2>/dev/null
}

# end_own: end what starts have left in the launcher.
end_own() { /bin/sh -c "$END_RANKS" sh "$run" "$ended" only > /dev/null 2>&1 </dev/null; }

# Set $code to the exit code of the command, which has ended, and end what it has left in the launcher.
take_code() {
  while :; do
    wait "$child" 2>/dev/null
    code=$?
    has_ended && break
  done
  ended=$number broken=''
  [ "$code" = 0 ] && find_broken
  end_own
}

# The ranks save and end, because the hosts have changed.
stop() {
  see_ranks
  if [ "$ranks_run" = yes ]; then
    find_grace
    say "list ${list:-none} has $(amount "$slots"): SIG$signal, at most $limit s"
    end_command "$signal" "$limit"
  else
    say "list ${list:-none} has $(amount "$slots"), and not all ranks have started: SIGTERM"
    end_command TERM "$TERM_FOR"
  fi
  take_code
  # Some mpirun end with 0 although they have lost a host, or before any rank runs.
  if [ "$code" != 0 ] || [ "$broken" ] || [ ! "$looked" ]; then
    unclean=$unclean$running
  fi
  [ "$unclean" ] && end_ranks "$unclean" "$LOOK_FOR"
  unclean=''
  clock
  say "start $number ended with $code after $((now - started_at)) s"
  starts=0
}

# Set $limit to what ranks get to save, from now on.
find_grace() {
  limit=$grace
  [ "$limit" ] && return
  limit=$DEFAULT_GRACE
  clock
  is_number "$drain" && limit=$((drain - 10 - (now - list_seen_at)))
  [ "$limit" -ge 5 ] || limit=5
}

# The launcher is to end: the ranks may save first.
terminate() {
  if [ "$child" ] && ! has_ended; then
    find_grace
    see_ranks
    [ "$limit" -le "$LAST_SAVE_FOR" ] || limit=$LAST_SAVE_FOR
    [ "$ranks_run" = yes ] || signal=TERM
    say "SIGTERM came: SIG$signal, at most $limit s"
    end_command "$signal" "$limit"
    take_code
  fi
  exit 143
}

# Watch the command and the hosts; set $stopped if the command was stopped because they changed.
watch() {
  stopped=''
  while :; do
    sleep "$TICK"
    has_ended && break
    [ "$term" ] && terminate
    look_at_list || continue
    look_again
    if [ "$usable" != "$running" ]; then
      stop
      stopped=yes
      return
    fi
    acknowledge_new running "$running"
  done
  take_code
}

# --- between generations ---

# look_again: see whether listed hosts that could not be used can be used now.
look_again() {
  [ "$unusable" ] || return 0
  clock
  [ "$((now - checked_at))" -ge "$LOOK_AGAIN_AFTER" ] || return 0
  listed=''
  while read -r host; do
    has_line "$unusable" "${host%%:*}" && listed=$listed$host$NEWLINE
  done <<HOSTS
$hosts
HOSTS
  [ "$listed" ] && end_ranks "$listed" "$QUICK_LOOK_FOR"
  return 0
}

# wait_for_slots LEAST
wait_for_slots() {
  told=''
  while :; do
    [ "$term" ] && terminate
    if look_at_list; then
      look_again
      [ "$slots" -ge "$1" ] && return
      acknowledge_new waiting ''
      [ "$told" = "$slots" ] || say "waits for $(amount "$1"); list ${list:-none} has $slots"
      told=$slots
    fi
    sleep "$TICK"
  done
}

# explain: forget the recent failures if a host on which they came has left the list.
explain() {
  [ "$recent" -gt 0 ] || return 0
  clock
  [ "$now" -le "$explained_until" ] || return 0
  find_absent "$failed_on" "$hosts"
  [ "$absent" ] || return 0
  last=${absent%"$NEWLINE"}
  last=${last##*"$NEWLINE"}
  say "${last%%:*} has left the list, so the failure does not count"
  recent=0
}

# count_failure: count the end of a generation that nobody asked for.
count_failure() {
  clock
  ran=$((now - started_at))
  if [ "$ran" -ge "$FORGIVEN_AFTER" ]; then
    failures=0 recent=0 starts=0
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

# Set $delay to the seconds until the next try.
find_delay() {
  case $((failures + recent)) in
    0 | 1) delay=1 ;;
    2) delay=2 ;;
    3) delay=5 ;;
    4) delay=10 ;;
    *) delay=30 ;;
  esac
  # Failures that do not count are not tried without a pause either.
  [ "$starts" -lt 8 ] || delay=30
}

# The command failed: return when it is to be tried again.
after_failure() {
  count_failure
  acknowledge waiting ''
  if [ "$starts" -ge "$((MOST_SHORT_STARTS * (retries + 1)))" ]; then
    say "gives up after $starts starts in a row that ended soon"
    exit "$code"
  fi
  find_delay
  clock
  try_at=$((now + delay))
  while :; do
    look_at_list && acknowledge_new waiting ''
    clock
    if [ "$((failures + recent))" -le "$retries" ]; then
      [ "$usable" = "$running" ] || return 0
      [ "$now" -lt "$try_at" ] || return 0
    elif [ "$now" -gt "$explained_until" ]; then
      say "gives up after $((failures + recent)) failures (--retries $retries)"
      exit "$code"
    fi
    sleep "$TICK"
    [ "$term" ] && terminate
  done
}

# is_done: tell whether the program has done its work. Open MPI 5 also ends with 0 when a host is lost.
is_done() {
  [ "$code" = 0 ] || return 1
  [ "$broken$unreached" ] || return 0
  say "start $number ended with 0, but what ran in ${broken:-$unreached} did not"
  code=1
  return 1
}

# end_former: end what a driver before this one has started, which may be listed no more.
end_former() {
  former=''
  while read -r host more; do
    case $host in
      *:*) former=$former$host$NEWLINE ;;
      left) former=$former$more:0$NEWLINE ;;
    esac
  done 2>/dev/null < "$FOLDER/acknowledged"
  # It may be of another job: a volume of the user may lie at this folder.
  rm -f "$FOLDER/acknowledged"
  [ "$former" ] && end_ranks "$former" "$LOOK_FOR"
  end_own
}

# take_options WORDS...: read the options; $options is how many words they are, with the `--`.
take_options() {
  options=$#
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
  options=$((options - $# + 1))
  [ "${max_np:-$min_np}" -ge "$min_np" ] || refuse "--max-np is below --min-np"
  least=${first_np:-$min_np}
  [ "$least" -ge "$min_np" ] || least=$min_np
  [ "${max_np:-$least}" -ge "$least" ] || refuse "--max-np is below --np"
}

main() {
  take_options "$@"
  shift "$options"
  find_implementation "$@"
  check_words "$@"
  suffix=.hydra
  [ "$implementation" = open-mpi ] && suffix=''

  run='' number=0 ended=0 starts=0 running='' unclean= child='' term='' unusable='' unreached='' checked_at=0 acknowledged=none
  failures=0 recent=0 explained_until=0 failed_on='' list='' drain='' hosts='' usable='' slots=0
  known='' stayed='' cannot_read='' looked='' list_seen_at=0 OWN_GROUP=''
  clock
  read -r run 2>/dev/null < /proc/sys/kernel/random/uuid || run=$$-$now
  TICK=0.2
  sleep "$TICK" 2>/dev/null || TICK=1
  command -v setsid >/dev/null 2>&1 && OWN_GROUP=setsid
  trap 'term=yes' TERM INT
  prepare_folder
  set_variables
  end_former
  while :; do
    wait_for_slots "$least"
    least=$min_np
    start "$@"
    watch
    [ "$stopped" ] && continue
    end_ranks "$running" "$LOOK_FOR"
    is_done && break
    after_failure
  done
  say "start $number ended with 0: done"
  acknowledge waiting ''
}

main "$@"
