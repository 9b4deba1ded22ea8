"""The host name that a worker gets: never a name under which a rank of this driver may have died."""

from typing import Any

import pytest

from mpijob_elastic import names
from mpijob_elastic.decide import host_list
from mpijob_elastic.model import kubexec
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.memory import Host, Left, Memory, pod_fingerprint
from mpijob_elastic.model.pod import LauncherPhase, Probe, Worker
from tests.builders import (
    KUBEXEC,
    LONG_AGO,
    NOW,
    Story,
    but,
    config,
    failed,
    job,
    launcher,
    named,
    pods,
    worker,
)
from tests.product.decide.plans import change, does, notes, state, those

POD = pods(1)[0]
NEW = worker(1, uid="new")
DRAINED = Probe(busy_seen=True, idle_at=LONG_AGO + 20, asked_at=LONG_AGO + 20, busy_at=LONG_AGO + 9)
LEFT = {POD: Left(pod=pod_fingerprint(f"uid-of-{POD}"), at=LONG_AGO + 10, known_at=LONG_AGO + 10)}
FREE = Host(pod="", incarnation=2)


def back(new: Worker = NEW, *, last: Host | None = None, **facts: Any) -> Story:
    """A job whose worker 1 left the list and is there again, as another pod unless the test says otherwise."""
    hosts = {**{pod: named(pod) for pod in pods(0, 2)}, **({POD: last} if last else {})}
    kept = config(pods(0, 2), memory=Memory(left=facts.pop("left", LEFT), hosts=hosts))
    kept = but(kept, kubexec=facts.pop("kubexec", KUBEXEC))
    return job(3, workers=(worker(0), new, worker(2)), config=kept, **facts)


def name(view: JobView) -> str:
    return state(view).by_name[POD].host


def stale(view: JobView) -> tuple[str, ...]:
    """Published pods that the list names as it should not any more."""
    return those(view, lambda worker: worker.published not in ("", worker.host))


@pytest.mark.parametrize(
    ("view", "host"),
    [
        # Never published, or the very pod that was.
        (back(), POD),
        (back(worker(1), last=named(POD)), POD),
        (back(worker(1), last=named(POD, incarnation=3)), f"{POD}.r3"),
        # Another pod, and nobody saw how the pod before ended.
        (back(last=named(POD)), f"{POD}.r1"),
        (back(last=named(POD, incarnation=3)), f"{POD}.r4"),
        (back(last=named(POD), left={}), f"{POD}.r1"),
        (back(last=named(POD), former={POD: Probe(busy_seen=True, asked_at=NOW)}), f"{POD}.r1"),
        # It drained before it went, or that was written down.
        (back(last=named(POD), former={POD: DRAINED}), POD),
        (back(last=named(POD, incarnation=3), former={POD: DRAINED}), f"{POD}.r3"),
        (back(last=Host(pod="", incarnation=3)), f"{POD}.r3"),
        # It was idle too early: the driver might have started a rank in it after that look.
        (back(last=named(POD), former={POD: but(DRAINED, idle_at=LONG_AGO + 11.9)}), f"{POD}.r1"),
        # The pod that drained is not the pod that got the name last.
        (back(last=named(POD, uid="between"), former={POD: DRAINED}), f"{POD}.r1"),
        # A driver that has yet to start has seen nobody die.
        (back(last=named(POD), launcher=launcher(LauncherPhase.DELIVERING)), POD),
        (back(last=named(POD, incarnation=2), launcher=None), f"{POD}.r2"),
        # No use in a name that the launcher cannot find a pod for.
        (back(last=named(POD), kubexec="#!/bin/sh\nmine\n"), POD),
        (back(last=named(POD), kubexec=None), POD),
        (back(last=named(POD), kubexec=kubexec.mapped(KUBEXEC)), f"{POD}.r1"),
        (back(last=named(POD), elastic=False), POD),
    ],
)
def test_the_name_of_a_worker_that_is_back(view: JobView, host: str) -> None:
    assert name(view) == host


def test_the_first_numbered_name_comes_with_the_script_that_reads_it() -> None:
    view = back(last=named(POD))
    assert does(view) == "publish 0 1.r1 2 (HostsPublished HostRenamed)"
    found = change(view)
    assert found.script == names.discover_hosts([pods(0)[0], f"{POD}.r1", pods(2)[0]], slots=1)
    assert found.hostfile == names.hostfile(list(pods(0, 1, 2)), slots=1)
    assert found.kubexec == kubexec.mapped(KUBEXEC)
    assert found.memory.hosts[POD] == named(POD, uid="new", incarnation=1)
    assert change(back(last=named(POD), kubexec=kubexec.mapped(KUBEXEC))).kubexec is None


def test_without_a_numbered_name_the_script_stays_as_it_is() -> None:
    assert change(back(last=named(POD), former={POD: DRAINED})).kubexec is None
    foreign = back(last=named(POD), kubexec="mine")
    assert does(foreign) == "publish 0 1 2 (HostsPublished HostNameKept)"
    assert change(foreign).kubexec is None


def at_rest(*, host: str = POD, **facts: Any) -> Story:
    listed = config([pods(0)[0], host, pods(2)[0]])
    return job(3, config=listed, **facts).configured(kubexec=kubexec.mapped(KUBEXEC)).shown()


