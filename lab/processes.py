"""Processes that cannot outlive the lab, and identities that a recycled pid cannot fake.

A child asks the kernel for SIGKILL when its parent ends (PR_SET_PDEATHSIG, prctl(2)), so `kill -9`
of the supervisor leaves none behind. The kernel means the parent *thread*: start children from the
main thread only.
"""

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.errors import LabError

LOG_LINES = 15  # of the end of a log that an error shows
START_POLL = 0.02  # seconds
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, kw_only=True)
class Identity:
    """A process: its pid, and when it was started (clock ticks since boot, field 22 of /proc/PID/stat)."""

    pid: int
    started: int

    @classmethod
    def of(cls, pid: int) -> "Identity":
        """Return the identity of a running process; raise ProcessLookupError if there is none."""
        started = _start_time(pid)
        if started is None:
            raise ProcessLookupError(f"no process {pid}")
        return cls(pid=pid, started=started)

    def alive(self) -> bool:
        """Tell whether this very process still runs."""
        return not self.ends_within(0)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, unless the process has ended; no other process can get it."""
        with self._pidfd() as pidfd:
            if pidfd is not None:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(pidfd, number)

    def ends_within(self, seconds: float) -> bool:
        """Wait for the end of the process, and tell whether it came.

        A pidfd tells of the end of the last thread. Before that a killed process can look like a
        zombie in /proc while its threads hold its ports.
        """
        with self._pidfd() as pidfd:
            return pidfd is None or bool(select.select([pidfd], [], [], seconds)[0])

    @contextlib.contextmanager
    def _pidfd(self) -> Iterator[int | None]:
        """Yield a descriptor of this very process, or None if it has ended.

        It is opened before the check, so that it cannot be of a process that got the same pid
        later.
        """
        try:
            pidfd = os.pidfd_open(self.pid)
        except ProcessLookupError:
            yield None
            return
        try:
            yield pidfd if _start_time(self.pid) == self.started else None
        finally:
            os.close(pidfd)


def _start_time(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command name, field 2, is in parentheses and may hold spaces and parentheses itself.
    return int(stat.rpartition(")")[2].split()[19])


def tied_to_this_process() -> Callable[[], None]:
    """Return a function for a new child to run before exec: it dies with us, and at once if we are gone already."""
    parent = os.getpid()

    def tie() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    return tie


@contextlib.contextmanager
def orphans_awaited() -> Iterator[None]:
    """Wait at the end of the block for every child of this process, and for those whose parent has ended too."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1)
    try:
        yield
    finally:
        with contextlib.suppress(ChildProcessError):
            while True:
                os.wait()


def spawn(
    command: Sequence[str], *, log: Path, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Start a child tied to this process, in a session of its own (a Ctrl-C is not for it); `log` gets its output."""
    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            start_new_session=True,
            preexec_fn=tied_to_this_process(),  # noqa: PLW1509 - the caller has no threads
        )


def end(process: subprocess.Popen[bytes], *, within: float) -> int:
    """End a child as a kubelet does, and return its exit code; negative where it had to be killed."""
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(within)
    process.kill()
    return process.wait()


def run(*command: str | Path, stdin: str = "") -> str:
    """Run a program to its end, and return its output; raise LabError with its complaint."""
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(
            f"`{' '.join(map(str, command))}` ended with {done.returncode}: {done.stderr.strip()}"
        )
    return done.stdout


def new_log(folder: Path, name: str) -> Path:
    """Create an empty log of its own in a folder."""
    descriptor, path = tempfile.mkstemp(prefix=f"{name}-", suffix=".log", dir=folder)
    os.close(descriptor)
    return Path(path)


def await_start(
    process: subprocess.Popen[bytes],
    ready: Callable[[], bool],
    *,
    name: str,
    log: Path,
    within: float,
) -> None:
    """Return once it is ready; raise LabError with the end of its log if it ends or takes longer."""
    deadline = time.monotonic() + within
    while not ready():
        code = process.poll()
        if code is not None or time.monotonic() > deadline:
            what = (
                f"ended with exit code {code}"
                if code is not None
                else f"is not ready after {within:.0f} s"
            )
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-LOG_LINES:])
            raise LabError(f"the {name} {what}. The end of {log}:\n{tail}")
        time.sleep(START_POLL)
