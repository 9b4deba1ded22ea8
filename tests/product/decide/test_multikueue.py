"""A job that MultiKueue sends to another cluster, there and in the cluster where the user created it."""

from dataclasses import replace
from typing import Any

import pytest

from mpijob_elastic import names
from mpijob_elastic.decide import decide, workloads
from mpijob_elastic.decide.actions import AdoptWorkload, ClearWorkload, CreateWorkload, DeleteWorkload, TellUser
from mpijob_elastic.model.job import JobView, LauncherPhase
from mpijob_elastic.model.queue import Queue, Workload
from mpijob_elastic.model.wire import Owned
from tests.builders import JOB, NOW, config, job, launcher, pending, pods

GATES = (names.GATE_QUEUED,)
ELSEWHERE: dict[str, Any] = {"elsewhere": True}
SENT: dict[str, Any] = {"prebuilt": True}


def base(*, uid: str = f"uid-of-{JOB}", **facts: Any) -> Workload:
    """A Workload of the launcher and two workers that is granted; `facts` say otherwise."""
    metadata = Owned(name=names.launcher(JOB), namespace="default", uid="w", job=JOB, job_uid=uid)
    return Workload(
        metadata=metadata, queue="team", workers=2, **{"reserved": True, "admitted": True, "ready": True, **facts}
    )


def view(*found: Workload, name: str = "team", **facts: Any) -> JobView:
    """A job of four with a queue; no pod of it has started."""
    queue = Queue(name=name, workloads={one.metadata.name: one for one in found}, **facts)
    workers = tuple(pending(index, gates=GATES) for index in range(4))
    held = launcher(LauncherPhase.WAITING, gates=GATES)
    seen = job(4, workers=workers, launcher=held, known=False, config=config([], hostfile=pods(0, 1, 2, 3)))
    return replace(seen, foreign="elsewhere" if queue.elsewhere else "").queued(queue)


def test_where_the_user_created_it_only_the_quota_of_the_least_workers_is_asked_for() -> None:
    [asked] = workloads.due(view(**ELSEWHERE))
    assert isinstance(asked, CreateWorkload)
    assert list(workloads.due(view(base(), **ELSEWHERE))) == []


def test_its_pods_never_start_there() -> None:
    for seen in (view(**ELSEWHERE), view(base(), **ELSEWHERE), view(base(), name="", **ELSEWHERE)):
        plan = decide(seen, now=NOW)
        assert {type(action) for action in plan.actions} <= {TellUser}
        assert {type(action) for action in plan.queue} <= {CreateWorkload}


def test_quota_that_is_wanted_back_there_is_given_back_at_once() -> None:
    [cleared] = workloads.due(view(base(evicted=True), **ELSEWHERE))
    assert isinstance(cleared, ClearWorkload)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (base(cluster="east"), "runs in cluster east; edit it there"),
        (base(reserved=False, said="no\nquota"), "runs in the cluster that MultiKueue will choose (no quota); edit"),
    ],
)
def test_the_user_is_told_once_where_it_runs(found: Workload, said: str) -> None:
    seen = view(found, **ELSEWHERE)
    [told] = decide(seen, now=NOW).actions
    assert isinstance(told, TellUser)
    assert said in told.text
    assert decide(replace(seen, notices=told.text), now=NOW).actions == ()


def test_the_copy_of_its_workload_is_adopted_where_it_runs() -> None:
    [adopted] = workloads.due(view(base(uid=""), **SENT))
    assert isinstance(adopted, AdoptWorkload)


def test_no_other_workload_is_made_for_the_least_workers_there() -> None:
    assert list(workloads.due(view(**SENT))) == []
    asked = [one.name for one in workloads.due(view(base(), **SENT)) if isinstance(one, CreateWorkload)]
    assert asked == [names.worker(JOB, 2), names.worker(JOB, 3)]


def test_that_copy_stays_while_the_job_is_suspended() -> None:
    kept, own = (replace(view(base(), **facts), suspended_by="you") for facts in (SENT, {}))
    assert list(workloads.due(kept)) == []
    [deleted] = workloads.due(own)
    assert isinstance(deleted, DeleteWorkload)
