"""Programs of other projects as processes of this machine."""

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from lab.processes import end, spawn

GRACE = 30.0  # seconds to end after SIGTERM
LOG_LINES = 15
# As docs/gangs.md says: by default (KEP 5142) pods of a gang that does not fit are tried again at
# once. Each change of a pod's condition costs mpi-operator one of the ten events a second that it
# takes up.
BACKS_OFF = "--feature-gates=SchedulerPopFromBackoffQ=false"


@contextmanager
def running(
    command: Sequence[str], log: Path, *, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program as long as the block lasts. An error in the block shows the end of its log.

    `environment` adds to ours.
    """
    process = spawn(command, log=log, environment={**os.environ, **(environment or {})})
    try:
        yield process
        assert process.poll() is None, f"{log.stem} has ended by itself: {process.returncode}"
    except BaseException as error:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-LOG_LINES:])
        error.add_note(f"The end of {log}:\n{tail}")
        raise
    finally:
        end(process, within=GRACE)
