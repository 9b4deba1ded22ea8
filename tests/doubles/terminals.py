"""Processes on a terminal, as `kubectl exec -it` starts a shell."""

import fcntl
import os
import pty
import subprocess
import termios
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def on_terminal(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    """Give a process with a controlling terminal of its own."""
    ours, theirs = pty.openpty()

    def control() -> None:
        fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

    with subprocess.Popen(
        command,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=control,  # noqa: PLW1509 - the caller has no threads
    ) as process:
        os.close(theirs)
        try:
            yield process
        finally:
            process.kill()
            process.wait()
            os.close(ours)
