"""CPU and memory of a process, as the kernel counts them (proc(5)), without its children."""

import os
from dataclasses import dataclass
from pathlib import Path

MIB = 2**20


@dataclass(frozen=True, kw_only=True)
class Usage:
    """CPU time in seconds, in user and kernel mode (to a clock tick, mostly 10 ms); resident memory in bytes."""

    cpu: float
    resident: int
    peak: int


def usage(pid: int) -> Usage:
    """Return the usage of a running process so far. Raises ProcessLookupError if it does not exist."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        status = Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        raise ProcessLookupError(f"no process {pid}") from None
    return parse(stat, status, ticks_a_second=os.sysconf("SC_CLK_TCK"))


def parse(stat: str, status: str, *, ticks_a_second: int) -> Usage:
    """Return the usage from the text of /proc/PID/stat and /proc/PID/status."""
    # The command name, field 2, is in parentheses, and may contain spaces and parentheses.
    fields = stat.rpartition(")")[2].split()
    memory = dict(line.split(":", 1) for line in status.splitlines() if line.startswith("Vm"))
    return Usage(
        cpu=(int(fields[11]) + int(fields[12])) / ticks_a_second,
        resident=_bytes(memory["VmRSS"]),
        peak=_bytes(memory["VmHWM"]),
    )


def _bytes(text: str) -> int:
    number, unit = text.split()
    assert unit == "kB", "proc(5) gives these only in kB"
    return int(number) * 1024
