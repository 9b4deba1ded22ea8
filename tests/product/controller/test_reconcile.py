"""What one look at a job does when a write is refused."""

from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from mpijob_elastic.act.leader_writer import Altered
from mpijob_elastic.act.writer import Outdated
from mpijob_elastic.capabilities.gangs.facts import Gang
from mpijob_elastic.capabilities.gangs.wishes import MakePodGroup
from mpijob_elastic.capabilities.history.changes import Sized
from mpijob_elastic.capabilities.kueue.actions import ClearWorkload, CreateWorkload, MarkReady
from mpijob_elastic.controller import per_job_state
from mpijob_elastic.controller.per_job_state import Refusals
from mpijob_elastic.controller.reconcile import Reconciler
from mpijob_elastic.decide.actions import (
    DeleteLauncher,
    DeleteWorkers,
    ProbeWorkers,
    TellUser,
    WriteConfig,
    WriteRole,
)
from mpijob_elastic.decide.state import REFUSED_OFTEN
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.queue import WorkQueue
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.memory import Left, Memory, pod_fingerprint
from mpijob_elastic.model.policy import Policy
from mpijob_elastic.observe.watching import JobKey
from tests.builders import LONG_AGO, NOW, config, job, pending, pods, role, shown, worker
from tests.queues import GATES, granted, preempted, queue, training, waiting

TRAINED = Memory(added_at=LONG_AGO)
KEY = JobKey("default", "j")
FORBIDDEN = errors.Forbidden(status=403, reason="Forbidden", message="a policy says no")
EXISTS = errors.AlreadyExists(status=409, reason="AlreadyExists", message="somebody else's")
CONFLICT = errors.Conflict(status=409, reason="Conflict", message="it has changed")
OUTDATED = Outdated("it has changed")
TROUBLE = errors.ApiError(status=500, reason="InternalError", message="failed calling webhook")
TOO_SLOW = errors.TooSlow(status=504, reason="Timeout", message="a webhook does not answer")


@dataclass
class Pauses(WorkQueue[JobKey]):
    """A queue that notes the pauses that are asked for."""

    asked: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(random=Random(1))

    def put_after(self, key: JobKey, delay: float) -> None:
        self.asked.append(delay)


@dataclass
class Api:
    """Takes in what is written, looked into and said of a job, and refuses some writes.

    An action is refused as often as `refuses` has an error for its kind; then it changes nothing
    here, too, so a round ends with what was taken.
    """

    view: JobView | None
    refuses: dict[type, Exception] = field(default_factory=dict)
    tried: list[type] = field(default_factory=list)
    looks: list[object] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    pauses: Pauses = field(default_factory=Pauses)
    clock: float = 0.0

    def __post_init__(self) -> None:
        def ignore(*_: object, **__: object) -> None:
            pass

        anything: Any = SimpleNamespace(
            watch=ignore,
            forget=ignore,
            tidy=ignore,
            seen=ignore,
            held=ignore,
            timed=lambda view: view,
        )
        anything.execs = anything.events = anything
        anything.informed, anything.begin = anything.timed, lambda _, look: self.looks.append(look)
        anything.perform, anything.jobless = self._perform, self._jobless
        anything.view, anything.left_behind = lambda *_, **__: self.view, lambda _: ()
        anything.followed = anything.timed
        anything.emit = lambda _, note: self.said.append(note.line)
        self.reconciler = Reconciler(
            caches=anything,
            queue=self.pauses,
            writer=anything,
            prober=anything,
            driver_looks=anything,
            scales=anything,
            ledgers=anything,
            drains=anything,
            now=lambda: NOW,
            refusals=Refusals(clock=lambda: self.clock),
        )

    async def _perform(self, _: JobView, action: object) -> None:
        self.tried.append(type(action))
        if error := self.refuses.get(type(action)):
            raise error

    async def _jobless(self, *_: str) -> None:
        pass

    async def look(self, *, rounds: int = 1) -> list[type]:
        """Look at the job, and return what was tried; it stays as it is, so only so many rounds."""
        self.tried.clear()
        with mock.patch("mpijob_elastic.controller.reconcile.MOST_ROUNDS", rounds):
            await self.reconciler.reconcile(KEY)
        return self.tried


