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
    """Return the usage of a running process so far.

    Raises ProcessLookupError if it does not exist.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        status = Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        raise ProcessLookupError(f"no process {pid}") from None
    # The command name, field 2, is in parentheses, and may contain spaces and parentheses.
    fields = stat.rpartition(")")[2].split()
    # As `VmRSS:  1234 kB`.
    kibibytes = {
        line.split(":")[0]: int(line.split()[1])
        for line in status.splitlines()
        if line.startswith("Vm")
    }
    return Usage(
        cpu=(int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"),
        resident=kibibytes["VmRSS"] * 1024,
        peak=kibibytes["VmHWM"] * 1024,
    )