@pytest.mark.parametrize("host", [POD, f"{POD}.r1"])
def test_at_rest_nothing_is_written(host: str) -> None:
    assert does(at_rest(host=host)) == "nothing"
    assert stale(at_rest(host=host)) == ()


REPLACED = at_rest(workers=(worker(0), NEW, worker(2)))


def test_another_pod_under_a_published_name_leaves_at_once_and_comes_back_under_the_next() -> None:
    assert stale(REPLACED) == (POD,)
    assert does(REPLACED) == "publish 0 2, lost 1 (HostsLost)"
    memory = change(REPLACED).memory
    assert memory.hosts[POD] == named(POD)
    assert notes(REPLACED)[0].warning
    after = REPLACED.but(config=but(config(pods(0, 2), memory=memory), kubexec=KUBEXEC)).shown()
    assert name(after) == f"{POD}.r1"


def test_the_only_host_keeps_its_name_for_a_list_must_not_become_empty() -> None:
    view = job(1, workers=(worker(0, uid="new"),))
    assert stale(view) == pods(0)
    assert does(view) == "nothing"


def test_before_the_driver_starts_the_new_pod_takes_the_name_over() -> None:
    view = REPLACED.launched(phase=LauncherPhase.DELIVERING)
    assert does(view) == "remember hosts"
    memory = change(view).memory
    assert memory.hosts[POD] == named(POD, uid="new")
    assert stale(REPLACED.configured(memory=memory)) == ()


def nameless(view: Story) -> Story:
    """The same job, as a controller left it that remembered no names."""
    return view.remembering(hosts={})


def test_what_an_older_version_left_is_taken_as_it_is() -> None:
    assert stale(nameless(REPLACED)) == ()
    assert change(nameless(REPLACED)).memory.hosts[POD] == named(POD, uid="new")


@pytest.mark.parametrize(
    ("view", "kept"),
    [
        (back(failed(1), last=named(POD)), named(POD)),
        (back(failed(1), last=named(POD, incarnation=2)), named(POD, incarnation=2)),
        # A name that drained is free; without a number there is nothing to remember of it.
        (back(failed(1, uid="new"), last=named(POD), former={POD: DRAINED}), None),
        (
            back(failed(1, uid="new"), last=named(POD, incarnation=2), former={POD: DRAINED}),
            Host(pod="", incarnation=2),
        ),
        # A new driver knows no names yet.
        (back(failed(1), last=named(POD, incarnation=2), launcher=None), None),
        (back(failed(1), last=named(POD, incarnation=2), elastic=False), named(POD, incarnation=2)),
    ],
)
def test_what_is_remembered_of_a_pod_that_is_not_in_the_list(
    view: JobView, kept: Host | None
) -> None:
    assert host_list.remembered(state(view), view.published_pods, lost=()).get(POD) == kept


def test_a_pod_that_lost_its_rank_is_remembered_under_the_next_number() -> None:
    view = at_rest(host=f"{POD}.r1")
    kept = host_list.remembered(state(view), pods(0, 2), lost=pods(1))
    assert kept[POD] == named(POD, incarnation=2)
    older = host_list.remembered(state(nameless(at_rest())), pods(0, 2), lost=pods(1))
    assert older[POD] == named(POD, incarnation=1)


def test_of_a_published_pod_that_is_gone_nobody_inherits_the_name() -> None:
    older = nameless(at_rest(workers=(worker(0), worker(2))))
    kept = host_list.remembered(state(older), older.published_pods, lost=())
    assert kept[POD].pod not in ("", pod_fingerprint("new"))


def test_the_memory_is_bounded_for_huge_jobs() -> None:
    size = host_list.MOST_REMEMBERED + 3
    view = job(size)
    kept = host_list.remembered(state(view), view.published_pods, lost=())
    assert len(kept) == host_list.MOST_REMEMBERED
    assert names.worker(view.name, host_list.MOST_REMEMBERED - 1) in kept


DYING = (worker(0), failed(1), worker(2))


@pytest.mark.parametrize(
    ("listed", "workers", "plan"),
    [
        pytest.param(
            (0, 1, 2),
            DYING,
            "publish 0 2, lost 1 (HostsLost)",
            id="its host fails before a memory was written",
        ),
        pytest.param(
            (0, 1, 2),
            (worker(0), worker(2)),
            "publish 0 2, lost 1 (HostsLost)",
            id="its host is gone",
        ),
        pytest.param(
            (),
            DYING,
            "publish 0 2 (HostsPublished)",
            id="the list is lost, in which any may have been",
        ),
    ],
)
def test_a_host_that_is_not_remembered_may_have_had_a_rank_that_died(
    listed: tuple[int, ...], workers: tuple[Worker, ...], plan: str
) -> None:
    view = job(3, workers=workers, config=but(config(pods(*listed)), memory=None))
    assert does(view) == plan
    remembered = change(view).memory.hosts[POD]
    assert workers != DYING or remembered == Host(pod=failed(1).fingerprint, incarnation=0)
    assert name(back(last=remembered)) == f"{POD}.r1"
