"""A job that really trains, resized on a real node, with the peer and with us installed."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import TypeVar

from bench import namespaces, targets
from bench.figures import Figure, Target, measured, percentile
from bench.parts.context import TROUBLE, Findings, Setting
from bench.real import transcript
from bench.real.timeline import Course
from bench.real.transcript import LIMIT, SIZES, Round
from lab.cluster import Cluster
from lab.errors import LabError
from lab.images import build, delivery, operator
from lab.images.product import image
from lab.images.tools import run as run_program
from lab.node import requirements
from lab.operator import deployment
from lab.options import Options
from lab.training.job import load_image

TRAINING = "A job that trains"
WHOLE = "→".join(map(str, SIZES))
Taken = TypeVar("Taken")
# Runs the programs beside the job during a block.
Side = Callable[[Cluster], AbstractContextManager[object]]


async def run(setting: Setting) -> Findings:
    """Run the transcript once with the peer, as a process, and `repeat` times with us, installed.

    A failure keeps the results before it.

    Raises LabError if no real node is possible, or nothing could be measured.
    """
    with real_node(setting) as cluster:
        peer, without_peer = rounds(
            cluster, setting, setting.peer.start, ["with the peer"], transcript.run
        )
        ours, without_us = rounds(
            cluster,
            setting,
            partial(_installed, say=setting.say),
            turns_with_us(setting),
            transcript.run,
        )
    return Findings(
        figures=_figures(ours=ours, peer=peer),
        notes=_notes(peer),
        failures=[*without_peer, *without_us],
    )


@contextmanager
def real_node(setting: Setting, *, nodes: int = 1) -> Iterator[Cluster]:
    """Start a control plane with real nodes that have the images of training jobs.

    Raises LabError if no real node is possible.
    """
    requirements.check()
    with Cluster.start(
        name=f"bench-{os.getpid()}", options=Options(nodes=0, real_nodes=nodes), say=setting.say
    ) as cluster:
        load_image(cluster, setting.say)
        cluster.load_image(build.ensure(delivery.NAME, setting.say))
        yield cluster


def turns_with_us(setting: Setting) -> list[str]:
    """Return the title of each round with us."""
    return [f"with us, {turn} of {setting.repeat}" for turn in range(1, setting.repeat + 1)]


def rounds(
    cluster: Cluster,
    setting: Setting,
    side: Side,
    turns: Sequence[str],
    measure: Callable[[Cluster, str], Taken],
) -> tuple[list[Taken], list[Exception]]:
    """Measure a training job in a namespace of its own once for each turn, until a failure.

    Return the results, and the failure with its title, if any.
    """
    taken: list[Taken] = []
    for turn in turns:
        title = f"a job trains and is resized {turn}"
        setting.say(title)
        try:
            with side(cluster), namespaces.passing(cluster, "train") as where:
                taken.append(measure(cluster, where))
        except TROUBLE as error:
            return taken, [LabError(f"{title}: {error}")]
    return taken, []


@contextmanager
def _installed(cluster: Cluster, say: Callable[[str], None]) -> Iterator[None]:
    """Install us and mpi-operator v0.2.3 as users do: Deployments with their published rights, until the lab ends."""
    for name in (operator.NAME, image.NAME):
        cluster.load_image(build.ensure(name, say))
    deployment.install(cluster)
    say("mpijob-elastic install")
    arguments = ["install", "--kubeconfig", str(cluster.kubeconfig), "--image", image.REFERENCE]
    run_program([sys.executable, "-m", "mpijob_elastic", *arguments], say=say)
    yield


def _figures(*, ours: Sequence[Round], peer: Sequence[Round]) -> list[Figure]:
    """Return all figures. Each round is a sample; a side may have none."""
    titles = [course.title for turn in (*ours, *peer)[:1] for course in turn.courses]
    changes = [
        figure for index, title in enumerate(titles) for figure in _change(index, title, ours, peer)
    ]
    return [*changes, *_whole(ours, peer)]


def _notes(peer: Sequence[Round]) -> list[str]:
    """Return what a reader must know about the figures."""
    begun = (
        "Real pods and Elastic Horovod: steps of 0.25 s, a commit every 4. Times count from the "
        f"edit's arrival. Lost worker-seconds of a change without training count for {LIMIT:.0f} s."
    )
    return (
        [begun, f"The peer ran one round, with {LIMIT:.0f} s for each change."] if peer else [begun]
    )


def _change(index: int, title: str, ours: Sequence[Round], peer: Sequence[Round]) -> list[Figure]:
    def figure(
        name: str, read: Callable[[Course], float | None], target: Target | None = None
    ) -> Figure:
        courses, others = ([turn.courses[index] for turn in rounds] for rounds in (ours, peer))
        return measured(
            (TRAINING, title), name, "s", read, ours=courses, peer=others, target=target
        )

    return [
        figure("edit to host list seen by the launcher", lambda course: course.listed),
        figure(
            "edit to first step of all ranks",
            lambda course: course.trained,
            targets.TRAINED.get(title),
        ),
        figure("longest time without a step", lambda course: course.pause),
        figure("worker-seconds lost until that first step", lambda course: course.lost),
        figure("of these the limit: imports, one forming", lambda course: course.limit or None),
    ]


def _whole(ours: Sequence[Round], peer: Sequence[Round]) -> list[Figure]:
    def figure(name: str, read: Callable[[Round], float]) -> Figure:
        return measured(
            (TRAINING, WHOLE), name, "", read, ours=ours, peer=peer, target=targets.RANKS_KILLED
        )

    def seen(
        name: str, mine: Sequence[float], others: Sequence[float], target: Target | None = None
    ) -> Figure:
        return measured((TRAINING, WHOLE), name, "s", float, ours=mine, peer=others, target=target)

    mine, others = _visible(ours), _visible(peer)
    slowest = f"95th percentile of these, {len(mine)} changes"
    return [
        seen("host list written to seen by the launcher", mine, others),
        seen(slowest, _slowest(mine), _slowest(others), targets.VISIBLE),
        figure("ranks killed", lambda turn: turn.killed),
        figure("hosts blacklisted", lambda turn: turn.blacklisted),
        figure(
            f"changes without training after {LIMIT:.0f} s",
            lambda turn: sum(course.trained is None for course in turn.courses),
        ),
    ]


def _visible(rounds: Sequence[Round]) -> list[float]:
    return [
        course.visible for turn in rounds for course in turn.courses if course.visible is not None
    ]


def _slowest(samples: Sequence[float]) -> list[float]:
    return [percentile(samples, 95)] if samples else []
