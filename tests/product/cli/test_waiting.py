"""How far a job is, and what is shown of it: each world as its line and its bars, in pages/wait.

`UPDATE_PAGES=1 pytest tests/product/cli/test_waiting.py` writes the files: read what git shows of
them.
"""

import io
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from rich.console import Console

from mpijob_elastic.cli.jobs import explain, waiting
from mpijob_elastic.cli.jobs.waiting import JobMoment, Progress
from mpijob_elastic.decide import derive
from mpijob_elastic.diagnosis.explanation import diagnose
from mpijob_elastic.diagnosis.facts import Look
from mpijob_elastic.model.memory import Left, Memory, pod_fingerprint
from tests.product.cli import worlds
from tests.product.cli.worlds import config_map, launcher, mpi_job, worker, workers

PAGES = Path(__file__).parent / "pages" / "wait"
SUSPENDED = {"mpijob-elastic/suspend": "true"}
QUEUED = [{"name": "mpijob-elastic/queued"}]
Colours = Literal["standard", "256", "truecolor"]
BUSY = Look(processes=("python3",))


def seen(
    size: int,
    *,
    listed: int,
    pods: list[worlds.Object],
    looks: Mapping[str, Look] | None = None,
    **job: Any,
) -> JobMoment:
    """A job of that size whose first workers are listed, and shown to the launcher."""
    config = job.pop("config", config_map(workers(*range(listed))))
    leader = job.pop("leader", launcher(refreshed=worlds.shown(config, at=worlds.CREATED)))
    [snapshot] = worlds.read(
        [mpi_job(replicas=size, **job)],
        pods=[leader, *pods] if leader else pods,
        configs=[config],
        roles=[worlds.role(workers(*range(size)))],
    )
    facts = replace(explain.known(snapshot), looks=looks or {})
    view = snapshot.view
    return JobMoment(
        snapshot=snapshot,
        state=derive(view, now=worlds.NOW),
        found=diagnose(view, facts, now=worlds.NOW),
    )


def unscheduled(index: int) -> worlds.Object:
    pod = worker(index, phase="Pending")
    pod["spec"]["nodeName"] = ""
    why = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/3 nodes: no GPU left",
    }
    pod["status"]["conditions"].append(why)
    return pod


def gated(pod: worlds.Object, gates: list[dict[str, str]]) -> worlds.Object:
    pod["spec"] |= {"schedulingGates": gates, "nodeName": ""}
    pod["status"]["phase"] = "Pending"
    return pod


def draining() -> JobMoment:
    left = {
        name: Left(pod=pod_fingerprint(f"uid of default/{name}"), at=worlds.NOW - 10.0)
        for name in workers(1)
    }
    config = config_map(workers(0), memory=Memory(left=left, removed_at=worlds.NOW - 10.0))
    leader = launcher(refreshed=worlds.shown(config, at=worlds.NOW - 9.0))
    return seen(1, listed=1, pods=[worker(0), worker(1)], config=config, leader=leader)


