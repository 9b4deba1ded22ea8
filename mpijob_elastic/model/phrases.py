"""Lists, counts and durations as people read and write them.

A duration is written as Go has it (time.ParseDuration, without signs): `90s`, `1m30s`, `500ms`.
"""

import re
from collections.abc import Iterable

# A list shows so many names, and counts the others.
MOST_NAMED = 8


def listed(items: Iterable[str]) -> str:
    """Return `a, b and 3 more`."""
    items = list(items)
    shown = ", ".join(items[:MOST_NAMED])
    return shown if len(items) <= MOST_NAMED else f"{shown} and {len(items) - MOST_NAMED} more"


def workers(count: int) -> str:
    """Return `1 worker`, `2 workers`."""
    return f"{count} worker{'' if count == 1 else 's'}"


_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)")
_WHOLE = re.compile(rf"(?:{_PART.pattern})+")
_LONGEST_TEXT = 32


def parse_duration(text: str) -> float | None:
    """Return seconds; None if `text` is no duration.

    A bare `0` is a duration, other bare numbers are not.
    """
    if text == "0":
        return 0.0
    if len(text) > _LONGEST_TEXT or not text.isascii() or not _WHOLE.fullmatch(text):
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))


def duration(seconds: float) -> str:
    """Return a short text for people: `0s`, `4.2s`, `1m30s`, `2h5m`."""
    if round(seconds, 1) < 60:
        return f"{seconds:.1f}".rstrip("0").rstrip(".") + "s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}m{rest}s" if rest else f"{minutes}m"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes}m" if minutes else f"{hours}h"


def spent(seconds: float, *, in_gpus: bool) -> str:
    """Return a time of GPUs, or of workers without any, for people: `3 GPU-minutes`."""
    of = "GPU" if in_gpus else "worker"
    for unit, size in (("hour", 3600.0), ("minute", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {of}-{unit}s"
    count = round(seconds)
    return f"{count} {of}-second{'' if count == 1 else 's'}"
