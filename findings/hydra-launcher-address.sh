#!/bin/sh
# hydra starts a proxy on each host, and tells it where the launcher waits for it. One would guess that
# it tells an address, or that the variable HYDRA_HOST or -localhost is needed for a name.
# Seen: MPICH and Intel MPI tell the name of the launcher's machine, which pods without a Service cannot
# resolve. If they are told of an interface (HYDRA_IFACE, I_MPI_HYDRA_IFACE) they tell its IPv4 address;
# if it is not there, mpiexec ends at once, even where all ranks are local.
#
# impi-rt 2021.18.0 and mpich 5.0.2 from PyPI, for amd64.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM
cd "$tmp"
for package in mpich==5.0.2 impi-rt==2021.18.0; do
	python3 -m venv "${package%%=*}"
	"${package%%=*}/bin/pip" install -q --disable-pip-version-check "$package"
done
cat > agent <<SH
#!/bin/sh
echo "\$*" > "$tmp/told"
exit 1
SH
chmod +x agent
export HYDRA_LAUNCHER=rsh HYDRA_LAUNCHER_EXEC="$tmp/agent"
export I_MPI_HYDRA_BOOTSTRAP=rsh I_MPI_HYDRA_BOOTSTRAP_EXEC="$tmp/agent"
export I_MPI_ROOT="$tmp/impi-rt" LD_LIBRARY_PATH="$tmp/impi-rt/lib"
echo far > hosts

# say WHAT OPTION MPIEXEC...: OPTION comes before the address of the launcher.
say() {
	what=$1 option=$2
	shift 2
	rm -f told
	code=0
	timeout 20 "$@" -f hosts -n 1 true > /dev/null 2>&1 || code=$?
	if [ ! -e told ]; then
		echo "$what: starts no proxy, and ends with a failure: $([ "$code" = 0 ] && echo no || echo yes)"
		return
	fi
	address=$(sed "s/.*$option \([^ ]*\).*/\1/" told)
	case ${address%%:*} in
	127.0.0.1) echo "$what: tells an address" ;;
	"$(hostname)"*) echo "$what: tells the name" ;;
	*) echo "$what: tells ${address%%:*}" ;;
	esac
}
{
	say 'MPICH' --control-port mpich/bin/mpiexec
	say 'Intel MPI' --upstream-host impi-rt/bin/mpiexec.hydra
	HYDRA_IFACE=lo say 'MPICH, an interface' --control-port mpich/bin/mpiexec
	I_MPI_HYDRA_IFACE=lo say 'Intel MPI, an interface' --upstream-host impi-rt/bin/mpiexec.hydra
	HYDRA_IFACE=none0 say 'MPICH, no such interface' --control-port mpich/bin/mpiexec
	I_MPI_HYDRA_IFACE=none0 say 'Intel MPI, no such interface' --upstream-host impi-rt/bin/mpiexec.hydra
} > found
cat found
diff - found <<'EXPECTED'
MPICH: tells the name
Intel MPI: tells the name
MPICH, an interface: tells an address
Intel MPI, an interface: tells an address
MPICH, no such interface: starts no proxy, and ends with a failure: yes
Intel MPI, no such interface: starts no proxy, and ends with a failure: yes
EXPECTED
