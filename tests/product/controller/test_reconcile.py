"""What one look at a job does when a write is refused."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from mpijob_elastic.act.gate import Altered
from mpijob_elastic.controller import reconcile
from mpijob_elastic.controller.reconcile import Reconciler
from mpijob_elastic.decide.actions import (
    ClearWorkload,
    CreateWorkload,
    MakePodGroup,
    MarkReady,
    ProbeWorkers,
    WriteConfig,
)
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.queue import WorkQueue
from mpijob_elastic.model.gang import Gang
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.memory import Left, Memory, pod_fingerprint
from mpijob_elastic.observe.caches import JobKey
from tests.builders import LONG_AGO, NOW, config, job, pending, pods, shown, worker
from tests.queues import GATES, granted, preempted, queue, training, waiting

TRAINED = Memory(added_at=LONG_AGO)
KEY = JobKey("default", "j")
FORBIDDEN = errors.Forbidden(status=403, reason="Forbidden", message="a policy says no")
EXISTS = errors.AlreadyExists(status=409, reason="AlreadyExists", message="somebody else's")
CONFLICT = errors.Conflict(status=409, reason="Conflict", message="it has changed")


@dataclass
class Pauses(WorkQueue[JobKey]):
    """A queue that notes the pauses that are asked for."""

    asked: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(random=Random(1))

    def put_after(self, key: JobKey, delay: float) -> None:
        self.asked.append(delay)


class Refused:
    """Takes in what is to be written, and answers with an error if there is one."""

    def __init__(self) -> None:
        self.error: errors.KubeError | None = None
        self.refuses: type[object] = object
        self.tried: list[object] = []

    async def perform(self, _: JobView, action: object) -> None:
        self.tried.append(action)
        if self.error and isinstance(action, self.refuses):
            raise self.error

    def informed(self, view: JobView) -> JobView:
        return view

    def forget(self, namespace: str, name: str) -> None:
        pass


@dataclass
class Begun:
    """Takes in the looks that begin."""

    looks: list[object] = field(default_factory=list)

    def begin(self, _: JobView, look: object) -> None:
        self.looks.append(look)


def reconciler(
    seen: Callable[[], JobView | None],
    *,
    writer: Refused,
    workloads: Refused,
    queue: Pauses,
    begun: Begun | None = None,
) -> Reconciler:
    def ignore(*_: object, **__: object) -> None:
        pass

    begin = begun.begin if begun else ignore
    anything: Any = SimpleNamespace(watch=ignore, forget=ignore, tidy=ignore, begin=begin, seen=None, held=None)
    anything.timed = lambda view: view
    world: Any = SimpleNamespace(view=lambda *_, **__: seen(), left_behind=lambda _: ())
    asked: Any = workloads
    written: Any = writer
    return Reconciler(
        caches=world,
        queue=queue,
        writer=written,
        workloads=asked,
        units=asked,
        prober=anything,
        execs=anything,
        scales=anything,
        drains=anything,
        now=lambda: NOW,
    )


async def test_kueue_is_asked_ever_later_while_it_refuses_and_at_once_after_a_conflict() -> None:
    """Each try costs reads, a write and perhaps an Event, for as long as a class is missing or a policy refuses."""
    workloads, queue = Refused(), Pauses()
    found: list[JobView | None] = [waiting(2)]
    one = reconciler(lambda: found[0], writer=Refused(), workloads=workloads, queue=queue)
    workloads.error = FORBIDDEN
    for _ in range(12):
        await one.reconcile(KEY)
    assert queue.asked[0] <= 1.0
    assert queue.asked[:5] == sorted(queue.asked[:5])
    assert reconcile.QUEUE_RETRY.longest / 2 <= queue.asked[-1] <= reconcile.QUEUE_RETRY.longest
    workloads.error = CONFLICT
    await one.reconcile(KEY)
    assert queue.asked[-1] <= 1.0
    workloads.error, found[0] = FORBIDDEN, None  # the job is gone, and a new one has its name
    await one.reconcile(KEY)
    found[0] = waiting(2)
    await one.reconcile(KEY)
    assert queue.asked[-1] <= 1.0


@pytest.mark.parametrize(("error", "goes_on"), [(FORBIDDEN, True), (CONFLICT, True), (errors.Unreachable("no"), False)])
async def test_quota_is_given_back_even_if_something_else_is_refused(error: errors.KubeError, goes_on: bool) -> None:
    """Others wait for it. Where nobody answers, the rest would only wait in vain."""
    found = granted(ready=True), preempted("j-worker-2")
    workers = worker(0), worker(1), pending(2, gates=GATES), pending(3, gates=GATES)
    view = training(*workers, found=found, size=4, config=config(pods(0, 1), memory=TRAINED))
    workloads = Refused()
    workloads.error, workloads.refuses = error, CreateWorkload
    await reconciler(lambda: view, writer=Refused(), workloads=workloads, queue=Pauses()).reconcile(KEY)
    assert [type(action) for action in workloads.tried] == [CreateWorkload, *([ClearWorkload] if goes_on else [])]


@pytest.mark.parametrize("error", [FORBIDDEN, EXISTS, Altered("a plugin")])
async def test_a_pod_group_that_is_refused_holds_up_neither_list_nor_drains_nor_queue(error: errors.KubeError) -> None:
    """Somebody may have made one of that name, or its scheduler takes none for a queue that is closed."""
    alone, begun, writer, workloads = Gang(scheduler="volcano"), Begun(), Refused(), Refused()
    view = job(3, replicas=2, gang=alone, serves_gangs=True)
    writer.error, writer.refuses = error, MakePodGroup
    one = reconciler(lambda: view, writer=writer, workloads=workloads, queue=Pauses(), begun=begun)
    with pytest.raises(type(error)):
        await one.reconcile(KEY)
    assert [type(action) for action in writer.tried] == [MakePodGroup, WriteConfig]
    left = Left(pod=pod_fingerprint("uid-of-j-worker-2"), at=NOW - 1)
    memory = Memory(left={"j-worker-2": left}, removed_at=NOW - 1)
    view = shown(replace(view, config=config(pods(0, 1), memory=memory), queue=queue(granted())), at=NOW - 1)
    with pytest.raises(type(error)):
        await one.reconcile(KEY)
    [look] = begun.looks
    assert isinstance(look, ProbeWorkers)
    assert [type(action) for action in workloads.tried] == [MarkReady]


async def test_after_trouble_of_the_server_nothing_further_is_tried() -> None:
    writer = Refused()
    writer.error = errors.Unreachable("no answer")
    view = job(3, replicas=2, gang=Gang(scheduler="volcano"), serves_gangs=True)
    with pytest.raises(errors.Unreachable):
        await reconciler(lambda: view, writer=writer, workloads=Refused(), queue=Pauses()).reconcile(KEY)
    assert len(writer.tried) == 1
