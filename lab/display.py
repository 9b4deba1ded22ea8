"""Show progress (a moving line on a terminal, separate lines elsewhere), the status of a lab, and errors."""

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from lab import companions
from lab.build import Say
from lab.control import Status
from lab.errors import LabError
from lab.layout import Layout


@contextmanager
def progress() -> Iterator[Say]:
    """Yield a function that shows a short phrase, on standard error, with the time since the beginning."""
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        begin = time.monotonic()
        yield lambda message: console.print(
            f"[{time.monotonic() - begin:5.1f} s] {message}", markup=False, soft_wrap=True
        )
        return
    columns = (SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda message: bar.update(task, description=message)


def report(layout: Layout, status: Status) -> list[str]:
    """Return lines that say how a lab is."""
    lines = [f"lab {layout.name}: {status.summary}"]
    state = status.state
    if state is None:
        return lines
    if state.message:
        lines.append(state.message)
    facts = {
        "API server": state.server,
        "Kubernetes": state.options.kubernetes_version,
        "nodes": f"{state.options.nodes} pretended, {state.options.real_nodes} real",
        "kubectl exec": "works"
        if state.exec_offered
        else "not offered: PID namespaces cannot be had here",
        "kubeconfig": layout.kubeconfig,
        "audit log": layout.audit_log,
        "supervisor": f"pid {state.supervisor.pid}",
        **{
            name: f"pid {identity.pid}, {layout.log(name)}"
            for name, identity in state.components.items()
        },
    }
    if status.summary != "ready":
        return lines
    lines += [_line(name, fact) for name, fact in facts.items()]
    for one in companions.running(layout):
        lines.append(_line(one.name, f"pid {one.process.pid}, {layout.logs / one.log}"))
    return lines


def _line(name: str, fact: object) -> str:
    return f"  {name:<24}{fact}"


def run_app(app: typer.Typer) -> None:
    """Run a command; what a user can mend ends with one message and exit code 1."""
    # As Ctrl-C: so that a lab in the foreground, or one that is starting, is ended before we are.
    signal.signal(signal.SIGTERM, _terminate)
    try:
        app()
    except LabError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)


def _terminate(number: int, _frame: object) -> NoReturn:
    raise SystemExit(128 + number)
