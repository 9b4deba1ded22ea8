"""The play: five sizes one after the other, and what must come true of each."""

import asyncio
import textwrap
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from lab.demo import job
from lab.demo.job import Terminal
from lab.demo.scenes import Scene, Scenes
from lab.demo.screen import Screen
from mpijob_elastic import names
from mpijob_elastic.cli.jobs.table import columns

WIDTH = 100  # columns of what is said
PAUSE = 4.0  # seconds to look at what came of a step; longer than the controller leaves between two changes


class StepFailed(Exception):
    """A step that did not come true: which one, and what is missing."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """A change to one size. title: for tables. text: what happens, for people. verb: the user's kubectl command."""

    size: int
    title: str
    text: str
    verb: Literal["apply", "edit", "scale"] = "edit"


@dataclass(frozen=True, kw_only=True)
class Played:
    """Seconds from the sight of the new size to each milestone of a step."""

    title: str
    seconds: Mapping[str, float]


STEPS = (
    Step(
        size=2,
        title="create",
        verb="apply",
        text=(
            "A job of 2 workers. The operator makes ConfigMap, Role, workers and launcher; the webhook gives the "
            "launcher discover_hosts.sh, and the controller names both workers in it once they are Ready."
        ),
    ),
    Step(
        size=3,
        title="2→3",
        text=(
            "The operator makes train-worker-2. The controller lets the launcher exec into it (Role), names it in "
            "discover_hosts.sh once it is Ready, and touches the launcher, so that its file is true at once."
        ),
    ),
    Step(
        size=1,
        title="3→1",
        text=(
            "The operator would leave two workers running for ever. The controller takes them out of "
            "discover_hosts.sh, waits until no rank runs in them any more, and deletes them."
        ),
    ),
    Step(
        size=3,
        title="1→3",
        text="The same two names come back. No rank was killed before, so Horovod has blacklisted none of them.",
    ),
    Step(
        size=2,
        title="3→2",
        verb="scale",
        text=(
            "`mpijob-elastic install` has added the subresource scale to MPIJobs, so they scale as Deployments do, and "
            "a HorizontalPodAutoscaler can do it as well."
        ),
    ),
)


def _role(scene: Scene, wanted: list[str]) -> bool:
    return {*wanted} <= {*(scene.report.exec_names or ())}


def _published(scene: Scene, wanted: list[str]) -> bool:
    published = [host.rpartition(":")[0] for host in scene.report.hosts]
    return [names.pod_of(host) for host in published] == wanted


def _told(scene: Scene, wanted: list[str]) -> bool:
    launcher = scene.report.launcher
    return _published(scene, wanted) and launcher is not None and launcher.refreshed is True


def _ranks(scene: Scene, wanted: list[str]) -> bool:
    alive = [names.pod_of(host) for host, state in scene.ranks.items() if state in ("running", "leaving")]
    return sorted(alive) == sorted(wanted)


def _workers(scene: Scene, wanted: list[str]) -> bool:
    return [worker.name for worker in scene.report.workers if worker.ready] == wanted == _pods(scene)


def _pods(scene: Scene) -> list[str]:
    return [worker.name for worker in scene.report.workers]


Holds = Callable[[Scene, list[str]], bool]
# What must hold for the wanted workers, and for no other, after each step.
MILESTONES: Mapping[str, Holds] = {
    "Role": _role,
    "discover_hosts.sh": _published,
    "launcher told": _told,
    "ranks": _ranks,
    "workers": _workers,
}


async def play(step: Step, terminal: Terminal, scenes: Scenes, screen: Screen, *, patience: float) -> Played:
    """Do one step and see it come true within `patience` seconds. Raise StepFailed, or LabError for a command."""
    screen.say("\n" + textwrap.fill(f"{step.title}: {step.text}", WIDTH))
    screen.say(f"$ {command(step)}")
    commands = {"apply": terminal.create, "edit": terminal.edit, "scale": terminal.scale}
    screen.say(await commands[step.verb](step.size))
    milestones = {name: holds for name, holds in MILESTONES.items() if scenes.has_ranks or name != "ranks"}
    reached: dict[str, float] = {}
    try:
        async with asyncio.timeout(patience):
            await _see(step, milestones, reached, scenes, screen)
    except TimeoutError:
        missing = ", ".join(name for name in milestones if name not in reached)
        raise StepFailed(f"step {step.title}: not as asked for within {patience:.0f} s: {missing}") from None
    return Played(title=step.title, seconds=reached)


async def linger(step: Step, scenes: Scenes, screen: Screen) -> None:
    """Show what still happens before the next step. Raise StepFailed."""
    with suppress(TimeoutError):
        async with asyncio.timeout(PAUSE):
            while True:
                _show(step, await scenes.next(), screen)


async def _see(
    step: Step, milestones: Mapping[str, Holds], reached: dict[str, float], scenes: Scenes, screen: Screen
) -> None:
    """Fill in what is reached, scene by scene, until all is."""
    began: float | None = None
    while len(reached) < len(milestones):
        scene = await scenes.next()
        _show(step, scene, screen)
        if scene.report.desired == step.size:
            began = scene.at if began is None else began
            new = [name for name, holds in milestones.items() if holds(scene, job.workers(step.size))]
            reached.update({name: scene.at - began for name in new if name not in reached})


def _show(step: Step, scene: Scene, screen: Screen) -> None:
    screen.show(scene)
    killed = [host for host, state in scene.ranks.items() if state == "killed"]
    if killed:
        hosts = ", ".join(killed)
        raise StepFailed(f"step {step.title}: the rank in {hosts} was killed; Horovod would blacklist the host")


def command(step: Step) -> str:
    """Return the command that a user would type."""
    return {
        "apply": f"kubectl apply -f {job.NAME}.yaml",
        "edit": f'KUBE_EDITOR="{job.editor(step.size)}" kubectl edit mpijob {job.NAME}',
        "scale": f"kubectl scale mpijob/{job.NAME} --replicas={step.size}",
    }[step.verb]


def summary(played: list[Played]) -> list[str]:
    """A table of all steps."""
    header = ["SECONDS UNTIL", *MILESTONES]
    rows = [[one.title, *(_seconds(one.seconds.get(name)) for name in MILESTONES)] for one in played]
    return columns(header, rows)


def _seconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.2f}"
