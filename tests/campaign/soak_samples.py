"""Soak: what a process holds, and whether it holds more at the end than at the beginning."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.processes import MIB, usage

# By how much the median of memory may grow from the first tenth to the last. An allocator that has served more
# kinds of work keeps some more; a leak of 2 KiB an edit would be twice as much after an hour.
SHARE, MARGIN = 0.05, 2 * MIB
SPARE = 2  # open files: connections that are kept for the next request come and go
LEAST = 6  # samples of a tenth, or chance decides in a short run


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A process at one moment: resident memory in bytes, open files, threads, CPU seconds since its start."""

    resident: int
    files: int
    threads: int
    cpu: float


def sample(pid: int) -> Sample:
    """Return what a process holds. Raises ProcessLookupError if it does not exist."""
    used = usage(pid)
    held = Path(f"/proc/{pid}")
    files, threads = (len(list((held / part).iterdir())) for part in ("fd", "task"))
    return Sample(resident=used.resident, files=files, threads=threads, cpu=used.cpu)


def tenths(samples: Sequence[Sample]) -> tuple[Sequence[Sample], Sequence[Sample]]:
    """Return the first and the last tenth of the samples."""
    size = max(LEAST, len(samples) // 10)
    return samples[:size], samples[-size:]


def memory(samples: Sequence[Sample]) -> float:
    """Return the median of the memory in bytes."""
    return statistics.median(one.resident for one in samples)


def files(samples: Sequence[Sample]) -> int:
    """Return the fewest open files: the number of looks under way is chance, and each has a connection."""
    return min(one.files for one in samples)


def threads(samples: Sequence[Sample]) -> int:
    """Return the fewest threads."""
    return min(one.threads for one in samples)


def grown(hour: Sequence[Sample], rest: Sequence[Sample], name: str) -> list[str]:
    """Return in words what the process holds more of than in the first tenth of the hour.

    That is memory in the last tenth, and files and threads at rest, because under load looks are always under way.
    """
    first, last = tenths(hour)
    wrong = []
    if memory(last) > memory(first) * (1 + SHARE) + MARGIN:
        wrong.append(f"the {name}'s memory grew from {memory(first) / MIB:.1f} to {memory(last) / MIB:.1f} MiB")
    if files(rest) > files(first) + SPARE:
        wrong.append(f"the {name}'s open files grew from {files(first)} to {files(rest)}")
    if threads(rest) > threads(first):
        wrong.append(f"the {name}'s threads grew from {threads(first)} to {threads(rest)}")
    return wrong
