"""The look into a launcher: the script in real shells, on real processes, and what is read from it."""

import asyncio
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from mpijob_elastic.act import launcher_execs
from mpijob_elastic.act.launcher_execs import Execs
from mpijob_elastic.decide import derive, frozen_execs
from mpijob_elastic.decide.actions import EndExecs, LookIntoLauncher
from mpijob_elastic.model.bounds import BYTES_AN_EXEC, MOST_EXECS
from mpijob_elastic.model.execs import MOST_TRIES, Exec, Held
from mpijob_elastic.model.job import JobView
from tests.builders import LONG_AGO, NOW, job, launcher, ref, role, worker
from tests.counted import calls
from tests.doubles.shells import Shells, connected, prints_in_turn
from tests.faults.waiting import eventually
from tests.product.act.kubectl_execs import SHELLS, kubectl


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
@pytest.mark.parametrize("words", [("my--job-worker-10",), ("my--job-worker-10", "--container", "main")])
def test_the_script_finds_execs_and_prints_nothing_of_their_secrets(
    tmp_path: Path, shell: list[str], words: tuple[str, ...]
) -> None:
    if shutil.which(shell[0]) is None:
        pytest.skip(f"{shell[0]} is not there")
    with kubectl(tmp_path, *words) as process:
        pid, output = process.pid, ""
        while f"\n{pid} " not in output:  # until the process is what it was started to be
            output = subprocess.run(
                [*shell, *launcher_execs.COMMAND[1:]], capture_output=True, text=True, check=True
            ).stdout
    assert "SECRET" not in output
    [found] = [found for found in launcher_execs.parse(output, started_at=NOW) or () if found.pid == pid]
    assert found.pod == "my--job-worker-10"
    assert found.started_at >= NOW  # no process is older than the first


def test_what_is_printed_is_read() -> None:
    output = "main 5000\n7 5025 j-worker-1\n8 15025 j-worker-2--containermain\n"
    assert launcher_execs.parse(output, started_at=NOW) == (
        Exec(pid=7, pod="j-worker-1", started_at=NOW + 0.25, ticks=5025),
        Exec(pid=8, pod="j-worker-2", started_at=NOW + 100.25, ticks=15025),
    )
    assert launcher_execs.parse("main 5000\n", started_at=NOW) == ()


def test_what_is_no_exec_into_a_worker_is_left_out() -> None:
    lines = ["7 1 database-0", "8 1 j-worker-1--tty", "x 1 j-worker-1", "9 j-worker-1", "10 1 j-worker-"]
    assert launcher_execs.parse("main 1\n" + "".join(f"{line}\n" for line in lines), started_at=NOW) == ()


def test_numbers_without_end_are_left_out() -> None:
    long = "9" * 5000
    output = f"main 1\n{long} 1 j-worker-1\n7 {long} j-worker-1\n7 1 j-worker-{long}\n"
    assert launcher_execs.parse(output, started_at=NOW) == ()
    assert launcher_execs.parse(f"main {long}\n", started_at=NOW) is None


@pytest.mark.parametrize("output", ["", "main \n", "sh: not found\n", "7 1 j-worker-1\n"])
def test_what_the_script_did_not_print_says_nothing(output: str) -> None:
    assert launcher_execs.parse(output, started_at=NOW) is None


VIEW = replace(job(2, workers=(worker(0), worker(1))), namespace="n")
LAUNCHER = replace(launcher(), ref=ref("p"), container="c", started_at=LONG_AGO)
ALIVE, GONE = "7 10025 j-worker-1\n", "8 10025 j-worker-2\n"


@asynccontextmanager
async def looker(
    *texts: str, answers: asyncio.Event | None = None
) -> AsyncIterator[tuple[Execs, list[tuple[str, str]]]]:
    """Execs of a launcher that answers so, the last answer again and again, and the jobs that it has woken."""
    shells = Shells(prints_in_turn(*texts))
    shells.go = answers or shells.go
    async with connected(shells) as client:
        woken: list[tuple[str, str]] = []
        found = Execs(client, now=lambda: LONG_AGO + 500.25, wake=lambda *job: woken.append(job))
        try:
            yield found, woken
        finally:
            await found.close()


async def look(found: Execs, woken: list[tuple[str, str]], *, view: JobView = VIEW) -> Held:
    """Return the execs held after another look."""
    before = len(woken)
    found.begin(view, LookIntoLauncher(launcher=LAUNCHER, about=frozenset({"a reason"})))
    # It wakes just before it ends, and begins nothing until it has.
    await eventually(lambda: len(woken) > before and not found._asking)
    return found.held(LAUNCHER.ref.uid)


async def ended(found: Execs, outcomes: dict[Exec, bool], *, still_asking: int = 0) -> Held:
    """Return the execs held after these were tried to be ended."""

    async def end() -> dict[Exec, bool]:
        return outcomes

    found.begin_to_end(VIEW, EndExecs(launcher=LAUNCHER, execs=tuple(outcomes)), end)
    assert not set(found.held(LAUNCHER.ref.uid).frozen) & set(outcomes)  # nobody is told of them before it is over
    await eventually(lambda: len(found._asking) <= still_asking)
    return found.held(LAUNCHER.ref.uid)


async def test_what_two_looks_find_is_frozen_and_what_one_finds_is_not() -> None:
    up = "main 25\n"
    async with looker(up + ALIVE + GONE, up + ALIVE + GONE, up + ALIVE) as (found, woken):
        once = await look(found, woken)
        assert ([found.pid for found in once.suspects], once.frozen) == ([8], ())
        assert (once.asked_at, once.about) == (LONG_AGO + 500.25, frozenset({"a reason"}))
        assert [found.pid for found in (await look(found, woken)).frozen] == [8]
        over = await look(found, woken)
        assert (over.suspects, over.frozen) == ((), ())
        assert woken == [("n", "j")] * 3


