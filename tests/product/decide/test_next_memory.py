"""The memory: what is written with a change of the list, when it is written alone, and what is derived from it."""

from typing import Any

import msgspec
import pytest

from mpijob_elastic import names
from mpijob_elastic.decide import drain, next_memory
from mpijob_elastic.decide.state import Drain, Standing
from mpijob_elastic.model.bounds import MOST_WORKERS
from mpijob_elastic.model.job import Config, JobView
from mpijob_elastic.model.memory import (
    Left,
    Memory,
    SizeChange,
    Tries,
    parse_memory,
    pod_fingerprint,
    render_memory,
)
from mpijob_elastic.model.pod import LauncherPhase, Probe, Worker
from mpijob_elastic.model.policy import Policy
from tests.builders import (
    LONG_AGO,
    NOW,
    Story,
    but,
    config,
    failed,
    job,
    launcher,
    left,
    named,
    pending,
    pods,
    role,
    tries,
    worker,
)
from tests.product.decide.plans import change, state, written

POD = "j-worker-2"
LEFT = left(POD, ago=10)
SHRUNK = job(2).shrunk(from_=3, ago=10)
MISSED = launcher(LauncherPhase.WAITING, mounts_discovery=False)
DELIVERING = launcher(LauncherPhase.DELIVERING)


def test_a_removal_is_written_with_its_history() -> None:
    found = change(job(3, replicas=2, slots=1))
    assert (found.added, found.removed) == ((), pods(2))
    assert found.script == names.discover_hosts(list(pods(0, 1)), slots=1)
    assert found.hostfile == names.hostfile(list(pods(0, 1)), slots=1)
    hosts = {pod: named(pod) for pod in pods(0, 1, 2)}
    scale = SizeChange(before=0, after=2, at=NOW)
    expected = Memory(
        left={POD: left(POD, ago=0)}, removed_at=NOW, scale=scale, hosts=hosts, elders=pods(0, 1, 2)
    )
    assert found.memory == next_memory.signed(expected, script=found.script)


SEEN_EARLIER = config(
    pods(0, 1, 2), memory=Memory(scale=SizeChange(before=1, after=3, at=LONG_AGO))
)
THEIRS = config(pods(0, 1, 2))
BESIDE_A_FAILURE = job(
    2, workers=(worker(0), failed(1), worker(2)), config=config(pods(0, 1), memory=SHRUNK.memory)
)
LOST = job(3, replicas=1, config=but(config(pods(0)), memory=None))


@pytest.mark.parametrize(
    ("view", "remembered"),
    [
        pytest.param(
            SHRUNK.but(replicas=3),
            {"left": {}, "added_at": NOW, "removed_at": NOW - 10},
            id="an addition forgets",
        ),
        pytest.param(
            job(3).without(1),
            {"left": {"j-worker-1": Left(pod="", at=NOW)}},
            id="a pod that is gone",
        ),
        # Since when the launcher knew is written down before it is shown something else.
        pytest.param(
            BESIDE_A_FAILURE.shown(at=NOW - 5),
            {
                "left": {
                    POD: Left(pod=LEFT.pod, at=LEFT.at, known_at=NOW - 5),
                    "j-worker-1": left("j-worker-1", ago=0),
                }
            },
            id="since when the launcher knew",
        ),
        pytest.param(
            BESIDE_A_FAILURE.unshown(),
            {"left": {POD: LEFT, "j-worker-1": left("j-worker-1", ago=0)}},
            id="the launcher does not know",
        ),
        pytest.param(
            job(replicas=2, launcher=DELIVERING),
            {"dropped_at": NOW},
            id="a name dropped before the start",
        ),
        pytest.param(job(replicas=2), {"dropped_at": 0.0}, id="a name dropped while it trains"),
        pytest.param(
            job(replicas=4, launcher=DELIVERING),
            {"dropped_at": 0.0},
            id="a name added before the start",
        ),
        # Without a history everybody who is not in the list has left now; another pod may come
        # under a name.
        pytest.param(
            LOST, {"left": {pod: left(pod, ago=0) for pod in pods(1, 2)}}, id="no history"
        ),
        pytest.param(
            LOST.without(2),
            {"left": {"j-worker-1": left("j-worker-1", ago=0), POD: Left(pod="", at=NOW)}},
            id="no history, a pod that is gone",
        ),
        pytest.param(
            SHRUNK.configured(script=THEIRS.facts.script, published=THEIRS.published).shown(),
            {"left": {POD: Left(pod=LEFT.pod, at=NOW)}},
            id="a worker that somebody put back leaves anew",
        ),
        pytest.param(
            job(3, workers=(worker(0), worker(1), failed(2)), config=config(pods(0, 1))),
            {"replaced": {POD: tries(1, uid=f"uid-of-{POD}")}},
            id="a failure is counted although the list stays",
        ),
        pytest.param(
            job(launcher=MISSED),
            {"launchers": tries(1)},
            id="a launcher without the mount is counted",
        ),
        pytest.param(
            job(replicas=2, config=SEEN_EARLIER),
            {"scale": SizeChange(before=3, after=2, at=NOW)},
            id="from size to size",
        ),
        pytest.param(
            job(config=SEEN_EARLIER, workers=(worker(0), worker(1), pending(2))),
            {"scale": SizeChange(before=1, after=3, at=LONG_AGO)},
            id="a loss is no scale",
        ),
        # After the clock was set back the future becomes now.
        *(
            pytest.param(
                SHRUNK.remembering(**{field: NOW + 60}), {field: NOW}, id=f"{field} from the future"
            )
            for field in ("added_at", "removed_at", "dropped_at")
        ),
        pytest.param(
            SHRUNK.remembering(left={POD: Left(pod=LEFT.pod, at=NOW + 60)}),
            {"left": {POD: Left(pod=LEFT.pod, at=NOW)}},
            id="left from the future",
        ),
    ],
)
def test_what_is_remembered(view: JobView, remembered: dict[str, Any]) -> None:
    memory = change(view).memory
    assert {field: getattr(memory, field) for field in remembered} == remembered


@pytest.mark.parametrize(("ago", "kept"), [(599, True), (600, False)])
def test_a_pod_that_is_gone_is_remembered_for_a_while(ago: float, kept: bool) -> None:
    seen = config(pods(0, 2), memory=Memory(left={"j-worker-1": Left(pod="", at=NOW - ago)}))
    found = change(job(3, workers=(worker(0), pending(2)), config=seen)).memory.left
    assert ("j-worker-1" in found) is kept


@pytest.mark.parametrize(
    ("view", "remembers"),
    [
        pytest.param(job().configured(memory=None), True, id="lost"),
        pytest.param(job().configured(memory=Memory()), True, id="unsigned"),
        pytest.param(job(elastic=False).configured(memory=None), False, id="not elastic"),
        pytest.param(
            job(3, launcher=None, workers=(), config=config([], hostfile=pods(0, 1, 2))).configured(
                memory=None
            ),
            False,
            id="never needed",
        ),
        pytest.param(
            job(
                3,
                launcher=launcher(LauncherPhase.WAITING),
                workers=(pending(0), pending(3)),
                config=config([], hostfile=pods(0, 1, 2)),
            ).configured(memory=None),
            True,
            id="surplus",
        ),
    ],
)
def test_a_list_without_a_history_gets_one(view: Story, remembers: bool) -> None:
    found = written(view)
    assert (found is not None) is remembers
    assert (
        found is None
        or state(view.configured(script=found.script, memory=found.memory)).memory_known
    )


def test_what_is_written_can_be_read_whatever_the_role_names() -> None:
    """Else it would be written again and again."""
    found = change(job(2, role=role(*range(MOST_WORKERS + 100))).configured(memory=None)).memory
    assert len(found.left) == MOST_WORKERS - 2
    assert parse_memory(render_memory(found)) == found


SHOWN_AT = NOW - 60
OURS = config(pods(0, 1))


@pytest.mark.parametrize(
    ("seen", "known"),
    [
        pytest.param(OURS, True, id="ours"),
        pytest.param(config([]), True, id="ours, empty"),
        pytest.param(None, False, id="no ConfigMap"),
        pytest.param(but(OURS, memory=None), False, id="no memory"),
        pytest.param(but(OURS, published=None), False, id="unreadable"),
        pytest.param(but(OURS, memory=Memory()), False, id="unsigned"),
        pytest.param(but(OURS, script=config(pods(0)).facts.script), False, id="edited by hand"),
    ],
)
def test_the_memory_is_believed_for_the_script_it_was_written_with(
    seen: Config | None, known: bool
) -> None:
    assert state(job(config=seen)).memory_known is known


@pytest.mark.parametrize(
    ("uid", "created_at", "found"),
    [
        (f"uid-of-{POD}", LONG_AGO, True),
        (f"uid-of-{POD}", NOW, True),
        ("an earlier pod", LONG_AGO, True),
        # Three seconds until the driver has surely read the list, five between two clocks.
        ("an earlier pod", SHOWN_AT + 8, True),
        ("an earlier pod", SHOWN_AT + 9, False),
        ("", SHOWN_AT + 8, True),
        ("", SHOWN_AT + 9, False),
    ],
)
def test_a_pod_may_be_taken_for_the_one_before_it_until_the_driver_has_read_the_list(
    uid: str, created_at: float, found: bool
) -> None:
    gone = Left(pod=pod_fingerprint(uid), at=SHOWN_AT - 1)
    view = job(3, config=config(pods(0, 1), memory=Memory(left={POD: gone})))
    third = worker(2, created_at=created_at)
    assert drain.left(state(view.shown(at=SHOWN_AT)), third) == (gone if found else None)
    # Before it was shown the list the launcher may take any pod for it.
    assert drain.left(state(view.unshown()), third) == gone
    assert drain.left(state(job(3)), third) is None


TRAINS = Probe(busy_seen=True, asked_at=NOW - 1, busy_at=NOW - 1)
IDLE = Probe(
    busy_seen=True, asked_at=NOW - 1, busy_at=NOW - 60, idle_since=NOW - 40, idle_at=NOW - 1
)
TOO_OFTEN = config(
    pods(0, 1), memory=Memory(replaced={POD: Tries(count=8, at=NOW, uid=f"uid-of-{POD}")})
)
THREATENED = worker(2, disruption="taint", node="n")


def third(last: Worker | None = None, **facts: Any) -> JobView:
    """A job of three whose third worker is `last`."""
    return job(
        3, workers=(worker(0, probe=TRAINS), worker(1, probe=TRAINS), last or worker(2)), **facts
    )


@pytest.mark.parametrize(
    ("view", "standing"),
    [
        (third(), None),
        (third(replicas=2), None),
        (third(failed(2)), Standing.FAILED),
        (third(failed(2), config=TOO_OFTEN), Standing.GIVEN_UP),
        (third(failed(2), policy=Policy(replace_failed_workers=False)), Standing.ENDED),
        (third(failed(2, succeeded=True)), Standing.FAILED),
        (third(worker(2, deleting=True)), None),
        (third(worker(2, probe=IDLE)), None),
        (third(THREATENED), None),
        (third(THREATENED, policy=Policy(min_replicas=3)), None),
        (third(pending(2)), None),
    ],
)
def test_what_becomes_of_a_worker(view: JobView, standing: Standing | None) -> None:
    assert state(view).by_name[POD].standing is standing


DRAINS = job(2).shrunk(from_=3, told=5)


@pytest.mark.parametrize(
    ("view", "found"),
    [
        (DRAINS, Drain(since=NOW - 20, began=NOW - 15, deadline=NOW + 45)),
        (DRAINS.unshown(), Drain(since=NOW - 20)),
        (
            DRAINS.drained(2, after=10),
            Drain(since=NOW - 20, began=NOW - 15, deadline=NOW + 45, drained=True),
        ),
        (job(3), None),
    ],
)
def test_a_drain_counts_from_when_the_launcher_was_shown_the_list(
    view: JobView, found: Drain | None
) -> None:
    assert state(view).by_name[POD].drain == found


def test_the_memory_beside_its_script_is_signed() -> None:
    found = change(SHRUNK.remembering(added_at=NOW + 60))
    expected = msgspec.structs.replace(SHRUNK.memory, added_at=NOW)
    assert found.memory == next_memory.signed(expected, script=found.script)


def test_a_launcher_that_goes_because_its_job_stops_is_not_counted() -> None:
    assert written(job(launcher=MISSED, suspended_by="mpijob-elastic/suspend")) is None