TWO = [worker(0), worker(1)]
GATE = [{"name": "mpijob-elastic/suspended"}]
HELD = seen(
    1,
    listed=0,
    pods=[gated(worker(0), GATE)],
    leader=gated(launcher(), GATE),
    annotations=SUSPENDED,
)
WORLDS = {
    "the launcher is not there yet": waiting.trains(
        seen(2, listed=2, pods=TWO, leader=None), size=2
    ),
    "a worker is not there yet": waiting.trains(seen(3, listed=2, pods=TWO), size=3),
    "a worker has no node": waiting.trains(seen(3, listed=2, pods=[*TWO, unscheduled(2)]), size=3),
    "a worker waits for quota": waiting.trains(
        seen(
            3,
            listed=2,
            pods=[*TWO, gated(worker(2), QUEUED)],
            annotations={"mpijob-elastic/min-replicas": "2"},
            labels={"kueue.x-k8s.io/queue-name": "q"},
        ),
        size=3,
    ),
    "all are listed and nobody looks": waiting.trains(seen(2, listed=2, pods=TWO), size=2),
    "a rank is missing": waiting.trains(
        seen(2, listed=2, pods=TWO, looks={"train-worker-0": BUSY, "train-worker-1": Look()}),
        size=2,
    ),
    "all train": waiting.trains(
        seen(2, listed=2, pods=TWO, looks=dict.fromkeys(workers(0, 1), BUSY)), size=2
    ),
    "somebody sets another size": waiting.trains(seen(2, listed=2, pods=TWO), size=3),
    "it ends before": waiting.trains(
        seen(3, listed=2, pods=TWO, conditions=["Succeeded"], leader=launcher(phase="Succeeded")),
        size=3,
    ),
    "it is suspended before": waiting.trains(
        seen(3, listed=2, pods=TWO, annotations=SUSPENDED), size=3
    ),
    "a worker drains": waiting.shrinks(draining(), size=1, leaving=1),
    "the surplus is gone": waiting.shrinks(seen(1, listed=1, pods=[worker(0)]), size=1, leaving=1),
    "it stops": waiting.stops(seen(2, listed=2, pods=TWO, annotations=SUSPENDED)),
    "its last worker stops": waiting.stops(
        seen(1, listed=0, pods=[worker(0)], leader=gated(launcher(), GATE), annotations=SUSPENDED)
    ),
    "it has stopped": waiting.stops(HELD),
    "it is resumed before": waiting.stops(seen(2, listed=2, pods=TWO)),
}
DONE = {"all are listed and nobody looks", "all train", "the surplus is gone", "it has stopped"}


@pytest.mark.parametrize("world", WORLDS)
def test_it_shows(world: str) -> None:
    progress = WORLDS[world]
    assert progress.done == (world in DONE)
    bars = waiting.Bars()
    bars.show(progress)
    console = Console(file=io.StringIO(), width=100, highlight=False)
    console.print(bars.render())
    assert isinstance(console.file, io.StringIO)
    end = "done" if progress.done else progress.otherwise or "goes on"
    text = (
        "\n".join(
            [
                str(progress),
                end,
                "",
                *(line.rstrip() for line in console.file.getvalue().splitlines()),
            ]
        )
        + "\n"
    )
    file = PAGES / f"{world.replace(' ', '-')}.txt"
    if os.environ.get("UPDATE_PAGES"):
        file.parent.mkdir(exist_ok=True, parents=True)
        file.write_text(text)
    assert text == file.read_text()


def drawn(done: int, *, colours: Colours) -> str:
    """A bar of three, as a terminal with so many colours gets it."""
    bars = waiting.Bars()
    bars.show(Progress(stages={"pods": (done, 3)}, done=False))
    console = Console(file=io.StringIO(), width=100, force_terminal=True, color_system=colours)
    console.print(bars.render())
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()[0].partition(f"{done} of 3")[0]


@pytest.mark.parametrize("colours", ["standard", "256", "truecolor"])
def test_a_bar_that_is_full_differs_from_one_that_is_empty(colours: Colours) -> None:
    """With rich's own colours both are grey on a terminal of 16 colours, as TERM=xterm says."""
    bars = [drawn(done, colours=colours) for done in range(4)]
    assert len(set(bars)) == 4


def test_a_step_is_a_line_once(capsys: pytest.CaptureFixture[str]) -> None:
    show = waiting._lines()
    for left in (3, 2, 1):
        show(
            Progress(
                stages={"gone": (0, 1)},
                done=False,
                now=f"at most {left} s more",
                step="draining train-worker-1",
            )
        )
    show(Progress(stages={"gone": (1, 1)}, done=True))
    assert [line.partition("  ")[2] for line in capsys.readouterr().out.splitlines()] == [
        "gone 0 of 1; at most 3 s more",
        "gone 1 of 1",
    ]
