"""Ports that a process listens on: an error names the option that chooses another port."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

# Why a port cannot be had, so that another port helps.
_WHY = {errno.EADDRINUSE: "is taken", errno.EACCES: "may not be used by this user"}


@contextmanager
def chosen_by(option: str, port: int) -> Iterator[None]:
    """Listen on a port inside the context. Raises OSError that names the option of the port.

    Errors that another port does not mend pass as they are.
    """
    try:
        yield
    except OSError as error:
        why = _WHY.get(error.errno or 0)
        if why is None:
            raise
        raise OSError(
            f"port {port} {why}; choose another with {option} (0: any free port)"
        ) from error