async def test_what_is_refused_is_tried_ever_later_and_told_once() -> None:
    """Each try costs reads, a write and perhaps an Event, for as long as a class is missing or a policy refuses."""
    api = Api(waiting(2), {CreateWorkload: FORBIDDEN})
    waits = []
    for _ in range(12):
        assert CreateWorkload in await api.look()
        assert (
            CreateWorkload not in await api.look()
        )  # a change of the job does not have it tried earlier
        waits.append(api.reconciler.refusals.again_in(KEY) or 0.0)
        api.clock += waits[-1]
    assert waits[0] <= 1.0
    assert waits[:5] == sorted(waits[:5])
    assert per_job_state.WRITE_RETRY.longest / 2 <= waits[-1] <= per_job_state.WRITE_RETRY.longest
    [said] = api.said
    assert said.startswith("Refused: not done: ask queue team for quota with the Workload")
    assert "a policy says no" in said
    api.view = None  # the job is gone, and a new one has its name
    await api.look()
    api.view = waiting(2)
    assert await api.look() == [CreateWorkload]
    assert api.pauses.asked[-1] <= 1.0


async def test_a_write_of_something_else_is_tried_at_once() -> None:
    api = Api(job(4, replicas=3), {WriteConfig: FORBIDDEN})
    assert WriteConfig in await api.look()
    assert WriteConfig not in await api.look()
    api.view = job(4, replicas=2)
    assert WriteConfig in await api.look()


QUOTA_WANTED = training(
    worker(0),
    worker(1),
    pending(2, gates=GATES),
    pending(3, gates=GATES),
    found=(granted(ready=True), preempted("j-worker-2")),
    size=4,
    config=config(pods(0, 1), memory=TRAINED),
)


@pytest.mark.parametrize(
    "error", [FORBIDDEN, EXISTS, Altered("a plugin"), CONFLICT, OUTDATED, TROUBLE, TOO_SLOW]
)
async def test_quota_is_given_back_even_if_something_else_is_refused(error: Exception) -> None:
    """Others wait for it. What has changed is seen again, after all that is due."""
    api = Api(QUOTA_WANTED, {CreateWorkload: error})
    with pytest.raises(type(error)) if error in (CONFLICT, OUTDATED) else nullcontext():
        await api.look()
    assert api.tried[-2:] == [CreateWorkload, ClearWorkload]


async def test_what_admission_is_too_slow_for_is_told_while_it_lasts() -> None:
    api = Api(waiting(2), {CreateWorkload: TOO_SLOW})
    for _ in range(REFUSED_OFTEN):
        await api.look()
        api.clock += api.reconciler.refusals.again_in(KEY) or 0.0
    [said] = api.said
    assert "a webhook does not answer" in said
    assert "a webhook does not answer" in api.reconciler.refusals.seen(KEY)[CreateWorkload]
    api.refuses.clear()
    await api.look()
    assert api.reconciler.refusals.seen(KEY) == {}


@pytest.mark.parametrize("error", [FORBIDDEN, TOO_SLOW, errors.Unreachable("no answer")])
async def test_the_looks_of_a_round_wait_for_no_write(error: Exception) -> None:
    """A write may take twelve seconds; ranks leave in three, and are cut after the drain-timeout."""
    drains = shown(job(3, replicas=2, config=config(pods(0, 1), memory=LEFT)), at=NOW - 1)
    api = Api(drains.but(problems=("odd",)), {TellUser: error})
    with suppress(errors.Unreachable):
        await api.look()
    assert api.tried == [TellUser]
    assert [type(look) for look in api.looks] == [ProbeWorkers]


