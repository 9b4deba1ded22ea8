"""Start, inspect and end a lab, which its supervisor runs (lab.supervisor)."""

import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from lab.build import Say, ensure_programs
from lab.errors import LabError
from lab.layout import Layout
from lab.lock import clear, held, is_held
from lab.node import requirements
from lab.options import Options
from lab.state import DETACH, Request, State, decode_state, encode, read_state
from lab.versions import KubernetesVersion

# A supervisor kills its components and removes its files: some tenths of a second, but more than
# half a minute where real nodes have gigabytes of images and the disk is busy.
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
            try:
                self._process.wait(END)
            except subprocess.TimeoutExpired:
                down(self._request.name)

    def ready(self, say: Say) -> State:
        """Wait until the lab is ready and return its state; `say` gets the progress.

        Raise LabError if it failed.
        """
        self._requests.write(encode(self._request) + b"\n")
        for line in self._states:
            state = decode_state(line)
            if state.phase == "ready":
                return state
            if state.phase == "failed":
                raise LabError(state.message)
            say(state.message)
        log = Layout.of(self._request.name).log("supervisor")
        raise LabError(
            f"the supervisor of lab {self._request.name!r} ended unexpectedly; {log} may say why."
        )

    def detach(self) -> None:
        """Let the lab live on without us."""
        self._requests.write(DETACH)
        self._detached = True

    def wait(self) -> None:
        """Return when the supervisor has ended."""
        self._process.wait()


def request(name: str, options: Options, say: Say) -> Request:
    """Return the request for a supervisor, once all programs are there. Raise LabError."""
    if options.real_nodes:
        requirements.check()
    version = KubernetesVersion.parse(options.kubernetes_version)
    programs = ensure_programs(version, say, real_node=options.real_nodes > 0)
    return Request(name=name, options=options, programs=programs)


def stay(name: str, lifeline: Lifeline) -> None:
    """Wait until a lab is ended from elsewhere; raise LabError if it failed."""
    lifeline.wait()
    state = read_state(Layout.of(name))
    if state is not None and state.phase == "failed":
        raise LabError(state.message)


@dataclass(frozen=True, kw_only=True)
class Status:
    """Status of a lab: `up`, and the last State that its supervisor wrote.

    They differ if the supervisor was killed.
    """

    up: bool
    state: State | None

    @property
    def summary(self) -> str:
        """Status in one or two words."""
        if self.state is None:
            return "starting" if self.up else "down"
        if self.up or self.state.phase == "failed":
            return self.state.phase
        return "killed"


def status(name: str) -> Status:
    """Look at a lab."""
    layout = Layout.of(name)
    return Status(up=is_held(layout), state=read_state(layout))


def down(name: str) -> bool:
    """End a lab, or clear up after one that was killed; tell whether there was any.

    Raise LabError if it cannot be.
    """
    layout = Layout.of(name)
    there = layout.root.exists()
    state = read_state(layout)
    if is_held(layout):
        _end(name, state)
    with held(layout) as mine:
        if not mine:
            raise LabError(f"lab {name!r} is being started by somebody else just now; try again.")
        clear(layout)
        shutil.rmtree(layout.root)
    return there


def _end(name: str, state: State | None) -> None:
    if state is None:
        raise LabError(f"lab {name!r} is only just starting; try again in a second.")
    for number in (signal.SIGTERM, signal.SIGKILL):
        state.supervisor.signal(number)
        if state.supervisor.ends_within(END):
            return
    raise LabError(
        f"the supervisor of lab {name!r}, process {state.supervisor.pid}, does not end, not even when killed."
    )
