"""Start, inspect and end a lab that runs on its own."""

import shutil
import signal
from dataclasses import dataclass

from lab import kind
from lab.build import Say, ensure_programs
from lab.errors import LabError
from lab.layout import Layout
from lab.lifeline import END, Lifeline
from lab.lock import held, is_held
from lab.node import requirements
from lab.options import Options
from lab.remains import clear
from lab.state import Request, State, read_state
from lab.versions import KubernetesVersion


def request(name: str, options: Options, say: Say) -> Request:
    """Return the request for a supervisor, once all programs are there. Raise LabError."""
    if kind.is_kind(Layout.of(name)):
        raise LabError(f"lab {name!r} is up already, made by kind; `python -m lab down --name {name}` ends it.")
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
    """Status of a lab: `up`, and the last State that its supervisor wrote. They differ if the supervisor was killed."""

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
    """End a lab, or clear up after one that was killed; tell whether there was any. Raise LabError if it cannot be."""
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
