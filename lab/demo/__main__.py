"""Runs the demo."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Annotated

import typer

from lab.build import Say, is_built
from lab.demo.job import NAME, STEPS
from lab.demo.play import Play, StepFailed
from lab.demo.stage import Stage, set_up
from lab.display import run_app
from lab.errors import LabError
from lab.versions import DEFAULT_KUBERNETES

INTERRUPTED = 130  # 128 + SIGINT, as shells have it
LOG_LINES = 15
FIRST_TIME = "The programs are built first, once; then this takes about 40 s."
LATER = "All programs are built: this takes about 40 s."
RANKS = """\
No training runs: ranks are stand-ins, but real processes, started by `kubectl exec` with the launcher's rights."""
END = "Every change came true and no rank was killed."
NO_RANKS = """\
`kubectl exec` is not to be had here (no PID namespaces), so no ranks are shown, and drains last until drain-timeout."""

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def demo(
    *,
    keep: Annotated[
        bool, typer.Option("--keep", help="Stay when all is shown, to try more, until Ctrl-C.")
    ] = False,
    page: Annotated[
        bool, typer.Option("--page", help="Open the dashboard beside it, and stay too.")
    ] = False,
    name: Annotated[str | None, typer.Option(help="Name of the lab; a new one by default.")] = None,
    patience: Annotated[float, typer.Option(min=1, help="Seconds that one step may take.")] = 60.0,
) -> None:
    """Show how `kubectl edit mpijob` becomes elastic: 2 workers, then 3, 1 and 3.

    At last `kubectl scale`: 2.

    Exit codes: 0 every step came true; 1 one did not, or nothing could be started; 2 wrong usage;
    130 Ctrl-C.
    """
    say = _since_now()
    say(LATER if is_built(DEFAULT_KUBERNETES) else FIRST_TIME)
    try:
        with set_up(name or f"demo-{os.getpid()}", say) as stage:
            say("ready")
            print(
                "The control plane is real, pods are pretended (kwok). The operator is the real one: ",
                end="",
            )
            print(
                f"{stage.operator.program.name}.\n{RANKS if stage.cluster.exec_offered else NO_RANKS}"
            )
            with _dashboard(stage) if page else nullcontext(), Play(stage) as play:
                code = _perform(stage, play, keep=keep or page, patience=patience)
    except KeyboardInterrupt:
        code = INTERRUPTED
    raise typer.Exit(code)


@contextmanager
def _dashboard(stage: Stage) -> Iterator[None]:
    """Serve the page: it opens the browser, or prints a link."""
    command = [
        sys.executable,
        "-m",
        "mpijob_elastic",
        "dashboard",
        "--kubeconfig",
        str(stage.cluster.kubeconfig),
    ]
    with subprocess.Popen(command) as process:
        try:
            yield
        finally:
            process.terminate()


def _perform(stage: Stage, play: Play, *, keep: bool, patience: float) -> int:
    """Play everything; the exit code."""
    code, end = 0, ["\nSECONDS UNTIL IT IS TRUE"]
    try:
        end += [f"{step.title:<8}{play.perform(step, patience=patience):.1f}" for step in STEPS]
        end.append(END)
    except (StepFailed, LabError) as error:
        code, end = (
            1,
            [
                _logs(stage),
                f"\nFAILED: {error}. (With --keep everything stays up, to look around.)",
            ],
        )
    print(*end, sep="\n", flush=True)
    if not keep:
        print("To see it as a page in your browser: make demo ARGS=--page")
    else:
        print(_more(stage), flush=True)
        try:
            while True:
                play.look(STEPS[-1])
        except (KeyboardInterrupt, StepFailed, LabError) as end_of_it:
            print(end_of_it)
    return code


def _more(stage: Stage) -> str:
    return f"""
The lab stays up until Ctrl-C. Try, in another terminal:
  export KUBECONFIG={stage.cluster.kubeconfig} PATH={stage.cluster.binaries.kubectl.parent}:$PATH
  kubectl edit mpijob {NAME}
  kubectl scale mpijob/{NAME} --replicas=4
  {sys.executable} -m mpijob_elastic get {NAME}
  {sys.executable} -m mpijob_elastic watch {NAME}
  kubectl describe mpijob {NAME}
  {sys.executable} -m mpijob_elastic dashboard {NAME}
Pods are simulated, and only {NAME} has ranks: of a job that you submit `explain` says that nobody
trains. Webhook and controller run beside the cluster, so `install` refuses to install a second time."""


def _logs(stage: Stage) -> str:
    tails = [path.read_text(errors="replace").splitlines()[-LOG_LINES:] for path in stage.logs]
    return "\n".join(
        f"==> {path.name} <==\n" + "\n".join(tail)
        for path, tail in zip(stage.logs, tails, strict=True)
    )


def _since_now() -> Say:
    began = time.monotonic()
    return lambda text: print(f"[{time.monotonic() - began:5.1f} s] {text}", flush=True)


if __name__ == "__main__":
    run_app(app)
