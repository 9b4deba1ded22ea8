"""The end of frozen execs: the script in real shells, on real processes, and when a launcher is asked to run it."""

import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import pytest
from prometheus_client import CollectorRegistry

from mpijob_elastic.act import end_execs, launcher_execs
from mpijob_elastic.act.events import Events
from mpijob_elastic.act.launcher_execs import Execs
from mpijob_elastic.act.writer import Writer
from mpijob_elastic.decide import derive, frozen_execs
from mpijob_elastic.decide.actions import EndExecs
from mpijob_elastic.kube import errors
from mpijob_elastic.model.execs import MOST_TRIES, Exec
from mpijob_elastic.model.job import JobView
from mpijob_elastic.telemetry.metrics import Metrics
from tests.builders import LONG_AGO, NOW, job, launcher, ref, worker
from tests.doubles.shells import STATUS, STDOUT, Shells, Talk, connected, failure, prints, says
from tests.faults.waiting import eventually
from tests.product.act.kubectl_execs import SHELLS, kubectl
from tests.product.act.writes import Nothing, Taken, gate_of

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


def answers(shell: list[str], *execs: Exec) -> list[str]:
    command = [*shell, *end_execs.command(execs)[1:]]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.splitlines()


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
        others = (
            replace(found, ticks=found.ticks + 1),
            replace(found, pod=POD[:-1]),
            replace(found, pod=f"{POD}0"),
            replace(found, pod="*"),
        )
        assert answers(shell, *others) == ["gone"] * len(others)
        assert running.poll() is None
        assert answers(shell, others[0], found, others[1]) == ["gone", "ended", "gone"]
        assert running.wait(60) == -15
        assert answers(shell, found) == ["gone"]


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_the_script_ends_nothing_that_is_no_exec(tmp_path: Path, shell: list[str]) -> None:
    with process(tmp_path, shell, POD) as (found, _), subprocess.Popen(["sleep", "300"]) as other:
        try:
            ticks = int(Path(f"/proc/{other.pid}/stat").read_text().rpartition(") ")[2].split()[19])
            assert answers(shell, replace(found, pid=other.pid, ticks=ticks)) == ["gone"]
            assert other.poll() is None
        finally:
            other.kill()


VIEW = replace(job(2, workers=(worker(0), worker(1))), namespace="n")
LAUNCHER = replace(launcher(), ref=ref("p"), container="c", started_at=LONG_AGO)
DEAD = Exec(pid=41, pod="j-worker-2", started_at=LONG_AGO, ticks=5000)
COUNTER = "mpijob_elastic_ended_execs_total"
ENDED = prints("ended\nended\n")
LATER = replace(DEAD, pid=43, pod="j-worker-3")


async def all_of_them(_view: JobView, action: EndExecs) -> Sequence[Exec]:
    return action.execs


async def one_of_them(_view: JobView, action: EndExecs) -> Sequence[Exec]:
    return action.execs[:1]


async def none_of_them(_view: JobView, _action: EndExecs) -> Sequence[Exec]:
    return ()


async def cannot_tell(_view: JobView, _action: EndExecs) -> Sequence[Exec]:
    raise errors.Unreachable("no answer")


class Sent(Events):
    """Keeps what is to be sent."""

    def reasons(self) -> list[str]:
        """Return all Events so far."""
        return [str(self._waiting.get_nowait()[1]["reason"]) for _ in range(self._waiting.qsize())]


class Recheck(Nothing):
    """Decides on execs as the test says."""

    def __init__(self, of_execs: end_execs.Recheck) -> None:
        self._of_execs = of_execs

    async def execs(self, view: JobView, action: EndExecs) -> Sequence[Exec]:
        return await self._of_execs(view, action)


@dataclass(kw_only=True)
class Ends:
    """A writer beside the looks that it ends execs in. shells: the launcher."""

    writer: Writer
    execs: Execs
    events: Sent
    shells: Shells
    counts: Callable[[], list[float]]

    async def begin(self) -> None:
        await self.writer.perform(VIEW, EndExecs(launcher=LAUNCHER, execs=(DEAD, LATER)))

    async def done(self) -> tuple[list[bool], list[list[str]], list[str]]:
        """Wait until it is over: whether nothing is left of each exec, the commands that were run, the Events."""
        await eventually(lambda: not self.execs._asking)
        tries = self.execs.held(LAUNCHER.ref.uid).tries
        assert list(tries) == [DEAD, LATER]
        ended = [tries[found] == MOST_TRIES for found in (DEAD, LATER)]
        assert sum(self.counts()) >= len(self.shells.asked)
        assert sum(self.counts()[:2]) == sum(ended)
        commands = [asked.command for asked in self.shells.asked]
        return ended, commands, self.events.reasons()


