"""The base of every struct that is read from the API, and the API's times."""

from __future__ import annotations

from datetime import datetime

import msgspec


class Wire(msgspec.Struct, frozen=True, rename="camel", kw_only=True, gc=False):
    """An immutable part of an object; camelCase on the wire, unknown fields skipped, never in a reference cycle."""


def seconds(text: str | None) -> float | None:
    """Return an RFC 3339 time as seconds since the epoch; None if there is none or it is unreadable."""
    if not text:
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None