async def test_where_nobody_answers_nothing_further_is_tried() -> None:
    api = Api(QUOTA_WANTED, {CreateWorkload: errors.Unreachable("no")})
    with pytest.raises(errors.Unreachable):
        await api.look()
    assert api.tried[-1] is CreateWorkload


LEFT = Memory(
    left={"j-worker-2": Left(pod=pod_fingerprint("uid-of-j-worker-2"), at=NOW - 1)},
    removed_at=NOW - 1,
)
DRAINS = shown(
    job(3, replicas=2, config=config(pods(0, 1), memory=LEFT), queue=queue(granted())), at=NOW - 1
)
GANG = {"gang": Gang(scheduler="volcano"), "serves_gangs": True}
LISTED = job(2).shrunk(from_=4).drained(3).but(replicas=1)
SUSPENDED = job(1, suspended_by="its annotation", config=config(pods(0), memory=TRAINED))


@pytest.mark.parametrize(
    ("view", "refused", "goes_on"),
    [
        pytest.param(DRAINS.but(**GANG), MakePodGroup, [MarkReady], id="a gang of another's name"),
        pytest.param(DRAINS.but(role=role(0)), WriteRole, [MarkReady], id="the Role"),
        pytest.param(
            DRAINS.but(problems=("odd",)), TellUser, [MarkReady], id="a notice of 256 KiB"
        ),
        pytest.param(LISTED.but(replicas=1), WriteConfig, [DeleteWorkers], id="the host list"),
    ],
)
async def test_a_refused_write_holds_up_neither_drains_nor_queue(
    view: JobView, refused: type, goes_on: list[type]
) -> None:
    api = Api(view, {refused: FORBIDDEN})
    await api.look()
    assert refused in api.tried
    assert set(goes_on) <= set(await api.look())


@pytest.mark.parametrize(
    ("outcome", "marked"),
    [
        pytest.param(None, False, id="deleted: the next round has other marks"),
        pytest.param(FORBIDDEN, True, id="refused"),
        pytest.param(CONFLICT, True, id="changed"),
        pytest.param(OUTDATED, True, id="not to be deleted, as live objects say"),
    ],
)
async def test_marks_wait_for_writes_that_are_taken_alone(
    outcome: Exception | None, *, marked: bool
) -> None:
    """A deletion that fails for long must not hide what is under way, or who asked for it."""
    leaves = shown(job(3, replicas=2, config=config(pods(0, 1), memory=LEFT)), at=NOW - 1)
    sized = Sized(by="kubectl-edit", at=LONG_AGO)
    api = Api(leaves.but(policy=Policy(drain_timeout=0.0), sized=sized))
    if outcome:
        api.refuses[DeleteWorkers] = outcome
    with suppress(errors.Conflict, Outdated):
        await api.look()
    assert DeleteWorkers in api.tried
    assert (TellUser in api.tried) is marked


async def test_a_notice_that_is_refused_is_tried_ever_later_too() -> None:
    """It must not tell of itself: with each other text it would be tried at once."""
    api = Api(job(2, problems=("odd",)), {TellUser: FORBIDDEN})
    tries = 0
    for _ in range(60):
        tries += len(await api.look())
        api.clock += 1
    assert tries <= 10
    assert len(api.said) == 1


async def test_a_launcher_is_deleted_only_after_the_notice_that_holds_back_the_next() -> None:
    api = Api(SUSPENDED, {TellUser: FORBIDDEN})
    for _ in range(3):
        assert DeleteLauncher not in await api.look()
        api.clock += 60
    api.refuses.clear()
    assert await api.look() == [TellUser, DeleteLauncher]


async def test_what_a_driver_acknowledged_is_tidied_at_the_end_of_a_look() -> None:
    api, looks = Api(job(2)), mock.Mock()
    api.reconciler = replace(api.reconciler, driver_looks=looks)
    await api.look()
    looks.tidy.assert_called_once_with(api.view)
