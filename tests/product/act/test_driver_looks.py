"""The looks into launchers for what elastic.sh acknowledged: what is asked, and what is kept."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from mpijob_elastic import names
from mpijob_elastic.act import driver_looks
from mpijob_elastic.act.driver_looks import DriverLooks
from mpijob_elastic.decide.actions import LookAtDriver
from mpijob_elastic.model.acknowledgement import Acknowledgement, parse
from mpijob_elastic.model.bounds import MOST_INT32, MOST_WORKERS
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.memory import Memory
from tests.builders import LONG_AGO, NOW, but, config, launcher, left, mpi_job, pods, ref
from tests.doubles.shells import Shells, Talk, connected, prints
from tests.faults.waiting import eventually

JOB = ("n", "j")
VIEW = but(mpi_job(3), namespace="n")
LAUNCHER = but(launcher(mounts_elastic=True), ref=ref("p"), container="c", started_at=LONG_AGO)
UID = LAUNCHER.ref.uid
RUNNING = "list 12\nstate running\nj-worker-0:2 1a2b3c4d\nj-worker-1:2 00000000\nleft j-worker-4\n"
FOUND = Acknowledgement(
    asked_at=NOW, number=12, busy=frozenset({"j-worker-0", "j-worker-1", "j-worker-4"})
)

TEXTS = {
    "running": (RUNNING, (12, FOUND.busy)),
    "waiting": ("list 3\nstate waiting\n", (3, frozenset())),
    "something stays": ("list 3\nstate waiting\nleft j-worker-2\n", (3, frozenset({"j-worker-2"}))),
    "a list without a number": (
        "list 0\nstate running\nj-worker-2:1 \n",
        (0, frozenset({"j-worker-2"})),
    ),
    "a name of another rank": (
        "list 3\nstate running\nj-worker-2.r1:1 \n",
        (3, frozenset({"j-worker-2"})),
    ),
    "other names": (
        f"list 3\nstate running\na:1 \nk-worker-0:1 \nj-worker-{MOST_WORKERS}:1 \nleft j-launcher\n",
        (3, frozenset()),
    ),
    "nothing": ("", None),
    "cut off": ("list 12\nstate running\nj-worker-0:2 1a2b", None),
    "no list": ("state running\n", None),
    "a long number": ("list 12345678901\nstate running\n", None),
    "no number": ("list -1\nstate running\n", None),
    "another program's": ("hello\nlist 12\n", None),
}


@pytest.mark.parametrize(("text", "found"), TEXTS.values(), ids=TEXTS)
def test_an_acknowledgement_is_read(text: str, found: tuple[int, frozenset[str]] | None) -> None:
    assert parse(text, job="j") == found


@asynccontextmanager
async def looks_at(talk: Talk) -> AsyncIterator[tuple[DriverLooks, Shells, list[tuple[str, str]]]]:
    shells, woken = Shells(talk), list[tuple[str, str]]()
    async with connected(shells) as client:
        looks = DriverLooks(client, now=lambda: NOW, wake=lambda *job: woken.append(job))
        try:
            yield looks, shells, woken
        finally:
            await looks.close()


async def look(looks: DriverLooks, view: JobView = VIEW) -> Acknowledgement:
    looks.begin(view, LookAtDriver(launcher=LAUNCHER))
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
    too_long = "left j-worker-4\n" * 500
    async with looks_at(prints(f"list 12\n{too_long}")) as (looks, _, _):
        assert (await look(looks)).number == -1


@pytest.mark.parametrize("size", [1, 100, MOST_WORKERS])
async def test_the_longest_text_of_elastic_sh_is_read(size: int) -> None:
    hosts = [names.worker("j", index) for index in range(size)]
    lines = [f"{host}:{MOST_INT32} 1a2b3c4d\nleft {host}\n" for host in hosts]
    text = f"list {MOST_INT32}\nstate running\n{''.join(lines)}"
    async with looks_at(prints(text)) as (looks, _, _):
        found = await look(looks, but(VIEW, replicas=size))
        assert found.busy == {*hosts}


async def test_no_size_makes_a_look_read_without_end() -> None:
    text = "list 1\n" + "left j-worker-0\n" * (2**20 // 16)
    async with looks_at(prints(text)) as (looks, _, _):
        assert (await look(looks, but(VIEW, replicas=MOST_INT32))).number == -1


async def test_what_was_acknowledged_is_kept_while_a_worker_drains() -> None:
    async with looks_at(prints(RUNNING)) as (looks, _, _):
        await look(looks)
        memory = Memory(left={"j-worker-2": left("j-worker-2", ago=1)})
        looks.tidy(but(VIEW, config=config(pods(0, 1), memory=memory)))
        assert looks.seen(JOB, UID) == FOUND
        looks.tidy(VIEW)
        assert looks.seen(JOB, UID) == Acknowledgement()


async def test_an_answer_after_the_job_is_gone_is_dropped() -> None:
    async with looks_at(prints(RUNNING)) as (looks, _, woken):
        looks.begin(VIEW, LookAtDriver(launcher=LAUNCHER))
        looks.forget(JOB)
        await eventually(lambda: not looks._asking)
        assert looks.seen(JOB, UID) == Acknowledgement()
        assert woken == []
