"""The other end of a supervisor: starts it, follows it until the lab is ready, then lets it go or ends it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Self

from lab.errors import LabError
from lab.layout import Layout
from lab.lock import held
from lab.remains import clear
from lab.state import Request, State, decode_state, encode, read_state

DETACH = b"detach\n"
# A supervisor kills its components and removes its files: some tenths of a second, but more than half a minute where
# real nodes have gigabytes of images and the disk is busy.
END = 180.0  # seconds


class Lifeline:
    """A supervisor started by us, which ends with us unless detached: a context manager."""

    def __init__(self, request: Request) -> None:
        self._request = request
        source = str(Path(__file__).parents[1])
        path = os.pathsep.join(filter(None, (source, os.environ.get("PYTHONPATH"))))
        self._detached = False
        self._process = subprocess.Popen(
            [sys.executable, "-m", "lab.supervisor"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            cwd="/",  # whose removal nobody waits for
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests = self._process.stdin
        self._states = self._process.stdout

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of the supervisor; unless it was detached it ends now, and so does all it started."""
        self._requests.close()
        self._states.close()
        if not self._detached:
            end(self._process, Layout.of(self._request.name), within=END)

    def ready(self, say: Callable[[str], None]) -> State:
        """Wait until the lab is ready and return its state; `say` gets the progress. Raise LabError if it failed."""
        self._requests.write(encode(self._request) + b"\n")
        for line in self._states:
            state = decode_state(line)
            if state.phase == "ready":
                return state
            if state.phase == "failed":
                raise LabError(state.message)
            say(state.message)
        log = Layout.of(self._request.name).log("supervisor")
        raise LabError(f"the supervisor of lab {self._request.name!r} ended unexpectedly; {log} may say why.")

    def detach(self) -> None:
        """Let the lab live on without us."""
        self._requests.write(DETACH)
        self._detached = True

    def wait(self) -> None:
        """Return when the supervisor has ended."""
        self._process.wait()


def end(supervisor: subprocess.Popen[bytes], layout: Layout, *, within: float) -> None:
    """Wait for the end of a supervisor that was let down; where it does not come, kill it and clear up in its place.

    What a failed lab leaves to tell why is left. Raise LabError if something else cannot be removed.
    """
    try:
        supervisor.wait(within)
    except subprocess.TimeoutExpired:
        supervisor.kill()
        supervisor.wait()
        with held(layout) as mine:
            state = read_state(layout)
            if mine and not (state and state.phase == "failed"):
                clear(layout)
                shutil.rmtree(layout.root)
