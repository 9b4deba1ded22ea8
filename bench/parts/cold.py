"""A job that trains gets a worker on a node that reads slowly, with and without a check of its start."""

from functools import partial

from bench.figures import Figure, measured
from bench.parts.context import Findings, Setting
from bench.parts.real import real_node, rounds
from bench.real import cold
from bench.real.cold import NEW, OLD, SPEED, Check
from bench.real.timeline import Course
from bench.sides import Ours

TOPIC = f"{OLD}→{NEW} on a cold node"


async def run(setting: Setting) -> Findings:
    """Add a worker `repeat` times with each check, by turns, with us as processes.

    A failure keeps the results before it.

    Raises LabError if no real node is possible, or nothing could be measured.
    """
    found: dict[Check, list[Course]] = {check: [] for check in Check}
    failures: list[Exception] = []
    with real_node(setting, nodes=2) as cluster:
        for turn in range(1, setting.repeat + 1):
            for check in Check:
                title = f"with {check} in the worker, {turn} of {setting.repeat}"
                measure = partial(cold.run, check=check)
                courses, failed = rounds(cluster, setting, Ours().start, [title], measure)
                found[check] += courses
                failures += failed
    notes = [
        "Elastic Horovod on two real nodes. The new worker's node has none of its files in memory, "
        f"and each of its containers reads {SPEED // 10**6} MB/s at most. Times count from the edit."
    ]
    figures = [figure for check in Check for figure in _figures(check, found[check])]
    return Findings(figures=figures, notes=notes, failures=failures)


def _figures(check: Check, courses: list[Course]) -> list[Figure]:
    heading = (TOPIC, f"with {check} in the worker")
    return [
        measured(heading, "edit to first step of all ranks", "s", _trained, ours=courses),
        measured(heading, "longest time without a step", "s", _pause, ours=courses),
    ]


def _trained(course: Course) -> float | None:
    return course.trained


def _pause(course: Course) -> float | None:
    return course.pause
