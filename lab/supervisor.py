"""The process that owns a lab: it starts the components, watches them, and ends them all when it ends.

Life of a lab
- `up` starts `python -m lab.supervisor` in a session of its own and writes a Request to its
  standard input. The supervisor writes States, one line each, to its standard output until the lab
  is ready or has failed.
- That standard input is a lifeline: if it closes before the line `detach`, the program that wanted
  the lab is gone, and so goes the lab.
- SIGTERM, SIGINT and SIGHUP end it. If it is killed, the kernel ends the components (see
  lab.processes).
- If a component ends by itself, the lab is of no use: it ends, and the state and the logs stay to
  tell why.
- While it is up, the supervisor does what it is asked to do with real nodes (see
  lab.node.commands).
"""

import contextlib
import os
import select
import shutil
import signal
import sys
import time
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec

from lab.children import Children
from lab.errors import LabError
from lab.layout import Layout
from lab.lock import clear, held
from lab.node import cgroups, commands
from lab.processes import Identity, orphans_awaited
from lab.startup import Started, Startup
from lab.state import DETACH, Request, State, decode_request, encode, write_state

STDIN, STDOUT, STDERR = 0, 1, 2
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Stopped(BaseException):
    """The lab shall end."""


class HeldLifeline:
    """The supervisor's end of its lifeline: a process that wants the lab holds the other end."""

    def __init__(self, descriptor: int) -> None:
        self._descriptors = [descriptor]

    def descriptors(self) -> list[int]:
        """Return what becomes readable when there is something to check."""
        return self._descriptors

    def check(self) -> None:
        """Raise Stopped if the lab was let down."""
        for descriptor in select.select(self._descriptors, [], [], 0)[0]:
            if os.read(descriptor, len(DETACH)) != DETACH:
                raise Stopped
            self._descriptors = []


class Supervisor:
    """A lab, from its request to its end. The process that creates it holds the lab's lock."""

    def __init__(self, layout: Layout, request: Request, state: State) -> None:
        self._layout = layout
        self._request = request
        self._state = state

    def run(self) -> None:
        """Bring the lab up and keep it until it is to end; leave the state and the logs of a failed one only."""
        try:
            self._begin()
            # podexec is no child of ours but of `unshare`, and keeps its port until it has ended
            # too. kwok would read a configuration from a real home directory.
            environment = {
                "PATH": os.environ.get("PATH", os.defpath),
                "HOME": str(self._layout.root),
                "GOGC": "400",  # a quarter of Go's collections: memory is cheaper here than time
            }
            with (
                orphans_awaited(),
                self._cgroups(),
                Children(self._layout, environment=environment) as children,
            ):
                self._live(children)
        except LabError as error:
            for directory in (self._layout.etcd, self._layout.node):
                shutil.rmtree(directory, ignore_errors=True)
            self._report(
                msgspec.structs.replace(
                    self._state, phase="failed", message=str(error), components={}
                )
            )
        except Stopped:
            shutil.rmtree(self._layout.root)

    def _cgroups(self) -> AbstractContextManager[None]:
        if self._request.options.real_nodes:
            return cgroups.removed_afterwards(cgroups.name(self._layout))
        return contextlib.nullcontext()

    def _begin(self) -> None:
        clear(self._layout)
        for directory in (self._layout.logs, self._layout.pki, self._layout.kubeconfigs):
            directory.mkdir(mode=0o700)
        _write_to(self._layout.log("supervisor"), STDERR)

    def _live(self, children: Children) -> None:
        begin = time.monotonic()
        lifeline = HeldLifeline(STDIN)
        started = Startup(
            layout=self._layout,
            request=self._request,
            children=children,
            say=self._say,
            interrupted=lifeline.check,
        ).run()
        seconds = time.monotonic() - begin
        with commands.taken(self._layout, started.rack) as asked:
            self._report(self._ready(started, children, seconds=seconds))
            _write_to(self._layout.log("supervisor"), STDOUT)
            while True:
                with children.pidfds() as ends:
                    waited_for = [*lifeline.descriptors(), *asked.descriptors(), *ends]
                    readable = select.select(waited_for, [], [])[0]
                lifeline.check()
                children.check()
                if set(asked.descriptors()) & set(readable):
                    asked.take()
                    self._report(self._ready(started, children, seconds=seconds))

    def _say(self, message: str) -> None:
        self._report(msgspec.structs.replace(self._state, message=message))

    def _ready(self, started: Started, children: Children, *, seconds: float) -> State:
        return msgspec.structs.replace(
            self._state,
            phase="ready",
            message="",
            server=started.server,
            exec_offered=started.exec_offered,
            components=children.identities(),
            ready_after=seconds,
        )

    def _report(self, state: State) -> None:
        self._state = state
        write_state(self._layout, state)
        _tell(state)


def _tell(state: State) -> None:
    try:
        os.write(STDOUT, encode(state) + b"\n")
    except BrokenPipeError:
        raise Stopped from None


def _write_to(log: Path, descriptor: int) -> None:
    opened = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    os.dup2(opened, descriptor)
    os.close(opened)


def _stop(_number: int, _frame: object) -> None:
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    raise Stopped


def main() -> None:
    """Read the request, take the lab's lock and run the lab."""
    for number in SIGNALS:
        signal.signal(number, _stop)
    with contextlib.suppress(Stopped):
        request = decode_request(sys.stdin.buffer.readline())
        layout = Layout.of(request.name)
        state = State(
            phase="starting",
            supervisor=Identity.of(os.getpid()),
            options=request.options,
            programs=request.programs,
        )
        with held(layout) as mine:
            if mine:
                Supervisor(layout, request, state).run()
            else:
                message = f"lab {request.name!r} is up already; `.venv/bin/python -m lab down --name {request.name}` ends it."
                _tell(msgspec.structs.replace(state, phase="failed", message=message))


if __name__ == "__main__":
    main()
