"""The looks into launchers for what elastic.sh acknowledged: what is asked, and what is kept."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from mpijob_elastic.act import driver_looks
from mpijob_elastic.act.driver_looks import DriverLooks
from mpijob_elastic.decide.actions import LookAtDriver
from mpijob_elastic.model.acknowledgement import Acknowledgement, parse
from mpijob_elastic.model.bounds import BYTES_A_HOST
from tests.builders import LONG_AGO, NOW, but, launcher, mpi_job, ref
from tests.doubles.shells import Shells, Talk, connected, prints
from tests.faults.waiting import eventually

JOB = ("n", "j")
VIEW = but(mpi_job(3), namespace="n")
LAUNCHER = but(launcher(mounts_elastic=True), ref=ref("p"), container="c", started_at=LONG_AGO)
UID = LAUNCHER.ref.uid
RUNNING = (
    "list 12\nstate running\ntrain-worker-0:2 1a2b3c4d\ntrain-worker-1:2 00000000\n"
    "left train-worker-4\n"
)
FOUND = Acknowledgement(
    asked_at=NOW, number=12, busy=frozenset({"train-worker-0", "train-worker-1", "train-worker-4"})
)

TEXTS = {
    "running": (RUNNING, (12, FOUND.busy)),
    "waiting": ("list 3\nstate waiting\n", (3, frozenset())),
    "something stays": ("list 3\nstate waiting\nleft a\n", (3, frozenset({"a"}))),
    "a list without a number": ("list 0\nstate running\na:1 \n", (0, frozenset({"a"}))),
    "nothing": ("", None),
    "cut off": ("list 12\nstate running\ntrain-worker-0:2 1a2b", None),
    "no list": ("state running\n", None),
    "a long number": ("list 12345678901\nstate running\n", None),
    "no number": ("list -1\nstate running\n", None),
    "another program's": ("hello\nlist 12\n", None),
}


@pytest.mark.parametrize(("text", "found"), TEXTS.values(), ids=TEXTS)
def test_an_acknowledgement_is_read(text: str, found: tuple[int, frozenset[str]] | None) -> None:
    assert parse(text) == found


@asynccontextmanager
async def looks_at(talk: Talk) -> AsyncIterator[tuple[DriverLooks, Shells, list[tuple[str, str]]]]:
    shells, woken = Shells(talk), list[tuple[str, str]]()
    async with connected(shells) as client:
        looks = DriverLooks(client, now=lambda: NOW, wake=lambda *job: woken.append(job))
        try:
            yield looks, shells, woken
        finally:
            await looks.close()


async def look(looks: DriverLooks) -> Acknowledgement:
    looks.begin(VIEW, LookAtDriver(launcher=LAUNCHER))
    await eventually(lambda: not looks._asking)
    return looks.seen(JOB, UID)


async def test_a_look_reads_the_file_in_the_drivers_container_and_wakes_the_job() -> None:
    async with looks_at(prints(RUNNING)) as (looks, shells, woken):
        assert looks.seen(JOB, UID) == Acknowledgement()
        assert await look(looks) == FOUND
        assert woken == [JOB]
        [asked] = shells.asked
        assert (asked.pod, asked.container) == ("p", "c")
        assert asked.command == driver_looks.COMMAND
        assert looks.seen(JOB, "another launcher") == Acknowledgement()


async def test_what_cannot_be_read_is_counted_and_changes_nothing() -> None:
    async with looks_at(prints(RUNNING)) as (looks, shells, _):
        await look(looks)
        shells.says = prints("")
        again = await look(looks)
        assert (again.number, again.busy, again.failed) == (12, FOUND.busy, 1)
        assert (await look(looks)).failed == 2
        shells.says = prints(RUNNING)
        assert await look(looks) == FOUND


async def test_a_long_answer_is_not_read() -> None:
    too_long = "left train-worker-4\n" * (BYTES_A_HOST * 5 // 20)
    async with looks_at(prints(f"list 12\n{too_long}")) as (looks, _, _):
        assert (await look(looks)).number == -1


async def test_an_answer_after_the_job_is_gone_is_dropped() -> None:
    async with looks_at(prints(RUNNING)) as (looks, _, woken):
        looks.begin(VIEW, LookAtDriver(launcher=LAUNCHER))
        looks.forget(JOB)
        await eventually(lambda: not looks._asking)
        assert looks.seen(JOB, UID) == Acknowledgement()
        assert woken == []
