"""Processes that cannot outlive the lab, and identities that a recycled pid cannot fake.

A child asks the kernel for SIGKILL when its parent ends (PR_SET_PDEATHSIG, prctl(2)), so `kill -9` of the supervisor
leaves none behind. The kernel means the parent *thread*: start children from the main thread only.
"""

import contextlib
import ctypes
import os
import select
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

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
        """Tell whether this very process still runs (a zombie does not)."""
        return _start_time(self.pid) == self.started

    def signal(self, number: signal.Signals, *, wait: float) -> bool:
        """Send a signal and wait up to `wait` seconds for the end; tell whether the process has ended.

        The pidfd is opened before the check, so the signal cannot reach a process that got the same pid later.
        """
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return True
        try:
            if not self.alive():
                return True
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(descriptor, number)
            return bool(select.select([descriptor], [], [], wait)[0])
        finally:
            os.close(descriptor)


def _start_time(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command name, field 2, is in parentheses and may hold spaces and parentheses itself.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def tied_to_this_process() -> Callable[[], None]:
    """Return a function for a new child to run before exec: it dies with us, and at once if we are gone already."""
    parent = os.getpid()

    def tie() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    return tie


def adopt_orphans() -> None:
    """Become the parent of grandchildren whose parent ends, so that they can be waited for."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1)


def wait_for_all() -> None:
    """Wait until this process has no children left, adopted ones included."""
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()


def spawn(command: Sequence[str], *, log: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
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
