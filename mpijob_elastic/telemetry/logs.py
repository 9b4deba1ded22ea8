"""Structured logs: JSON lines for machines, colours for people; the same set-up for our loggers and the libraries'."""

import logging
import sys
from typing import Literal

import structlog

from mpijob_elastic.telemetry.terminal import printable

LogFormat = Literal["json", "console"]
LogLevel = Literal["debug", "info", "warning", "error"]


def configure(*, log_format: LogFormat, level: LogLevel) -> None:
    """Send everything to standard error in one format. Call once, at the start of a program."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        # A hidden line is dropped before it is formatted.
        wrapper_class=structlog.make_filtering_bound_logger(level),
        cache_logger_on_first_use=True,
    )
    people = [_printable, structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                *(people if log_format == "console" else [structlog.processors.JSONRenderer()]),
            ],
        )
    )
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
    logging.getLogger("aiohttp.access").setLevel(logging.WARNING)


def _printable(_logger: object, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Return the event without control characters: JSON has escapes for them, a terminal obeys them."""
    shown = {key: value if isinstance(value, int | float) else printable(str(value)) for key, value in event.items()}
    if trace := event.get("exception"):
        shown["exception"] = "\n".join(map(printable, str(trace).splitlines()))
    return shown
