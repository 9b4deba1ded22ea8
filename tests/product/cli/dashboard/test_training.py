"""How the open pages of a job look into its workers: some at a time, in turn, at a pace."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from mpijob_elastic.cli.dashboard import training
from mpijob_elastic.cli.dashboard.training import NOTHING, FollowedTraining, Trainings
from mpijob_elastic.cli.jobs import progress_looks, progress_report
from mpijob_elastic.model.goodput import Spent
from mpijob_elastic.model.job import JobView
from tests import builders
from tests.builders import job
from tests.doubles.api import refused
from tests.doubles.shells import STATUS, STDOUT, SUCCESS, Asked, DirectShells, Message, Shells
from tests.product.kube.virtual_time import run

KEY = ("n", "j")


def trains(size: int) -> JobView:
    """A job whose seconds are accounted for."""
    view = job(size).remembering(spent=Spent())
    for index in range(size):
        view = view.pod(index, node="node", bound_at=builders.LONG_AGO)
    return view


@pytest.fixture(autouse=True)
def one_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clocks of the process go with the loop."""

    class Clocks:
        monotonic = staticmethod(lambda: asyncio.get_running_loop().time())
        time = staticmethod(lambda: builders.NOW + asyncio.get_running_loop().time())

    for module in (training, progress_looks):
        monkeypatch.setattr(module, "time", Clocks)


def line(now: float) -> str:
    begun = builders.NOW - 50.0
    return (
        f"alive v1 7 99 1200 128 2 {now:.3f} 312.5 0 {begun:.3f} {begun:.3f} 40.0 3.0 10 5.0 4000\n"
    )


async def trains_on(asked: Asked) -> AsyncIterator[Message]:
    """Answer as a rank that has done nothing but steps that are kept."""
    await asyncio.sleep(0.1)
    begun, now = builders.NOW - 50.0, builders.NOW + asked.at
    yield (
        STDOUT,
        f"alive v1 7 99 1200 128 2 {now:.3f} 312.5 0 {begun:.3f} {begun:.3f} {now - begun:.3f} "
        "0 0 0 4000\n",
    )
    yield STATUS, SUCCESS


async def tells(asked: Asked) -> AsyncIterator[Message]:
    await asyncio.sleep(0.1)
    yield STDOUT, line(builders.NOW + asked.at)
    yield STATUS, SUCCESS


async def refuses(asked: Asked) -> AsyncIterator[Message]:
    raise refused(403, "Forbidden", "no")
    yield STATUS, SUCCESS


async def hangs(asked: Asked) -> AsyncIterator[Message]:
    await asyncio.sleep(1e9)
    yield STATUS, SUCCESS


async def page(client: Any, trainings: Trainings, view: JobView, seconds: float) -> list[Any]:
    """Show a job for so long, and return what was shown."""
    shown: list[Any] = []
    with trainings.shared(KEY) as followed:
        until = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < until:
            shown.append(await followed.look(client, view))
            await asyncio.sleep(0.2)
    return shown


def looks(shells: Shells) -> list[tuple[int, str]]:
    return [(round(asked.at), asked.pod[-1]) for asked in shells.asked]


def test_workers_are_looked_into_in_turn_and_at_first_at_once() -> None:
    shells = Shells(tells)
    shown = run(page(DirectShells(shells), Trainings(), trains(3), 20.0))
    assert looks(shells)[:3] == [(0, "0"), (0, "1"), (1, "2")]
    assert [pod for _, pod in looks(shells)] == [*"0120120120"][: len(shells.asked)]
    pauses = [
        later.at - one.at for one, later in zip(shells.asked[2:], shells.asked[3:], strict=False)
    ]
    assert all(training.APART <= pause < training.APART + 0.5 for pause in pauses)
    assert shown[0]["progress"].step == 1200
    assert shown[0]["goodput"] is None  # nobody has looked into the others
    assert shown[-1]["goodput"].unknown == 0.0
    assert shown[-1]["goodput"].kept == 3 * 45.0