@asynccontextmanager
async def ends(talk: Talk, *, recheck: end_execs.Recheck = all_of_them, time_left: float = 60.0) -> AsyncIterator[Ends]:
    shells = Shells(talk)
    async with connected(shells) as client:
        registry = CollectorRegistry()
        metrics = Metrics(registry)
        gate = gate_of(client, metrics, time_left=time_left)
        events = Sent(gate, metrics=metrics, instance="t", now=lambda: NOW, random=Random(1))
        execs = Execs(client, now=lambda: NOW, wake=lambda namespace, name: None)
        writer = Writer(
            gate, Taken(), recheck=Recheck(recheck), begin_to_end=execs.begin_to_end, events=events, metrics=metrics
        )

        def counts() -> list[float]:
            outcomes = ("ended", "gone", "error")
            return [registry.get_sample_value(COUNTER, {"outcome": outcome}) or 0 for outcome in outcomes]

        try:
            yield Ends(writer=writer, execs=execs, events=events, shells=shells, counts=counts)
        finally:
            await execs.close()


async def end(
    talk: Talk, *, recheck: end_execs.Recheck = all_of_them, time_left: float = 60.0
) -> tuple[list[bool], list[list[str]], list[str]]:
    async with ends(talk, recheck=recheck, time_left=time_left) as world:
        await world.begin()
        return await world.done()


async def test_execs_are_ended_by_one_command_and_that_is_said_once() -> None:
    ended, commands, events = await end(ENDED)
    assert ended == [True, True]
    assert commands == [end_execs.command((DEAD, LATER))]
    assert commands[0][3:] == ["sh", "41 5000 j-worker-2", "43 5000 j-worker-3"]
    assert events == ["FrozenExecEnded"]


async def test_a_shell_that_does_not_answer_holds_no_reconcile_up() -> None:
    async with ends(ENDED) as world:
        world.shells.go.clear()
        await world.begin()
        await eventually(lambda: world.shells.asked)
        held = replace(LAUNCHER, held=replace(world.execs.held(LAUNCHER.ref.uid), frozen=(DEAD, LATER)))
        assert frozen_execs.end(derive(replace(VIEW, launcher=held), now=NOW)) is None
        await world.begin()  # another look at the job, after another look into its launcher
        world.shells.go.set()
        ended, commands, _ = await world.done()
        assert (ended, len(commands)) == ([True, True], 1)


async def test_what_is_no_longer_frozen_is_left_out() -> None:
    ended, commands, _ = await end(prints("ended\n"), recheck=one_of_them)
    assert (ended, commands) == ([True, False], [end_execs.command((DEAD,))])


async def test_what_had_ended_by_itself_is_not_said_to_be_ended() -> None:
    ended, _, events = await end(prints("gone\ngone\n"))
    assert (ended, events) == ([True, True], [])


@pytest.mark.parametrize(
    ("talk", "left"),
    [
        (prints("sh: ended?\n"), 2),
        (prints("ended\n"), 2),
        (prints("ended\nended\nended\n"), 2),
        (prints("ended\nerror\n"), 1),
        (says((STDOUT, "ended\nended\n"), (STATUS, failure("NonZeroExitCode", "exit code 1", "1"))), 2),
        (says((STATUS, failure("InternalError", "no shell"))), 2),
        (says(), 2),
    ],
)
async def test_what_goes_wrong_fails_nothing_and_leaves_them(talk: Talk, left: int) -> None:
    ended, commands, events = await end(talk)
    assert (ended, len(commands), len(events)) == ([left < 2, False], 1, left < 2)


@pytest.mark.parametrize("recheck", [none_of_them, cannot_tell])
async def test_what_does_not_hold_live_is_left_alone(recheck: end_execs.Recheck) -> None:
    done = await end(ENDED, recheck=recheck)
    assert done == ([False, False], [], [])


async def test_only_who_leads_ends_anything() -> None:
    assert await end(ENDED, time_left=0.0) == ([False, False], [], [])
