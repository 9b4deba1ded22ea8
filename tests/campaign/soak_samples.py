"""Soak: what a process holds, every ten seconds, and whether it holds more at the end than at the beginning."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.processes import MIB, usage

# By how much the median of memory may grow from the first tenth to the last. An allocator that has served more
# kinds of work keeps some more; a leak of 2 KiB an edit would be twice as much after an hour.
SHARE, MARGIN = 0.05, 2 * MIB
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


def tenths(samples: Sequence[Sample]) -> tuple[Sample, Sample]:
    """Return the first and the last tenth of the samples, each as its median memory and its fewest files and threads.

    How many looks by exec are under way is chance, and each has a connection; what leaks is always there.
    """
    size = max(LEAST, len(samples) // 10)
    return _typical(samples[:size]), _typical(samples[-size:])


def grown(samples: Sequence[Sample], name: str) -> list[str]:
    """Return in words what the process holds more of in the last tenth than in the first."""
    first, last = tenths(samples)
    wrong = []
    if last.resident > first.resident * (1 + SHARE) + MARGIN:
        wrong.append(f"the {name}'s memory grew from {first.resident / MIB:.1f} to {last.resident / MIB:.1f} MiB")
    if last.files > first.files:
        wrong.append(f"the {name}'s open files grew from {first.files} to {last.files}")
    if last.threads > first.threads:
        wrong.append(f"the {name}'s threads grew from {first.threads} to {last.threads}")
    return wrong


def _typical(samples: Sequence[Sample]) -> Sample:
    return Sample(
        resident=int(statistics.median(one.resident for one in samples)),
        files=min(one.files for one in samples),
        threads=min(one.threads for one in samples),
        cpu=samples[-1].cpu,
    )
