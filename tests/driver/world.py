"""A launcher that runs elastic.sh, and its workers, as processes of this machine.

A worker is a namespace of processes of its own, so its end takes all its processes along, as the end
of a pod does. In place of kubexec.sh a script enters the namespace. mpirun is a real one.
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
DRIVER = ROOT / "mpijob_elastic" / "model" / "elastic.sh"
# Seconds for what takes one.
PATIENCE = 60.0
SHELLS = {"dash": ["dash"], "busybox": ["busybox", "sh"], "bash": ["bash", "--posix"]}
# Seconds of the driver that tests do not wait for.
SHORT = {
    "EXPLAINED_WITHIN=60": "EXPLAINED_WITHIN=4",
    "LOOK_AGAIN_AFTER=10": "LOOK_AGAIN_AFTER=1",
    "LOST_AFTER=10": "LOST_AFTER=2",
}

# The first process of the launcher waits for its start, and becomes the driver then. Namespaces of
# workers are within that of the launcher, so that it can enter them.
_LAUNCHER = 'while [ ! -e "$1" ]; do sleep 0.05; done; . "$1"'
_KUBEXEC = """\
#!/bin/sh
pod=$1
shift
read -r pid 2>/dev/null < "{folder}/pods/$pod" || {{
  echo "Error from server (NotFound): pods \\"$pod\\" not found" >&2
  exit 1
}}
[ -e "{folder}/hangs-$pod" ] && sleep 1000
[ -e "{folder}/slow" ] && case $* in *_RUN=[0-9a-f]*) sleep 5 ;; esac
mkdir -p "{folder}/temporary/$pod"
TMPDIR={folder}/temporary/$pod exec nsenter -t "$pid" -p -m -u /bin/sh -c "$*"
"""


class Note(NamedTuple):
    """What a rank noted."""

    #: The number of the start.
    start: int
    rank: int
    ranks: int
    #: starts, saved or ends.
    what: str
    step: int


@dataclass(frozen=True, kw_only=True)
class Mpi:
    """An implementation of MPI, and how its mpirun is called."""

    name: str
    folder: Path
    command: tuple[str, ...]


MPIS = {
    "open-mpi": Mpi(
        name="open-mpi",
        folder=ROOT / ".venv" / "open-mpi" / "bin",
        command=("mpirun", "-np", "{np}", "--hostfile", "{hostfile}"),
    ),
    "mpich": Mpi(
        name="mpich",
        folder=ROOT / ".venv" / "mpich" / "bin",
        command=("mpiexec", "-np", "{np}", "-f", "{hostfile}"),
    ),
}


def until(holds: Callable[[], bool], what: str, *, shown: Callable[[], object] = str) -> None:
    """Wait until it holds; fail with what is shown then."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, f"never seen: {what}; last: {shown()}"
        time.sleep(0.02)


def children_of(pid: int) -> list[int]:
    """Return the children of a process, which has some soon."""
    path = Path(f"/proc/{pid}/task/{pid}/children")
    until(lambda: path.read_text().strip() != "", f"{pid} has a child")
    return [int(child) for child in path.read_text().split()]


