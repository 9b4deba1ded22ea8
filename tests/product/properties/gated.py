"""Jobs some of whose pods have yet to start."""

from random import Random

from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.pod import LauncherPhase, Worker
from tests.builders import but


def gated(view: JobView, random: Random, gate: str) -> JobView:
    """Some pods of the job have yet to start, with one more gate."""
    launcher, workers = view.launcher, list(view.workers)
    if launcher and random.random() < 0.4:
        gates = tuple({*launcher.facts.gates, gate})
        launcher = but(launcher, phase=LauncherPhase.WAITING, gates=gates, delivering_since=None)
    return but(view, launcher=launcher, workers=tuple(_gated(one, random, gate) for one in workers))


def _gated(one: Worker, random: Random, gate: str) -> Worker:
    if random.random() < 0.6:
        return one
    gates = tuple({*one.facts.gates, gate})
    return but(
        one, gates=gates, running=False, ready_at=None, terminated=False, node="", node_gone_at=0.0
    )