def printed(size: int) -> str:
    """As many bytes of a launcher's shell about different execs into a pod that is gone."""
    lines = (f"{pid} 10025 j-worker-2\n" for pid in range(size))
    return "main 25\n" + "".join(islice(lines, size // len("1000 10025 j-worker-2\n")))


async def test_twice_as_many_execs_take_twice_the_work() -> None:
    counts = []
    for size in (32 * 2**10, 64 * 2**10):
        async with looker(printed(size)) as (found, woken):
            large = replace(VIEW, role=role(*range(2000)))
            await look(found, woken, view=large)
            with calls() as counted:
                held = await look(found, woken, view=large)
            assert len(held.frozen) == len(held.suspects) == printed(size).count("\n") - 1
        counts.append(counted["__eq__"])
    assert counts[1] <= 2.5 * counts[0]


@pytest.mark.parametrize("slots", [1, 2**31 - 1])
async def test_no_launcher_is_believed_to_hold_more_execs_than_its_size_allows(slots: int) -> None:
    view = replace(VIEW, slots=slots)
    lines = [f"{pid} 10025 j-worker-2\n" for pid in range(view.most_execs + 1)]
    assert view.most_execs <= MOST_EXECS
    async with looker("main 25\n" + "".join(lines[:-1]), "main 25\n" + "".join(lines)) as (found, woken):
        assert len((await look(found, woken, view=view)).suspects) == view.most_execs
        assert (await look(found, woken, view=view)).frozen == ()


async def test_what_prints_without_end_is_cut_off() -> None:
    async with looker("main 25\n" + "#" * BYTES_AN_EXEC * VIEW.most_execs) as (found, woken):
        held = await look(found, woken)
        assert (held.asked_at, held.suspects) == (LONG_AGO + 500.25, ())


async def test_a_look_that_fails_proves_nothing() -> None:
    async with looker("main 25\n" + GONE, "sh: not found\n") as (found, woken):
        await look(found, woken)
        after = await look(found, woken)
        assert ([found.pid for found in after.suspects], after.frozen) == ([8], ())


async def test_another_process_of_the_same_id_is_not_the_one_that_was_found() -> None:
    other = "8 10026 j-worker-2\n"
    async with looker("main 25\n" + GONE, "main 25\n" + other) as (found, woken):
        await look(found, woken)
        after = await look(found, woken)
        assert ([found.ticks for found in after.suspects], after.frozen) == ([10026], ())


async def test_what_was_ended_is_not_told_unless_it_is_found_still() -> None:
    async with looker("main 25\n" + GONE) as (found, woken):
        await look(found, woken)
        [dead] = due(await look(found, woken))
        after = await ended(found, {dead: True})
        assert (after.suspects, after.frozen) == ((dead,), ())
        again = await look(found, woken)
        assert again.frozen == (dead,)
        assert due(again) == ()  # it was ended once, and people are told


async def test_what_was_ended_during_a_look_is_not_tried_again() -> None:
    answers = asyncio.Event()
    answers.set()
    async with looker("main 25\n" + GONE, answers=answers) as (found, woken):
        await look(found, woken)
        [dead] = due(await look(found, woken))
        answers.clear()
        found.begin(VIEW, LookIntoLauncher(launcher=LAUNCHER, about=frozenset({"a reason"})))
        await asyncio.sleep(0)  # it has a turn, and looks
        held = await ended(found, {dead: True}, still_asking=1)
        assert held.tries == {dead: MOST_TRIES}
        answers.set()
        await eventually(lambda: not found._asking)
        held = found.held(LAUNCHER.ref.uid)
        assert (held.suspects, due(held)) == ((dead,), ())


async def test_what_cannot_be_ended_is_told_and_tried_again_so_often() -> None:
    async with looker("main 25\n" + GONE) as (found, woken):
        await look(found, woken)
        tries = 0
        for _ in range(MOST_TRIES + 2):
            held = await look(found, woken)
            assert [found.pid for found in held.frozen] == [8]
            if due(held):
                tries += 1
                assert due(await ended(found, dict.fromkeys(due(held), False))) == ()  # until the next look
    assert tries == MOST_TRIES


def due(held: Held) -> tuple[Exec, ...]:
    """Return the execs that the plan ends now."""
    view = replace(VIEW, launcher=replace(LAUNCHER, held=held))
    end = frozen_execs.end(derive(view, now=held.asked_at))
    return end.execs if end else ()


async def test_where_nobody_knows_since_when_the_launcher_runs_nothing_is_found() -> None:
    async with looker("main 25\n" + GONE) as (found, woken):
        unstarted = replace(LAUNCHER, started_at=None)
        found.begin(VIEW, LookIntoLauncher(launcher=unstarted, about=frozenset({"a reason"})))
        await eventually(lambda: woken)
        assert found.held(LAUNCHER.ref.uid) == Held(asked_at=LONG_AGO + 500.25, about=frozenset({"a reason"}))


async def test_a_job_that_is_gone_is_forgotten() -> None:
    async with looker("main 25\n" + GONE) as (found, woken):
        await look(found, woken)
        found.forget("n", "other")
        assert found.held(LAUNCHER.ref.uid).suspects
        found.forget("n", "j")
        assert found.held(LAUNCHER.ref.uid) == Held()


async def test_a_look_that_ends_after_its_job_is_forgotten_leaves_nothing() -> None:
    async with looker("main 25\n" + GONE) as (found, woken):
        found.begin(VIEW, LookIntoLauncher(launcher=LAUNCHER, about=frozenset({"a reason"})))
        found.forget("n", "j")
        await eventually(lambda: not found._asking)
        assert (found._held, found._launchers, woken) == ({}, {}, [])
