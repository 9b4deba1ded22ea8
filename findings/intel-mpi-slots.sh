#!/bin/sh
# A hostfile of hydra has lines `HOST:N`, and N is how many ranks a host gets. One would guess that
# Intel MPI, whose mpiexec.hydra comes from MPICH, counts so for each of its options for such a file.
# Seen: with -f, -hostfile and the variable I_MPI_HYDRA_HOST_FILE, N does not count, nor does a host that
# is named twice: hosts are filled by their CPUs, so the last hosts may stay empty. Only -machinefile
# counts. MPICH 5.0.2 counts for all three options.
#
# impi-rt 2021.18.0 and mpich 5.0.2 from PyPI, for amd64; a host is told by what the agent was given.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM
cd "$tmp"
for package in mpich==5.0.2 impi-rt==2021.18.0; do
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
printf 'h0:1\nh1:2\nh2:1\n' > counted
printf 'h0\nh1\nh1\nh2\n' > repeated
export HYDRA_LAUNCHER=rsh HYDRA_LAUNCHER_EXEC="$tmp/agent" HYDRA_IFACE=lo
export I_MPI_HYDRA_BOOTSTRAP=rsh I_MPI_HYDRA_BOOTSTRAP_EXEC="$tmp/agent"
export I_MPI_ROOT="$tmp/impi-rt" LD_LIBRARY_PATH="$tmp/impi-rt/lib"

say() {
	what=$1
	shift
	hosts=$(timeout 20 "$@" -np 4 sh -c 'echo $HOST' | sort | tr '\n' ' ')
	case $hosts in
	'h0 h1 h1 h2 ') echo "$what: counts" ;;
	*) echo "$what: does not count" ;;
	esac
}
for option in -f -hostfile -machinefile; do
	for file in counted repeated; do
		say "MPICH $option $file" mpich/bin/mpiexec "$option" "$file"
		say "Intel MPI $option $file" impi-rt/bin/mpiexec.hydra "$option" "$file"
	done
done > found
I_MPI_HYDRA_HOST_FILE="$tmp/counted" say 'Intel MPI, variable' impi-rt/bin/mpiexec.hydra >> found
cat found
diff - found <<'EXPECTED'
MPICH -f counted: counts
Intel MPI -f counted: does not count
MPICH -f repeated: counts
Intel MPI -f repeated: does not count
MPICH -hostfile counted: counts
Intel MPI -hostfile counted: does not count
MPICH -hostfile repeated: counts
Intel MPI -hostfile repeated: does not count
MPICH -machinefile counted: counts
Intel MPI -machinefile counted: counts
MPICH -machinefile repeated: counts
Intel MPI -machinefile repeated: counts
Intel MPI, variable: does not count
EXPECTED
