"""Logs; also `metrics` for Prometheus, and text that is safe on a `terminal` (`escapes`).

Our logs and those of the libraries go to standard error: JSON lines for machines, or plain lines
for people.
"""

import json
import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal

from mpijob_elastic.telemetry.escapes import printable

LogFormat = Literal["json", "console"]
LogLevel = Literal["debug", "info", "warning", "error"]


def configure_logs(*, log_format: LogFormat, level: LogLevel) -> None:
    """Send everything to standard error in one format. Call once, at the start of a program."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Console() if log_format == "console" else _Json())
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
    logging.getLogger("aiohttp.access").setLevel(logging.WARNING)


class _Json(logging.Formatter):
    """Formats a record as a line with a JSON object.

    If a message gets its arguments by name, they are fields of the object, too.
    """

    def format(self, record: logging.LogRecord) -> str:
        said: dict[str, Any] = dict(record.args) if isinstance(record.args, Mapping) else {}
        said |= {
            "event": record.getMessage(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "timestamp": _time(record),
        }
        if record.exc_info:
            said["exception"] = self.formatException(record.exc_info)
        return json.dumps(said, default=str)


class _Console(logging.Formatter):
    """Formats a record as a line without control characters, because a terminal obeys those."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        return printable(
            f"{_time(record)} [{record.levelname.lower():7}] {record.message} [{record.name}]"
        )

    def formatException(self, ei: Any) -> str:
        return "\n".join(map(printable, super().formatException(ei).splitlines()))


def _time(record: logging.LogRecord) -> str:
    return (
        datetime.fromtimestamp(record.created, UTC)
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )
