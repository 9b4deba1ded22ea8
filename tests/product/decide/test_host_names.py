"""The host name that a worker gets: never a name under which a rank of this driver may have died."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from mpijob_elastic import names
from mpijob_elastic.decide import config_map, derive, host_names
from mpijob_elastic.decide.actions import WriteConfig
from mpijob_elastic.model import kubexec
from mpijob_elastic.model.job import JobView, LauncherPhase, Probe, Worker
from mpijob_elastic.model.memory import Host, Left, Memory, pod_fingerprint
from tests.builders import KUBEXEC, LONG_AGO, NOW, config, failed, job, launcher, named, pods, shown, worker

POD = pods(1)[0]
NEW = worker(1, uid="new")
DRAINED = Probe(busy_seen=True, idle_at=LONG_AGO + 20, asked_at=LONG_AGO + 20, busy_at=LONG_AGO + 9)
LEFT = {POD: Left(pod=pod_fingerprint(f"uid-of-{POD}"), at=LONG_AGO + 10, known_at=LONG_AGO + 10)}
FREE = Host(pod="", incarnation=2)


def back(new: Worker = NEW, *, last: Host | None = None, **facts: Any) -> JobView:
    """A job whose worker 1 left the list and is there again, as another pod unless the test says otherwise."""
    hosts = {**{pod: named(pod) for pod in pods(0, 2)}, **({POD: last} if last else {})}
    kept = config(pods(0, 2), memory=Memory(left=facts.pop("left", LEFT), hosts=hosts))
    kept = replace(kept, kubexec=facts.pop("kubexec", KUBEXEC))
    return job(3, workers=(worker(0), new, worker(2)), config=kept, **facts)


def name(view: JobView) -> str:
    found = view.worker(POD)
    assert found is not None
    return derive(view, now=NOW).by_name[found.name].host


def stale(view: JobView) -> set[str]:
    """Published pods that the list names as it should not any more."""
    workers = derive(view, now=NOW).workers
    return {worker.name for worker in workers if worker.published not in ("", worker.host)}


def change(view: JobView) -> WriteConfig:
    assert view.config is not None
    found, _ = config_map.write(derive(view, now=NOW), view.config)
    assert found is not None
    return found


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
        (back(last=named(POD), former={POD: replace(DRAINED, idle_at=LONG_AGO + 11.9)}), f"{POD}.r1"),
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
    found = change(back(last=named(POD)))
    assert found.added == (POD,)
    assert found.script == names.discover_hosts([pods(0)[0], f"{POD}.r1", pods(2)[0]], slots=1)
    assert found.hostfile == names.hostfile(list(pods(0, 1, 2)), slots=1)
    assert found.kubexec == kubexec.mapped(KUBEXEC)
    assert found.memory.hosts[POD] == named(POD, uid="new", incarnation=1)
    assert [note.reason for note in found.notes] == ["HostsPublished", "HostRenamed"]
    assert change(back(last=named(POD), kubexec=kubexec.mapped(KUBEXEC))).kubexec is None


def test_without_a_numbered_name_the_script_stays_as_it_is() -> None:
    assert change(back(last=named(POD), former={POD: DRAINED})).kubexec is None


def test_a_name_that_is_kept_back_for_a_foreign_script_is_told() -> None:
    found = change(back(last=named(POD), kubexec="mine"))
    assert POD in found.script
    assert found.kubexec is None
    assert [note.reason for note in found.notes] == ["HostsPublished", "HostNameKept"]


def at_rest(*, host: str = POD, **facts: Any) -> JobView:
    listed = [pods(0)[0], host, pods(2)[0]]
    kept = replace(config(listed), kubexec=kubexec.mapped(KUBEXEC))
    return job(3, **{"config": kept, **facts})


@pytest.mark.parametrize("host", [POD, f"{POD}.r1"])
def test_at_rest_nothing_is_written(host: str) -> None:
    view = at_rest(host=host)
    assert view.config is not None
    assert config_map.write(derive(view, now=NOW), view.config) == (None, None)
    assert stale(view) == set()


def test_another_pod_under_a_published_name_leaves_at_once_and_comes_back_under_the_next() -> None:
    view = at_rest(workers=(worker(0), NEW, worker(2)))
    assert stale(view) == {POD}
    found = change(view)
    assert (found.added, found.removed) == ((), (POD,))
    assert found.memory.hosts[POD] == named(POD)
    assert found.notes[0].warning
    after = shown(replace(view, config=replace(config(pods(0, 2), memory=found.memory), kubexec=KUBEXEC)))
    assert derive(after, now=NOW).by_name[NEW.name].host == f"{POD}.r1"


def test_the_only_host_keeps_its_name_for_a_list_must_not_become_empty() -> None:
    view = job(1, workers=(worker(0, uid="new"),))
    assert view.config is not None
    assert stale(view) == set(pods(0))
    assert config_map.write(derive(view, now=NOW), view.config) == (None, None)


def test_before_the_driver_starts_the_new_pod_takes_the_name_over() -> None:
    view = at_rest(workers=(worker(0), NEW, worker(2)), launcher=launcher(LauncherPhase.DELIVERING))
    found = change(view)
    assert (found.added, found.removed) == ((), ())
    assert found.memory.hosts[POD] == named(POD, uid="new")
    assert view.config is not None
    started = replace(view, launcher=launcher(), config=replace(view.config, memory=found.memory))
    assert stale(started) == set()


def test_what_an_older_version_left_is_taken_as_it_is() -> None:
    older = nameless(at_rest(workers=(worker(0), NEW, worker(2))))
    assert stale(older) == set()
    assert change(older).memory.hosts[POD] == named(POD, uid="new")


def nameless(view: JobView) -> JobView:
    """The same job, as a controller left it that remembered no names."""
    assert view.config is not None
    return replace(view, config=replace(view.config, memory=msgspec.structs.replace(view.memory, hosts={})))


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
def test_what_is_remembered_of_a_pod_that_is_not_in_the_list(view: JobView, kept: Host | None) -> None:
    assert host_names.remembered(derive(view, now=NOW), view.published_pods, lost=()).get(POD) == kept


def test_a_pod_that_lost_its_rank_is_remembered_under_the_next_number() -> None:
    view = at_rest(host=f"{POD}.r1")
    kept = host_names.remembered(derive(view, now=NOW), pods(0, 2), lost=pods(1))
    assert kept[POD] == named(POD, incarnation=2)
    older = host_names.remembered(derive(nameless(at_rest()), now=NOW), pods(0, 2), lost=pods(1))
    assert older[POD] == named(POD, incarnation=1)


def test_of_a_published_pod_that_is_gone_nobody_inherits_the_name() -> None:
    older = nameless(at_rest(workers=(worker(0), worker(2))))
    kept = host_names.remembered(derive(older, now=NOW), older.published_pods, lost=())
    assert kept[POD].pod not in ("", pod_fingerprint("new"))


def test_the_memory_is_bounded_for_huge_jobs() -> None:
    size = host_names.MOST_REMEMBERED + 3
    view = job(size)
    kept = host_names.remembered(derive(view, now=NOW), view.published_pods, lost=())
    assert len(kept) == host_names.MOST_REMEMBERED
    assert names.worker(view.name, host_names.MOST_REMEMBERED - 1) in kept


def test_a_host_of_a_list_that_is_not_remembered_was_the_pod_that_is_there() -> None:
    """Somebody else listed it, or the memory was lost, and it fails before a memory was written."""
    listed = replace(config(pods(0, 1, 2)), memory=None)
    dying = job(3, workers=(worker(0), failed(1), worker(2)), config=listed)
    remembered = change(dying).memory.hosts[POD]
    assert remembered == Host(pod=failed(1).ref.fingerprint, incarnation=0)
    assert name(back(last=remembered)) == f"{POD}.r1"
    gone = change(job(3, workers=(worker(0), worker(2)), config=listed)).memory.hosts[POD]
    assert name(back(last=gone)) == f"{POD}.r1"


def test_of_a_list_that_is_lost_any_worker_may_have_been_a_host() -> None:
    lost = replace(config(()), memory=None)
    dying = job(3, workers=(worker(0), failed(1), worker(2)), config=lost)
    found = change(dying)
    assert found.added == pods(0, 2)
    assert name(back(last=found.memory.hosts[POD])) == f"{POD}.r1"
