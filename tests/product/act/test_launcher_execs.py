"""The looks into launchers: which execs are held to be frozen, and when a launcher is asked to end them."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from mpijob_elastic.act import launcher_execs
from mpijob_elastic.act.launcher_execs import Execs, end_command
from mpijob_elastic.act.looks import FairTurns
from mpijob_elastic.act.writer import Writer
from mpijob_elastic.decide import derive, frozen_execs
from mpijob_elastic.decide.actions import EndExecs, LookIntoLauncher
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model.bounds import BYTES_AN_EXEC, MOST_EXECS
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.kubexec import MOST_TRIES, NO_ROLL_CALL, Exec, HeldExecs, RollCall
from mpijob_elastic.model.launch_command import Launch
from mpijob_elastic.model.pod import Launcher, Probe
from mpijob_elastic.telemetry.metrics import Metrics
from tests.builders import LONG_AGO, but, job, launcher, ref, role, worker
from tests.counted import calls
from tests.doubles.shells import (
    STATUS,
    STDOUT,
    Shells,
    Talk,
    connected,
    failure,
    prints,
    prints_in_turn,
    says,
)
from tests.faults.waiting import eventually
from tests.product.act.writes import Nothing, Taken, Told, leader_writer_of

VIEW = but(job(2, workers=(worker(0), worker(1))), namespace="n")
LAUNCHER = but(launcher(), ref=ref("p"), container="c", started_at=LONG_AGO)
AT = LONG_AGO + 500.25
UP, ALIVE, GONE = "main 25\n", "7 10025 j-worker-1\n", "8 10025 j-worker-2\n"
ABOUT = frozenset({"a reason"})


class Looks:
    """Looks into a launcher, and the jobs that they have woken. shells: the launcher."""

    def __init__(self, client: ApiWriter, shells: Shells) -> None:
        self.client, self.shells, self.woken = client, shells, list[tuple[str, str]]()
        self.execs = Execs(client, now=lambda: AT, wake=lambda *job: self.woken.append(job))

    @property
    def held(self) -> HeldExecs:
        return self.execs.held(("n", "j"), LAUNCHER.ref.uid)

    def begin(self, view: JobView = VIEW, at: Launcher = LAUNCHER) -> None:
        self.execs.begin(view, LookIntoLauncher(launcher=at, about=ABOUT))

    async def done(self, *, still_asking: int = 0) -> HeldExecs:
        await eventually(lambda: len(self.execs._asking) <= still_asking)
        return self.held

    async def look(self, view: JobView = VIEW, at: Launcher = LAUNCHER) -> HeldExecs:
        """Return the execs held after another look."""
        before = len(self.woken)
        self.begin(view, at)
        held = await self.done()
        assert len(self.woken) == before + 1
        return held

    async def ended(self, outcomes: dict[Exec, bool], *, still_asking: int = 0) -> HeldExecs:
        """Return the execs held after these were tried to be ended."""

        async def end() -> dict[Exec, bool]:
            return outcomes

        self.execs.begin_to_end(VIEW, EndExecs(launcher=LAUNCHER, execs=tuple(outcomes)), end)
        assert not set(self.held.frozen) & set(outcomes)  # nobody is told of them before it is over
        return await self.done(still_asking=still_asking)


@asynccontextmanager
async def looks_at(talk: Talk) -> AsyncIterator[Looks]:
    shells = Shells(talk)
    async with connected(shells) as client:
        found = Looks(client, shells)
        try:
            yield found
        finally:
            await found.execs.close()


def looks(*texts: str) -> AbstractAsyncContextManager[Looks]:
    """Looks at a launcher that prints so after the first line, the last again and again."""
    return looks_at(prints_in_turn(*(UP + text for text in texts)))


def due(held: HeldExecs) -> tuple[Exec, ...]:
    """Return the execs that the plan ends now."""
    end = frozen_execs.end(derive(but(VIEW, launcher=but(LAUNCHER, held=held)), now=held.asked_at))
    return end.execs if end else ()


async def test_what_two_looks_find_is_frozen_and_what_one_finds_is_not() -> None:
    async with looks(ALIVE + GONE, ALIVE + GONE, ALIVE) as found:
        once = await found.look()
        assert ([found.pid for found in once.suspects], once.frozen) == ([8], ())
        assert (once.asked_at, once.about) == (AT, ABOUT)
        assert [found.pid for found in (await found.look()).frozen] == [8]
        over = await found.look()
        assert (over.suspects, over.frozen) == ((), ())
        assert found.woken == [("n", "j")] * 3


MISSED = Probe(
    busy_seen=True, busy_at=AT - 10, busy_since=LONG_AGO, idle_since=AT - 3, idle_at=AT - 3
)


@pytest.mark.parametrize(
    ("held", "has_ended"),
    [(ALIVE, False), (ALIVE + "9 10025 j-worker-0\n", True), ("", False), ("rubbish\n", False)],
)
async def test_a_look_shows_that_the_exec_of_a_missed_rank_has_ended(
    held: str, *, has_ended: bool
) -> None:
    view = job(3, launch=Launch(program="horovodrun"), launcher=LAUNCHER).pod(2, probe=MISSED)
    async with looks(held) as found:
        after = await found.look(but(view, namespace="n"))
    assert bool(after.ended) == has_ended


@pytest.mark.parametrize(
    ("second", "suspects"),
    [
        pytest.param("8 10026 j-worker-2\n", [(8, 10026)], id="another process of the same id"),
        pytest.param(None, [(8, 10025)], id="a look that fails"),
    ],
)
async def test_what_the_second_look_does_not_find_is_not_frozen(
    second: str | None, suspects: list[tuple[int, int]]
) -> None:
    talk = prints_in_turn(UP + GONE, UP + second if second else "sh: not found\n")
    async with looks_at(talk) as found:
        await found.look()
        after = await found.look()
        assert ([(found.pid, found.ticks) for found in after.suspects], after.frozen) == (
            suspects,
            (),
        )


SHARING = but(LAUNCHER, shares_processes=True)


async def test_a_launcher_that_shares_its_processes_is_asked_for_its_own() -> None:
    async with looks(GONE) as found:
        await found.look()
        await found.look(at=SHARING)
        asked = [one.command for one in found.shells.asked]
        assert asked == [launcher_execs.COMMAND, launcher_execs.SHARED_COMMAND]


async def test_a_launcher_whose_own_processes_cannot_be_told_holds_nothing_frozen() -> None:
    async with looks_at(prints_in_turn(UP + GONE, "hidden\n", UP + GONE)) as found:
        assert not (await found.look(at=SHARING)).hidden
        hidden = await found.look(at=SHARING)
        assert (hidden.hidden, hidden.frozen) == (True, ())
        assert not (await found.look(at=SHARING)).hidden


def printed(size: int) -> str:
    """As many bytes of a launcher's shell about different execs into a pod that is gone."""
    lines = (f"{pid} 10025 j-worker-2\n" for pid in range(size))
    return "".join(islice(lines, size // len("1000 10025 j-worker-2\n")))


async def test_twice_as_many_execs_take_twice_the_work() -> None:
    counts = []
    for size in (32 * 2**10, 64 * 2**10):
        async with looks(printed(size)) as found:
            large = but(VIEW, role=role(*range(2000)))
            await found.look(large)
            with calls() as counted:
                held = await found.look(large)
            assert len(held.frozen) == len(held.suspects) == printed(size).count("\n")
        counts.append(counted["__eq__"])
    assert counts[1] <= 2.5 * counts[0]


@pytest.mark.parametrize("slots", [1, 2**31 - 1])
async def test_no_launcher_is_believed_to_hold_more_execs_than_its_size_allows(slots: int) -> None:
    view = but(VIEW, slots=slots)
    lines = [f"{pid} 10025 j-worker-2\n" for pid in range(view.most_execs + 1)]
    assert view.most_execs <= MOST_EXECS
    async with looks("".join(lines[:-1]), "".join(lines)) as found:
        assert len((await found.look(view)).suspects) == view.most_execs
        assert (await found.look(view)).frozen == ()


@pytest.mark.parametrize(
    ("text", "at"),
    [
        pytest.param(
            "#" * BYTES_AN_EXEC * VIEW.most_execs, LAUNCHER, id="what prints without end is cut off"
        ),
        pytest.param(
            GONE, but(LAUNCHER, started_at=None), id="nobody knows since when the launcher runs"
        ),
    ],
)
async def test_nothing_is_found(text: str, at: Launcher) -> None:
    async with looks(text) as found:
        assert await found.look(at=at) == HeldExecs(asked_at=AT, about=ABOUT)


async def test_what_was_ended_is_not_told_unless_it_is_found_still() -> None:
    async with looks(GONE) as found:
        await found.look()
        [dead] = due(await found.look())
        after = await found.ended({dead: True})
        assert (after.suspects, after.frozen) == ((dead,), ())
        again = await found.look()
        assert again.frozen == (dead,)
        assert due(again) == ()  # it was ended once, and people are told


async def test_what_was_ended_during_a_look_is_not_tried_again() -> None:
    async with looks(GONE) as found:
        await found.look()
        [dead] = due(await found.look())
        found.shells.go.clear()
        found.begin()
        await asyncio.sleep(0)  # it has a turn, and looks
        assert (await found.ended({dead: True}, still_asking=1)).tries == {dead: MOST_TRIES}
        found.shells.go.set()
        held = await found.done()
        assert (held.suspects, due(held)) == ((dead,), ())


async def test_what_cannot_be_ended_is_told_and_tried_again_so_often() -> None:
    async with looks(GONE) as found:
        await found.look()
        tries = 0
        for _ in range(MOST_TRIES + 2):
            held = await found.look()
            assert [found.pid for found in held.frozen] == [8]
            if due(held):
                tries += 1
                assert (
                    due(await found.ended(dict.fromkeys(due(held), False))) == ()
                )  # until the next look
    assert tries == MOST_TRIES


async def test_a_job_that_is_gone_is_forgotten_even_during_a_look() -> None:
    async with looks(GONE) as found:
        await found.look()
        found.execs.forget(("n", "other"))
        assert found.held.suspects
        found.begin()
        found.execs.forget(("n", "j"))
        assert found.held == HeldExecs()
        await found.done()
        assert (found.execs.jobs, len(found.woken)) == ({}, 1)


DEAD = Exec(pid=41, pod="j-worker-2", started_at=LONG_AGO, ticks=5000)
LATER = but(DEAD, pid=43, pod="j-worker-3")
END = EndExecs(launcher=LAUNCHER, execs=(DEAD, LATER))
ENDED = prints("ended\nended\n")


class Recheck(Nothing):
    """So many of the execs are frozen live; None: the API does not answer."""

    def __init__(self, frozen: int | None) -> None:
        self._frozen = frozen

    async def execs(self, view: JobView, action: EndExecs) -> Sequence[Exec]:
        if self._frozen is None:
            raise errors.Unreachable("no answer")
        return action.execs[: self._frozen]


async def end(
    talk: Talk = ENDED, *, frozen: int | None = 2, time_left: float = 60.0, slow: bool = False
) -> tuple[list[bool], list[list[str]], list[str]]:
    """Return whether nothing is left of each exec, the commands that were run, and the Events."""
    async with looks_at(talk) as found:
        registry = CollectorRegistry()
        metrics = Metrics(registry)
        leader_writer = leader_writer_of(found.client, metrics, time_left=time_left)
        told = Told(leader_writer)
        writer = Writer(
            leader_writer=leader_writer,
            seen=Taken(),
            recheck=Recheck(frozen),
            execs=found.execs,
            events=told,
            metrics=metrics,
        )
        if slow:
            found.shells.go.clear()
        await writer.perform(VIEW, END)
        if slow:  # a shell that does not answer holds no reconcile up, and is not asked twice
            await eventually(lambda: found.shells.asked)
            assert due(but(found.held, frozen=(DEAD, LATER))) == ()
            await writer.perform(VIEW, END)
            found.shells.go.set()
        tries = (await found.done()).tries
        assert list(tries) == [DEAD, LATER]
        ended = [tries[each] == MOST_TRIES for each in (DEAD, LATER)]
        counted = {
            outcome: registry.get_sample_value(
                "mpijob_elastic_ended_execs_total", {"outcome": outcome}
            )
            or 0
            for outcome in ("ended", "gone", "error")
        }
        assert sum(counted.values()) >= len(found.shells.asked)
        assert counted["ended"] + counted["gone"] == sum(ended)
        return ended, [asked.command for asked in found.shells.asked], told.notes


@pytest.mark.parametrize(
    ("how", "ended", "tried", "said"),
    [
        pytest.param(
            {}, [True, True], 2, True, id="both are ended by one command, and that is said once"
        ),
        pytest.param({"slow": True}, [True, True], 2, True, id="a shell that does not answer"),
        pytest.param(
            {"talk": prints("gone\ngone\n")},
            [True, True],
            2,
            False,
            id="they had ended by themselves",
        ),
        pytest.param(
            {"talk": prints("ended\nerror\n")}, [True, False], 2, True, id="one cannot be ended"
        ),
        pytest.param(
            {"talk": prints("ended\n"), "frozen": 1},
            [True, False],
            1,
            True,
            id="one is frozen no longer",
        ),
        pytest.param({"frozen": 0}, [False, False], 0, False, id="none is frozen any longer"),
        pytest.param(
            {"frozen": None}, [False, False], 0, False, id="nobody can tell if they are frozen"
        ),
        pytest.param(
            {"time_left": 0.0}, [False, False], 0, False, id="the controller leads no longer"
        ),
        *(
            pytest.param({"talk": talk}, [False, False], 2, False, id=words)
            for words, talk in {
                "another answer": prints("sh: ended?\n"),
                "too few answers": prints("ended\n"),
                "too many answers": prints("ended\nended\nended\n"),
                "an exit code": says(
                    (STDOUT, "ended\nended\n"),
                    (STATUS, failure("NonZeroExitCode", "exit code 1", "1")),
                ),
                "no shell": says((STATUS, failure("InternalError", "no shell"))),
                "no answer": says(),
            }.items()
        ),
    ],
)
async def test_execs_are_ended(
    how: dict[str, Any], ended: list[bool], tried: int, said: bool
) -> None:
    commands = [end_command((DEAD, LATER)[:tried])] if tried else []
    assert await end(**how) == (ended, commands, ["FrozenExecEnded"] * said)
    assert end_command((DEAD, LATER))[3:] == ["sh", "41 5000 j-worker-2", "43 5000 j-worker-3"]


CALLED = {pod: pod for pod in ("j-worker-0", "j-worker-1")}
BOTH = "7 10025 j-worker-0\n8 10025 j-worker-1\n"


async def call(found: Looks, *, woken: bool) -> RollCall:
    """Return the result of a roll call, and see whether it has woken its job."""
    before = len(found.woken)
    found.execs.begin(VIEW, LookIntoLauncher(launcher=LAUNCHER, about=frozenset(), called=CALLED))
    held = await found.done()
    assert len(found.woken) == before + woken
    return held.roll_call


async def test_a_roll_call_tells_whose_exec_is_missing_and_only_that_is_news() -> None:
    async with looks(BOTH, ALIVE, ALIVE, BOTH, "") as found:
        assert (await call(found, woken=False)).is_complete
        missed = await call(found, woken=True)
        assert missed == RollCall(
            asked_at=AT, answered=True, hosts=CALLED, missing=frozenset({"j-worker-0"})
        )
        assert await call(found, woken=False) == missed
        assert (await call(found, woken=False)).is_complete
        assert (await call(found, woken=True)).missing == {*CALLED}


@pytest.mark.parametrize("answer", ["sh: not found\n", "hidden\n"])
async def test_a_roll_call_without_an_answer_misses_nobody(answer: str) -> None:
    async with looks_at(prints_in_turn(answer)) as found:
        failed = await call(found, woken=False)
        assert failed == RollCall(asked_at=AT, hosts=CALLED)
        assert not found.held.hidden


async def test_a_look_that_did_not_end_well_misses_nobody() -> None:
    """A container that ends in the middle of it kills the script: exit code 137."""
    async with looks_at(
        says((STDOUT, UP), (STATUS, failure("NonZeroExitCode", "command terminated", "137")))
    ) as found:
        assert await call(found, woken=False) == RollCall(asked_at=AT, hosts=CALLED)


async def test_the_execs_of_a_job_that_is_over_are_forgotten() -> None:
    async with looks(BOTH) as found:
        await call(found, woken=False)
        found.execs.tidy(VIEW)
        assert found.execs.jobs
        found.execs.tidy(but(VIEW, launcher=None))
        assert not found.execs.jobs


async def test_a_roll_call_changes_nothing_that_other_looks_have_found() -> None:
    async with looks(GONE, GONE, BOTH, BOTH) as found:
        await found.look()
        before = await found.look()
        assert before.frozen
        last = await call(found, woken=False)
        assert found.held == replace(before, roll_call=last)
        after = await found.look()
        assert after.roll_call == last


async def test_roll_calls_wait_for_turns_of_their_own_so_that_other_looks_do_not() -> None:
    async with looks(BOTH) as found:
        found.execs.calls = FairTurns(at_once=1, a_second=1.0, most=3)
        async with found.execs.calls.turn("n", "another"):
            begun = LookIntoLauncher(launcher=LAUNCHER, about=frozenset(), called=CALLED)
            found.execs.begin(VIEW, begun)
            found.execs.begin(VIEW, begun)
            found.begin()
            await found.done(still_asking=1)
            assert found.held.asked_at == AT
            assert found.held.roll_call == NO_ROLL_CALL
            assert len(found.shells.asked) == 1
        assert (await found.done()).roll_call.is_complete
