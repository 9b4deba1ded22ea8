"""A followed log, in virtual time: no line twice and none lost, through everything that ends a stream."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpijob_elastic.cli.jobs import pods
from mpijob_elastic.cli.jobs.logs import LauncherLog, Wanted
from mpijob_elastic.cli.jobs.pods import NotStarted
from mpijob_elastic.cli.jobs.snapshot import NoSuchJob
from mpijob_elastic.kube import errors
from tests.doubles.api import refused
from tests.doubles.launcher_logs import Launcher
from tests.product.kube.virtual_time import run

Day = Callable[[Launcher], Awaitable[None]]


def followed(
    day: Day, *, tail: int | None = None, since: float | None = None
) -> list[bytes | None]:
    """What is read while this happens; the job ends at the end of the day."""

    async def main() -> list[bytes | None]:
        launcher = Launcher()
        read: list[bytes | None] = []

        async def read_all() -> None:
            job = await pods.find_job(launcher.client, "n", "train")
            async for line in LauncherLog(
                launcher.client, job, Wanted(follow=True, tail=tail, since=since)
            ).follow():
                read.append(line and line.text)

        reading = asyncio.create_task(read_all())
        await day(launcher)
        launcher.finish()
        await reading
        return read

    return run(main())


STEPS = ("write", "late", "restart", "replace", "cut", "end", "away", "wait")


class _Writes:
    """A launcher that is written to, and what was written."""

    def __init__(self, launcher: Launcher) -> None:
        self.launcher = launcher
        self.written: list[bytes] = []

    def write(self, *texts: str, late: float = 0.0) -> None:
        for text in texts:
            self.written.append(self.launcher.write(text, late=late))

    async def do(self, step: str) -> None:
        """Do a step of a history."""
        match step:
            case "write":
                self.write("one", "equal", "equal")
            case "late":
                self.write("equal")
                self.write("of the other stream", late=0.01)
            case "restart":
                self.write("the last")
                self.launcher.restart()
                self.write("the first")
                await asyncio.sleep(3)  # only one former container is kept
            case "replace":
                await asyncio.sleep(3)  # the log of a pod goes with it
                self.launcher.replace()
                self.write("the first of a pod")
            case "cut" | "end":
                self.launcher.cut(ends=step == "end")
            case "away":
                self.launcher.away = True
                self.launcher.cut()
                await asyncio.sleep(5)
                await self.do("restart")
                self.launcher.away = False
                await asyncio.sleep(3)


@given(st.lists(st.tuples(st.sampled_from(STEPS), st.floats(0.0, 2.5)), max_size=20))
def test_each_line_comes_once_and_in_order(steps: list[tuple[str, float]]) -> None:
    written: list[bytes] = []

    async def day(launcher: Launcher) -> None:
        writes = _Writes(launcher)
        await asyncio.sleep(1)
        for step, pause in steps:
            await writes.do(step)
            await asyncio.sleep(pause)
        written.extend(writes.written)

    assert followed(day) == written


def test_the_last_line_comes_though_nothing_ends_it() -> None:
    async def day(launcher: Launcher) -> None:
        launcher.write("one")
        launcher.write_rest("two")
        await asyncio.sleep(3)
        launcher.cut(ends=True)  # the line is not known to be whole
        await asyncio.sleep(3)

    assert followed(day) == [b"one", b"two"]


def test_the_tail_is_of_the_past_alone() -> None:
    async def day(launcher: Launcher) -> None:
        for number in range(5):
            launcher.write(str(number))
        await asyncio.sleep(3)
        launcher.cut()
        launcher.write("new")
        await asyncio.sleep(3)

    assert followed(day, tail=2) == [b"3", b"4", None, b"new"]
    assert followed(day, tail=0)[-2:] == [None, b"new"]


def test_what_comes_after_an_empty_past_is_not_cut() -> None:
    async def day(launcher: Launcher) -> None:
        await asyncio.sleep(0.5)
        for number in range(5):
            launcher.write(str(number))
        await asyncio.sleep(3)

    assert followed(day, tail=2) == [None, b"0", b"1", b"2", b"3", b"4"]


def test_what_comes_while_nobody_answers_is_not_too_old() -> None:
    async def day(launcher: Launcher) -> None:
        launcher.write("too old")
        await asyncio.sleep(30)
        launcher.gone = False
        await asyncio.sleep(3)
        launcher.away = True
        launcher.cut()
        await asyncio.sleep(1)
        launcher.write("one")
        await asyncio.sleep(30)
        launcher.away = False
        await asyncio.sleep(3)

    async def later(launcher: Launcher) -> None:
        launcher.gone = True
        await day(launcher)

    assert followed(later, since=5.0) == [b"one"]


def test_a_pending_launcher_is_waited_for_and_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    async def day(launcher: Launcher) -> None:
        launcher.gone = True
        await asyncio.sleep(5)
        launcher.gone, launcher.pending = False, True
        await asyncio.sleep(5)
        launcher.pending = False
        launcher.write("one")
        await asyncio.sleep(5)

    assert followed(day) == [b"one"]
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "mpijob-elastic: train-launcher does not exist yet (Running)",
        "mpijob-elastic: train-launcher has not started: Pending",
    ]


def test_an_api_server_that_is_away_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    async def day(launcher: Launcher) -> None:
        await asyncio.sleep(1)
        launcher.away = True
        launcher.cut()
        await asyncio.sleep(30)
        launcher.away = False
        launcher.write("one")
        await asyncio.sleep(5)

    assert followed(day) == [b"one"]
    assert (
        capsys.readouterr().err == "mpijob-elastic: GET https://api:6443: refused; trying again\n"
    )


def test_a_node_that_does_not_answer_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    async def day(launcher: Launcher) -> None:
        launcher.refused = refused(500, "InternalError", "dial tcp 10.0.0.7:10250: i/o timeout")
        await asyncio.sleep(30)
        launcher.refused = None
        launcher.write("one")

    assert followed(day) == [b"one"]
    [line] = capsys.readouterr().err.splitlines()
    assert line.endswith("i/o timeout; trying again")


def deletes(launcher: Launcher) -> None:
    launcher.deleted = launcher.gone = True


def forbids(launcher: Launcher) -> None:
    launcher.refused = refused(403, "Forbidden", "pods/log")
    launcher.cut()


def is_lost(launcher: Launcher) -> None:
    launcher.refused = refused(500, "InternalError", "node is lost")
    launcher.phase = "Failed"
    launcher.finished = True
    launcher.cut()


def ends_unseen(launcher: Launcher) -> None:
    launcher.gone = launcher.finished = True


@pytest.mark.parametrize(
    ("happens", "at", "error", "words"),
    [
        (deletes, 1, NoSuchJob, "MPIJob train was deleted"),
        (forbids, 1, errors.Forbidden, "pods/log"),
        (is_lost, 1, errors.ApiError, "node is lost"),
        (
            ends_unseen,
            0,
            NotStarted,
            r"train-launcher and its log are gone: train has ended \(Succeeded\)",
        ),
    ],
)
def test_what_ends_it_is_said(
    happens: Callable[[Launcher], None], at: float, error: type[Exception], words: str
) -> None:
    async def day(launcher: Launcher) -> None:
        if at:
            await asyncio.sleep(at)
        happens(launcher)
        await asyncio.sleep(30)

    with pytest.raises(error, match=words):
        followed(day)
