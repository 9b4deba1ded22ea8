"""A job that really trains, resized on a real node, with the peer and with us installed; and the effect of a touch."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial

from bench import namespaces
from bench.parts.context import TROUBLE, Findings, Setting
from bench.real import figures, touch, transcript
from bench.real.transcript import Round
from lab.cluster import Cluster
from lab.errors import LabError
from lab.images import build, delivery, operator
from lab.images.product import image
from lab.images.tools import run as run_program
from lab.node import requirements
from lab.operator import deployment
from lab.options import Options
from lab.training.job import load_image

# Each round has five changes.
CHANGES_WITH_TOUCH = 30
PODS_WITHOUT = 10

# Runs the programs beside the job during a block.
Side = Callable[[Cluster], AbstractContextManager[object]]


async def run(setting: Setting) -> Findings:
    """Run the transcript once with the peer, as a process, and `repeat` times with us, installed.

    A failure keeps the results before it.

    Raises LabError if no real node is possible, or nothing could be measured.
    """
    requirements.check()
    with Cluster.start(name=f"bench-{os.getpid()}", options=Options(nodes=0, real_nodes=1), say=setting.say) as cluster:
        load_image(cluster, setting.say)
        cluster.load_image(build.ensure(delivery.NAME, setting.say))
        with namespaces.passing(cluster, "touch") as where:
            setting.say("changes of a ConfigMap, with and without a touch")
            delays = touch.run(cluster, namespace=where, changes=CHANGES_WITH_TOUCH, pods=PODS_WITHOUT)
            cluster.kubectl("delete", "pods", "--all", "--namespace", where)
        peer, without_peer = _rounds(cluster, setting, setting.peer.start, ["with the peer"])
        turns = [f"with us, {turn} of {setting.repeat}" for turn in range(1, setting.repeat + 1)]
        ours, without_us = _rounds(cluster, setting, partial(_installed, say=setting.say), turns)
    return Findings(
        figures=figures.figures(delays, ours=ours, peer=peer),
        notes=figures.notes(peer),
        failures=[*without_peer, *without_us],
    )


def _rounds(
    cluster: Cluster, setting: Setting, side: Side, turns: Sequence[str]
) -> tuple[list[Round], list[Exception]]:
    """Run the rounds until a failure. Return the results, and the failure with its title, if any."""
    taken: list[Round] = []
    for turn in turns:
        title = f"a job trains and is resized {turn}"
        setting.say(title)
        try:
            with side(cluster), namespaces.passing(cluster, "train") as where:
                taken.append(transcript.run(cluster, namespace=where))
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
