"""The exit codes, which mean the same for all commands, so that scripts can rely on them."""

from enum import IntEnum

from mpijob_elastic.install import NotInTime
from mpijob_elastic.kube import errors


class Exit(IntEnum):
    """How a command ended; HELP explains the codes to users."""

    DONE = 0
    REFUSED = 1
    USAGE = 2
    OTHERWISE = 3
    NOT_KNOWN = 4
    INTERRUPTED = 130


# What a proxy says while the API server is away, and the API server while it is busy.
_NO_ANSWER = frozenset({502, 503, 504})

HELP = (
    "Exit codes of all commands: 0 done; 1 refused or wrong; 2 wrong usage; 3 finished "
    "differently or partly; 4 unknown, or still going at the timeout; 130 Ctrl-C."
)


def of(error: Exception) -> Exit:
    """Return the exit code for an error.

    Without an answer from the API server it is unknown what was done, so the code is NOT_KNOWN.
    """
    if isinstance(error, NotInTime | errors.Unreachable):
        return Exit.NOT_KNOWN
    if isinstance(error, errors.ApiError) and error.status in _NO_ANSWER:
        return Exit.NOT_KNOWN
    return Exit.REFUSED