def numbers_of(pid: int) -> list[int]:
    """Return the numbers of a process in each namespace, from that of this machine inwards."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith("NSpid:")]
    return [int(number) for number in line.split()[1:]]


def namespace_of(pid: int) -> str:
    """Return the namespace of processes of a process; "" if the process has ended."""
    try:
        return str(Path(f"/proc/{pid}/ns/pid").readlink())
    except OSError:
        return ""


@dataclass(kw_only=True)
class World:
    """The files of a job, its workers and its driver."""

    folder: Path
    shell: list[str]
    mpi: Mpi
    #: The number of the last list.
    number: int = 0
    workers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    #: The first process of each worker, as this machine numbers it.
    pids: dict[str, int] = field(default_factory=dict)
    launcher: subprocess.Popen[bytes] = field(init=False)
    #: The first process of the launcher, as this machine numbers it.
    first: int = field(init=False)

    def __post_init__(self) -> None:
        """Make the files."""
        (self.folder / "pods").mkdir()
        (self.folder / "temporary").mkdir()
        kubexec = self.folder / "kubexec.sh"
        kubexec.write_text(_KUBEXEC.format(folder=self.folder))
        kubexec.chmod(0o755)
        self.publish()
        kinds = ["--pid", "--fork", "--mount-proc", "--kill-child"]
        begin = f"{self.folder}/begin"
        with (self.folder / "log").open("wb") as log:
            self.launcher = subprocess.Popen(
                ["unshare", *kinds, "sh", "-c", _LAUNCHER, "sh", begin],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        (self.first,) = children_of(self.launcher.pid)
        until(lambda: len(numbers_of(self.first)) == 2, "the launcher runs")

    def add(self, *names: str) -> None:
        """Start workers."""
        for name in names:
            # A shell that sets the name of the host and waits.
            inner = f"hostname {name}; exec sleep 1000"
            kinds = ["--pid", "--uts", "--fork", "--mount-proc", "--kill-child"]
            worker = subprocess.Popen(
                ["nsenter", "-t", f"{self.first}", "-p", "-m", "unshare", *kinds, "sh", "-c", inner]
            )
            self.workers[name] = worker
            # nsenter starts unshare, which starts the worker.
            (unshare,) = children_of(worker.pid)
            (pod,) = children_of(unshare)
            until(lambda pid=pod: len(numbers_of(pid)) == 3, f"{name} runs")  # type: ignore[misc]
            (self.folder / "pods" / name).write_text(f"{numbers_of(pod)[1]}\n")
            self.pids[name] = pod

    def remove(self, name: str) -> None:
        """End a worker with all its processes."""
        (self.folder / "pods" / name).unlink()
        os.kill(self.pids.pop(name), signal.SIGKILL)
        self.workers.pop(name).wait()

    def hide(self, name: str) -> None:
        """Let no command reach a worker."""
        (self.folder / "pods" / name).rename(self.folder / f"hidden-{name}")

    def hang(self, name: str) -> None:
        """Let each command in a worker hang."""
        (self.folder / f"hangs-{name}").touch()

    def publish_unnumbered(self, *names: str) -> None:
        """Change the list to one without a number and without pods, as earlier versions wrote it."""
        self.number = 0
        new = self.folder / "list.new"
        new.write_text("#!/bin/sh\n" + "".join(f"echo {name}:1\n" for name in names))
        new.rename(self.folder / "list")

    def show(self, name: str) -> None:
        """Let commands reach it again."""
        (self.folder / f"hidden-{name}").rename(self.folder / "pods" / name)

    def run_in(self, name: str, script: str) -> subprocess.Popen[bytes]:
        """Start a command in a worker."""
        words = ["nsenter", "-t", f"{self.pids[name]}", "-p", "-m", "-u", "/bin/sh", "-c", script]
        return subprocess.Popen(words)

    def publish(
        self, *names: str, slots: int = 1, generations: Mapping[str, str] | None = None
    ) -> None:
        """Change the list of hosts; generations: of the pods that are not the first of their names."""
        self.number += 1
        later = generations or {}
        lines = [f"echo {name}:{slots} # {later.get(name, 'first')}\n" for name in names]
        new = self.folder / "list.new"
        new.write_text(f"#!/bin/sh\n# list {self.number} drain 60\n" + "".join(lines))
        new.rename(self.folder / "list")

    def start(
        self,
        *options: str,
        hears: str = "saves",
        steps: int = 10**6,
        code: int = 0,
        command: Sequence[str] = (),
    ) -> None:
        """Start the driver with ranks; hears, steps, code: see rank.sh. command: runs in their place."""
        driver = self.folder / "elastic.sh"
        text = DRIVER.read_text()
        for usual, short in SHORT.items():
            assert usual in text
            text = text.replace(usual, short)
        driver.write_text(text)
        root_may = {
            f"{prefix}_ALLOW_RUN_AS_ROOT{suffix}": "1"
            for prefix in ("OMPI", "PRTE")
            for suffix in ("", "_CONFIRM")
        }
        ranks = {"NOTES": f"{self.folder}/notes", "HEARS": hears, "STEPS": f"{steps}"}
        ours = {
            "MPIJOB_ELASTIC_LIST": f"{self.folder}/list",
            "MPIJOB_ELASTIC_KUBEXEC": f"{self.folder}/kubexec.sh",
            "MPIJOB_ELASTIC_FOLDER": f"{self.folder}/run",
            "HYDRA_IFACE": "lo",
            "TMPDIR": f"{self.folder}/temporary",
            "CODE": f"{code}",
        }
        words = [*self.shell, f"{driver}", *options, "--", *(command or self.mpirun)]
        variables = [f"{name}={value}" for name, value in {**root_may, **ranks, **ours}.items()]
        new = self.folder / "begin.new"
        new.write_text(shlex.join(["exec", "env", *variables, *words]) + "\n")
        new.rename(self.folder / "begin")

    @property
    def mpirun(self) -> list[str]:
        """The command that starts the ranks."""
        program, *words = self.mpi.command
        return [f"{self.mpi.folder}/{program}", *words, "sh", f"{HERE}/rank.sh"]

    @property
    def log(self) -> str:
        """What the driver and the ranks printed."""
        return (self.folder / "log").read_text(errors="replace")

    @property
    def said(self) -> list[str]:
        """What the driver said, without times."""
        return [
            line.partition(": ")[2] for line in self.log.splitlines() if " elastic.sh: " in line
        ]

    @property
    def notes(self) -> list[Note]:
        """What the ranks noted."""
        path = self.folder / "notes"
        lines = path.read_text().splitlines() if path.exists() else []
        words = [line.split() for line in lines]
        return [Note(int(a), int(b), int(c), what, int(d)) for a, b, c, what, d in words]

    def of(self, start: int, what: str) -> list[Note]:
        """Return what the ranks of a start noted of a kind."""
        return [note for note in self.notes if (note.start, note.what) == (start, what)]

    @property
    def acknowledged(self) -> str:
        """The acknowledgement."""
        path = self.folder / "run" / "acknowledged"
        return path.read_text() if path.exists() else ""

    def runs_on(self, *names: str, start: int = 0) -> None:
        """Wait until ranks run on exactly these hosts of the present list."""
        expected = [f"list {self.number}", "state running", *names]

        def found() -> list[str]:
            lines = self.acknowledged.splitlines()
            return [line.partition(":")[0] for line in lines if not line.startswith("left ")]

        until(lambda: found() == expected, f"runs on {names}", shown=lambda: self.log)
        if start:
            enough = len(names)
            until(
                lambda: len(self.of(start, "starts")) == enough,
                f"{enough} ranks of start {start}",
                shown=lambda: self.log,
            )

    def tells_of(self, start: int) -> bool:
        """Tell whether the driver has said anything of a start."""
        return any(line.startswith(f"start {start}") for line in self.said)

    def waits(self) -> None:
        """Wait until it is acknowledged that no rank runs on the present list."""
        head = f"list {self.number}\nstate waiting\n"
        until(lambda: self.acknowledged.startswith(head), "it waits", shown=lambda: self.log)

    def says(self, text: str) -> None:
        """Wait until the driver has said that."""
        until(lambda: any(text in line for line in self.said), text, shown=lambda: self.log)

    def terminate(self) -> None:
        """Send SIGTERM to the driver, which is the first process of its namespace."""
        os.kill(self.first, signal.SIGTERM)

    def code(self) -> int:
        """Return the exit code of the driver, which ends."""
        try:
            return self.launcher.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            pytest.fail(f"the driver does not end: {self.log}")

    def ranks(self) -> list[int]:
        """Return the processes of the ranks that run, as numbers of this machine.

        A command that a rank starts looks like the rank until its program is loaded.
        """
        parents = {}
        for process in Path("/proc").glob("[0-9]*"):
            try:
                words = (process / "cmdline").read_bytes().split(b"\0")
                environment = (process / "environ").read_bytes()
                status = (process / "stat").read_text()
            except OSError:
                continue
            is_rank = words[:2] == [b"sh", f"{HERE}/rank.sh".encode()]
            if is_rank and f"NOTES={self.folder}/notes\0".encode() in environment:
                parents[int(process.name)] = int(status.rpartition(") ")[2].split()[1])
        return [rank for rank, parent in parents.items() if parent not in parents]

    def workers_of_ranks(self) -> dict[int, str]:
        """Return the worker in whose namespace each rank runs."""
        spaces = {namespace_of(pid): name for name, pid in self.pids.items()}
        found = {rank: spaces.get(namespace_of(rank), "") for rank in self.ranks()}
        return {rank: worker for rank, worker in found.items() if worker}

    def close(self) -> None:
        """End everything."""
        # With the first process of a namespace all others end.
        self.launcher.kill()
        self.launcher.wait()
        for worker in self.workers.values():
            worker.wait()


def why_not() -> str:
    """Return why no world can be made here; "" if it can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "the workers are namespaces of processes: Linux and root are needed"
    if shutil.which("unshare") is None or shutil.which("nsenter") is None:
        return "unshare and nsenter are not installed: apt-get install util-linux"
    return ""


@contextmanager
def world_of(folder: Path, *, shell_name: str, mpi: str) -> Iterator[World]:
    """Make a world with that shell and that MPI, or skip the test."""
    if why := why_not():
        pytest.skip(why)
    if shutil.which(shell_name) is None:
        pytest.skip(f"{shell_name} is not installed")
    if not MPIS[mpi].folder.is_dir():
        pytest.skip(f"make .venv/{mpi}/made installs the {mpi} that this needs")
    world = World(folder=folder, shell=SHELLS[shell_name], mpi=MPIS[mpi])
    try:
        yield world
    finally:
        world.close()