@pytest.mark.parametrize("size", [10, 64, 150, 300])
def test_the_seconds_of_many_workers_are_right_within_a_few_percent(size: int) -> None:
    shells, minutes = Shells(trains_on), 20
    shown = run(page(DirectShells(shells), Trainings(), trains(size), minutes * 60.0))
    seen = [one["goodput"] for one in shown if one["goodput"]]
    last, middle = seen[-1], seen[len(seen) // 2]
    bound_for = builders.NOW - builders.LONG_AGO
    assert last.allocated == pytest.approx(size * (bound_for + minutes * 60.0), rel=0.03)
    assert last.kept == pytest.approx(size * (50.0 + minutes * 60.0), rel=0.03)
    grown = size * minutes * 60.0 / 2
    assert last.allocated - middle.allocated == pytest.approx(grown, rel=0.03)
    assert last.kept - middle.kept == pytest.approx(grown, rel=0.03)
    # What it costs: a tenth of the workers a turn, and no burst.
    turns = training.TURNS + minutes * 60.0 / training.APART
    assert len(shells.asked) <= turns * training.of_turn(size)
    assert shells.most_at_once <= progress_looks.AT_ONCE


@pytest.mark.parametrize(
    ("listed", "looks_of_a_turn"), [(0, 0), (1, 1), (10, 1), (11, 2), (300, 30), (10000, 32)]
)
def test_the_looks_of_a_turn_are_bounded(listed: int, looks_of_a_turn: int) -> None:
    assert training.of_turn(listed) == looks_of_a_turn


def test_two_pages_of_a_job_share_its_looks() -> None:
    shells, trainings, view = Shells(tells), Trainings(), trains(2)

    async def both() -> None:
        client = DirectShells(shells)
        await asyncio.gather(*(page(client, trainings, view, 20.0) for _ in range(2)))

    run(both())
    assert shells.most_at_once == 1
    assert len(shells.asked) <= 2 + 20.0 / training.APART


def test_nothing_is_kept_once_the_last_page_is_closed() -> None:
    trainings = Trainings()
    with trainings.shared(KEY) as one:
        with trainings.shared(KEY) as other:
            assert one is other
        with trainings.shared(KEY) as other:
            assert one is other
    with trainings.shared(KEY) as other:
        assert one is not other


def test_who_may_not_exec_sees_the_bounds_and_asks_seldom() -> None:
    shells = Shells(refuses)
    [*_, last] = run(page(DirectShells(shells), Trainings(), trains(3), 50.0))
    assert [at for at, _ in looks(shells)] == [0, 30]
    assert last["progress"] is None
    assert last["goodput"].kept == 0.0
    assert last["goodput"].unknown > 0.0


def test_a_worker_that_hangs_does_not_keep_the_others_from_telling() -> None:
    async def talk(asked: Asked) -> AsyncIterator[Message]:
        answer = hangs if asked.pod.endswith("0") else tells
        async for message in answer(asked):
            yield message

    shells = Shells(talk)
    [*_, last] = run(page(DirectShells(shells), Trainings(), trains(2), 20.0))
    assert shells.most_at_once == 1
    assert last["progress"].step == 1200


@pytest.mark.parametrize(
    "view",
    [
        pytest.param(trains(2).plain(), id="not elastic"),  # type: ignore[attr-defined]
        pytest.param(job(2, finished=True), id="finished"),
    ],
)
def test_into_a_job_that_does_not_train_nobody_looks(view: JobView) -> None:
    shells = Shells(tells)
    [*_, last] = run(page(DirectShells(shells), Trainings(), view, 9.0))
    assert (shells.asked, last["progress"]) == ([], None)


def test_a_job_that_cannot_be_counted_leaves_the_rest_of_the_page_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise OverflowError("no such number")

    monkeypatch.setattr(progress_report, "following", fails)
    assert run(page(DirectShells(Shells(tells)), Trainings(), trains(2), 1.0))[-1] == NOTHING


def test_a_pod_that_goes_keeps_its_seconds_while_the_page_is_open() -> None:
    view, shells = trains(2), Shells(tells)

    async def shrinks() -> tuple[Any, Any]:
        followed, client = FollowedTraining(), DirectShells(shells)
        for _ in range(8):
            before = await followed.look(client, view)
            await asyncio.sleep(1.0)
        after = before
        for _ in range(4):
            after = await followed.look(client, view.without(1))  # type: ignore[attr-defined]
            await asyncio.sleep(1.0)
        return before["goodput"], after["goodput"]

    before, after = run(shrinks())
    assert after.allocated > before.allocated
