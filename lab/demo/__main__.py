"""Runs the demo."""

import asyncio
import os
import signal
import sys
import time
from contextlib import suppress
from typing import Annotated, NoReturn

import typer

from lab.build import Say
from lab.demo import play
from lab.demo.job import NAME, Terminal
from lab.demo.play import Played, StepFailed
from lab.demo.scenes import Scenes, watched
from lab.demo.screen import Screen, opened
from lab.demo.stage import Stage, set_up
from lab.errors import LabError

INTERRUPTED = 130  # 128 + SIGINT, as shells have it
LOG_LINES = 15
ABOUT = """\
The control plane is real, pods are pretended (kwok). The operator is the real one: {operator}.
{ranks}"""
RANKS = """\
No training runs: ranks are stand-ins, but real processes, started by `kubectl exec` with the launcher's rights."""
END = "Every change came true and no rank was killed. Seconds count from when the new size was seen."
NO_RANKS = """\
`kubectl exec` is not to be had here (no PID namespaces), so no ranks are shown, and drains last until drain-timeout."""

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def demo(
    *,
    keep: Annotated[bool, typer.Option("--keep", help="Stay when all is shown, to try more, until Ctrl-C.")] = False,
    name: Annotated[str | None, typer.Option(help="Name of the lab; a new one by default.")] = None,
    patience: Annotated[float, typer.Option(min=1, help="Seconds that one step may take.")] = 60.0,
) -> None:
    """Show how `kubectl edit mpijob` becomes elastic: 2 workers, then 3, 1 and 3. At last `kubectl scale`: 2.

    Exit codes: 0 every step came true; 1 one did not, or nothing could be started; 2 wrong usage; 130 Ctrl-C.
    """
    say = _since_now()
    try:
        with set_up(name or f"demo-{os.getpid()}", say) as stage:
            say("ready")
            code = asyncio.run(_perform(stage, keep=keep, patience=patience))
    except KeyboardInterrupt:
        code = INTERRUPTED
    raise typer.Exit(code)


async def _perform(stage: Stage, *, keep: bool, patience: float) -> int:
    """Play everything; the exit code."""
    with opened() as screen:
        screen.say(_about(stage))
        async with watched(stage) as scenes:
            failure, end = await _play(stage, scenes, screen, patience=patience)
            if keep:
                screen.say(f"{end}\n{_more(stage)}")
                await _stay(scenes, screen)
    if not keep:
        print(end)
    return 1 if failure else 0


async def _play(stage: Stage, scenes: Scenes, screen: Screen, *, patience: float) -> tuple[bool, str]:
    """Play all steps; return if that failed, and the last words."""
    played: list[Played] = []
    terminal = Terminal(cluster=stage.cluster)
    try:
        for step in play.STEPS:
            one = await play.play(step, terminal, scenes, screen, patience=patience)
            played.append(one)
            await play.linger(step, scenes, screen)
    except (StepFailed, LabError) as error:
        return True, f"\n{_logs(stage)}\n\nFAILED: {error}. (With --keep everything stays up, to look around.)"
    return False, "\n".join(["", *play.summary(played), END])


async def _stay(scenes: Scenes, screen: Screen) -> None:
    """Go on showing what happens until Ctrl-C, which is no failure here."""
    with suppress(asyncio.CancelledError):
        while True:
            screen.show(await scenes.next())


def _about(stage: Stage) -> str:
    return ABOUT.format(operator=stage.operator.program.name, ranks=RANKS if stage.cluster.exec_offered else NO_RANKS)


def _more(stage: Stage) -> str:
    return f"""
The lab stays up until Ctrl-C. Try, in another terminal:
  export KUBECONFIG={stage.cluster.kubeconfig} PATH={stage.cluster.binaries.kubectl.parent}:$PATH
  kubectl edit mpijob {NAME}
  kubectl scale mpijob/{NAME} --replicas=4
  {sys.executable} -m mpijob_elastic get {NAME}
  {sys.executable} -m mpijob_elastic watch {NAME}
  kubectl describe mpijob {NAME}"""


def _logs(stage: Stage) -> str:
    tails = [path.read_text(errors="replace").splitlines()[-LOG_LINES:] for path in stage.logs]
    return "\n".join(f"==> {path.name} <==\n" + "\n".join(tail) for path, tail in zip(stage.logs, tails, strict=True))


def _since_now() -> Say:
    began = time.monotonic()
    return lambda text: print(f"[{time.monotonic() - began:5.1f} s] {text}", flush=True)


def _terminate(number: int, _frame: object) -> NoReturn:
    raise SystemExit(128 + number)


def main() -> None:
    """Run it; whatever ends it, nothing is left behind."""
    signal.signal(signal.SIGTERM, _terminate)
    try:
        app()
    except LabError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
