"""Times as the operator writes them."""

import time
from datetime import UTC, datetime


def timestamp() -> str:
    """Return the time now in RFC 3339, in whole seconds as metav1.Time has them."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def nanoseconds() -> int:
    """Return the time now since 1970."""
    return time.time_ns()
