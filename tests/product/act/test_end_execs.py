"""The end of frozen execs: the script in real shells, on real processes, and when a launcher is asked to run it."""

import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import pytest
from prometheus_client import CollectorRegistry

from mpijob_elastic.act import end_execs, launcher_execs
from mpijob_elastic.act.events import Events
from mpijob_elastic.act.gate import Gate
from mpijob_elastic.act.writer import Writer
from mpijob_elastic.decide.actions import DeleteWorkers, EndExecs, Removal
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.client import connect
from mpijob_elastic.model.execs import Exec
from mpijob_elastic.model.job import JobView
from mpijob_elastic.telemetry.metrics import Metrics
from tests.builders import LONG_AGO, NOW, job, launcher, ref, worker
from tests.product.act.test_deleting import Taken
from tests.product.act.test_launcher_execs import SHELLS, kubectl
from tests.product.kube.test_exec import SUCCESS, Talk, failure, says, server

POD = "my--job-worker-10"


def seen(shell: list[str], pid: int) -> Exec:
    """That process, as the look finds it once it is what it was started to be."""
    while True:
        output = subprocess.run(
            [*shell, *launcher_execs.COMMAND[1:]], capture_output=True, text=True, check=True
        ).stdout
        for found in launcher_execs.parse(output, started_at=NOW) or ():
            if found.pid == pid:
                return found


def answer(shell: list[str], found: Exec) -> str:
    command = [*shell, *end_execs.command(found)[1:]]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.strip()


@contextmanager
def process(folder: Path, shell: list[str], *words: str) -> Iterator[tuple[Exec, subprocess.Popen[bytes]]]:
    if shutil.which(shell[0]) is None:
        pytest.skip(f"{shell[0]} is not there")
    with kubectl(folder, *words) as process:
        yield seen(shell, process.pid), process


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
@pytest.mark.parametrize("words", [(POD,), (POD, "--container", "main")])
def test_the_script_ends_the_exec_that_was_seen_and_no_other(
    tmp_path: Path, shell: list[str], words: tuple[str, ...]
) -> None:
    with process(tmp_path, shell, *words) as (found, running):
        for other in (
            replace(found, ticks=found.ticks + 1),
            replace(found, pod=POD[:-1]),
            replace(found, pod=f"{POD}0"),
            replace(found, pod="*"),
        ):
            assert answer(shell, other) == "gone"
        assert running.poll() is None
        assert answer(shell, found) == "ended"
        assert running.wait(60) == -15
        assert answer(shell, found) == "gone"


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_the_script_ends_nothing_that_is_no_exec(tmp_path: Path, shell: list[str]) -> None:
    with process(tmp_path, shell, POD) as (found, _), subprocess.Popen(["sleep", "300"]) as other:
        try:
            ticks = int(Path(f"/proc/{other.pid}/stat").read_text().rpartition(") ")[2].split()[19])
            assert answer(shell, replace(found, pid=other.pid, ticks=ticks)) == "gone"
            assert other.poll() is None
        finally:
            other.kill()


VIEW = replace(job(2, workers=(worker(0), worker(1))), namespace="n")
LAUNCHER = replace(launcher(), ref=ref("p"), container="c", started_at=LONG_AGO)
DEAD = Exec(pid=41, pod="j-worker-2", started_at=LONG_AGO, ticks=5000)
COUNTER = "mpijob_elastic_ended_execs_total"
LATER = replace(DEAD, pid=43, pod="j-worker-3")


async def all_of_them(_view: JobView, action: EndExecs) -> AsyncIterator[Exec]:
    for found in action.execs:
        yield found


async def none_of_them(_view: JobView, action: EndExecs) -> AsyncIterator[Exec]:
    for found in action.execs[:0]:
        yield found


async def cannot_tell(_view: JobView, action: EndExecs) -> AsyncIterator[Exec]:
    for found in action.execs[:0]:
        yield found
    raise errors.Unreachable("no answer")


