"""RFC 3339 times of the API as seconds since the epoch."""

from __future__ import annotations

from datetime import datetime


def seconds(text: str | None) -> float | None:
    """The time, or None where there is none or it cannot be read."""
    if not text:
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None