class Sent(Events):
    """Keeps what is to be sent."""

    def reasons(self) -> list[str]:
        """Return all Events so far."""
        return [str(self._waiting.get_nowait()[1]["reason"]) for _ in range(self._waiting.qsize())]


@dataclass
class Recheck:
    """Decides on execs as the test says."""

    of_execs: end_execs.Recheck

    def execs(self, view: JobView, action: EndExecs) -> AsyncIterator[Exec]:
        return self.of_execs(view, action)

    async def has_passed(self, at: float) -> bool:
        return False

    async def suspended(self, view: JobView) -> bool:
        return True

    async def removals(self, view: JobView, action: DeleteWorkers) -> list[Removal]:
        return []


async def end(
    folder: Path, talk: Talk, *, recheck: end_execs.Recheck = all_of_them, time_left: float = 60.0
) -> tuple[list[bool], list[list[str]], list[str]]:
    """Two execs are to be ended: whether nothing is left of each, the commands that were run, the Events."""
    async with (
        server(talk, folder) as requests,
        await connect(user_agent="t", kubeconfig=folder / "kubeconfig") as client,
    ):
        registry = CollectorRegistry()
        metrics = Metrics(registry)
        gate = Gate(client, time_left=lambda: time_left, metrics=metrics)
        events = Sent(gate, metrics=metrics, instance="t", now=lambda: NOW, random=Random(1))
        action = EndExecs(launcher=LAUNCHER, execs=(DEAD, LATER))
        tried: dict[Exec, bool] = {}
        writer = Writer(
            gate,
            Taken(),
            recheck=Recheck(recheck),
            tried=lambda launcher, found: tried.update(found),
            events=events,
            metrics=metrics,
        )
        await writer.perform(VIEW, action)
        ended = tried
        assert list(ended) == [DEAD, LATER]
        outcomes = ("ended", "gone", "error")
        counts = [registry.get_sample_value(COUNTER, {"outcome": outcome}) or 0 for outcome in outcomes]
        assert sum(counts) >= len(requests)
        assert sum(counts[:2]) == sum(ended.values())
        commands = [request.query.getall("command") for request in requests]
        return list(ended.values()), commands, events.reasons()


async def test_execs_are_ended_one_after_the_other_and_that_is_said_once(tmp_path: Path) -> None:
    ended, commands, events = await end(tmp_path, says((1, "ended\n"), (3, SUCCESS)))
    assert ended == [True, True]
    assert commands == [end_execs.command(DEAD), end_execs.command(LATER)]
    assert commands[0][3:] == ["sh", "41", "5000", "j-worker-2"]
    assert events == ["FrozenExecEnded"]


async def test_what_had_ended_by_itself_is_not_said_to_be_ended(tmp_path: Path) -> None:
    ended, _, events = await end(tmp_path, says((1, "gone\n"), (3, SUCCESS)))
    assert (ended, events) == ([True, True], [])


@pytest.mark.parametrize(
    ("talk", "asked"),
    [
        (says((1, "sh: ended?\n"), (3, SUCCESS)), 2),
        (says((3, failure("NonZeroExitCode", "exit code 1", "1"))), 2),
        (says((3, failure("InternalError", "no shell"))), 1),
        (says(), 1),
    ],
)
async def test_what_goes_wrong_fails_nothing_and_leaves_them(tmp_path: Path, talk: Talk, asked: int) -> None:
    ended, commands, events = await end(tmp_path, talk)
    assert (ended, len(commands), events) == ([False, False], asked, [])


@pytest.mark.parametrize("recheck", [none_of_them, cannot_tell])
async def test_what_does_not_hold_live_is_left_alone(tmp_path: Path, recheck: end_execs.Recheck) -> None:
    done = await end(tmp_path, says((1, "ended\n"), (3, SUCCESS)), recheck=recheck)
    assert done == ([False, False], [], [])


async def test_only_who_leads_ends_anything(tmp_path: Path) -> None:
    assert await end(tmp_path, says((1, "ended\n"), (3, SUCCESS)), time_left=0.0) == ([False, False], [], [])
