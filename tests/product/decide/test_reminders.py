"""Reminders: when Horovod's driver is made to speak of the list again, and by which line."""

from itertools import pairwise
from typing import Any

import pytest

from mpijob_elastic import names
from mpijob_elastic.decide import reminders
from mpijob_elastic.decide.state import SETTLE
from mpijob_elastic.model import kubexec
from mpijob_elastic.model.job import parse_script
from mpijob_elastic.model.launch_command import Launch
from mpijob_elastic.model.memory import Reminded
from mpijob_elastic.model.pod import LauncherPhase, Probe
from mpijob_elastic.model.policy import Policy
from tests.builders import KUBEXEC, NOW, Story, but, config, job, launcher, pods, role, worker
from tests.product.decide.plans import change, does, note, state
from tests.simulated_writes import apply

ADDED_AT = NOW - 12.0
BUSY = Probe(busy_seen=True, busy_at=NOW - 1, asked_at=NOW - 1)
IDLE = Probe(idle_at=NOW - 1, idle_since=NOW - 11, asked_at=NOW - 1)
DIED = Probe(busy_seen=True, idle_at=NOW - 1, idle_since=NOW - 9, asked_at=NOW - 1)
REMIND = "remind of 2 by 0.r01 (HostListRepeated)"


def added(last: Probe = IDLE, *, first: Probe = BUSY, **facts: Any) -> Story:
    """Two workers train, and a third was added and shown twelve seconds ago."""
    view = job(3, **facts).pod(0, probe=first).pod(1, probe=first).pod(2, probe=last)
    return view.remembering(added_at=ADDED_AT).shown(at=ADDED_AT)


def removed(last: Probe = BUSY, *, ago: float = 6.0, **facts: Any) -> Story:
    """Two workers train, and a third left the list so long ago, which was shown at once."""
    view = job(2, **facts).shrunk(from_=3, ago=ago)
    return view.pod(0, probe=BUSY).pod(1, probe=BUSY).pod(2, probe=last)


def reminded(view: Story, count: int, *, at: float = ADDED_AT) -> Story:
    """So many reminders were written, and the last of them shown at that time."""
    line = names.reminder(pods(0)[0], (count - 1) % 9 + 1) if count else ""
    hosts = list(view.host_of.values())
    script = names.discover_hosts(hosts, slots=1, reminder=line)
    memory = Reminded(count=count, at=at) if count else None
    listed = view.configured(
        script=script, published=parse_script(script), kubexec=kubexec.mapped(KUBEXEC)
    )
    signed = listed.remembering(reminded=memory, script=listed.config.fingerprint)
    return signed.shown(at=at)


@pytest.mark.parametrize(
    ("view", "plan"),
    [
        pytest.param(added(), REMIND, id="no rank in a new host"),
        pytest.param(added(BUSY), "nothing", id="a rank in each host"),
        pytest.param(added(Probe()), "nothing", id="not looked into"),
        pytest.param(added(Probe(asked_at=NOW - 1, failed=1)), "nothing", id="no answer"),
        pytest.param(
            added(Probe(idle_at=ADDED_AT + 4.9, asked_at=NOW)),
            "nothing",
            id="looked into too early",
        ),
        pytest.param(added(Probe(idle_at=NOW + 60, asked_at=NOW)), "nothing", id="another clock"),
        pytest.param(added(first=Probe()), "nothing", id="nobody is seen to train"),
        pytest.param(added(first=IDLE), "nothing", id="nobody trains"),
        pytest.param(added(DIED), "nothing", id="its rank died"),
        pytest.param(added(but(DIED, in_doubt=True)), REMIND, id="perhaps no rank was seen"),
        pytest.param(added(max_np_workers=2), "nothing", id="--max-np is reached"),
        pytest.param(added(max_np_workers=3), REMIND, id="--max-np has room"),
        pytest.param(added(launcher=launcher(started_at=NOW - 60)), REMIND, id="the driver runs"),
        pytest.param(
            added(launcher=launcher(LauncherPhase.DELIVERING)), "nothing", id="no driver runs"
        ),
        pytest.param(added().unshown(), "touch", id="the launcher was not shown the list"),
        pytest.param(added().plain(), "nothing", id="not elastic"),
        pytest.param(added().configured(kubexec="mine"), "nothing", id="names lead nowhere"),
        pytest.param(added(launch=Launch(program="mpirun")), "nothing", id="no Horovod"),
        pytest.param(added(launch=Launch(program="horovodrun")), REMIND, id="Horovod"),
        pytest.param(added().pod(2, opaque=True), "nothing", id="exec cannot look"),
        pytest.param(
            added(replicas=4, role=role(0, 1, 2, 3)), f"{REMIND}; wake", id="a fourth is to come"
        ),
        # A rank stays in a host that has left the list.
        pytest.param(
            removed(), "remind of 2 by 0.r01 (HostListRepeated); probe 2; wake", id="a rank stays"
        ),
        pytest.param(removed(ago=4.9), "probe 2; wake", id="a rank may still leave"),
        pytest.param(
            removed(Probe(asked_at=NOW - 1)),
            "remind of 2 by 0.r01 (HostListRepeated); probe 2; wake",
            id="a rank may stay",
        ),
        pytest.param(removed(Probe()), "probe 2; wake", id="not looked into since it left"),
        pytest.param(
            removed().configured(kubexec="mine"), "touch again 1; probe 2; wake", id="touched only"
        ),
    ],
)
def test_when_the_driver_is_reminded(view: Story, plan: str) -> None:
    told = does(view, but="say")
    assert told.partition("; wake")[0] == plan.partition("; wake")[0]


@pytest.mark.parametrize("view", [added(), removed(policy=Policy(drain_timeout=3600.0))])
def test_reminders_follow_one_another_later_and_later_and_come_to_an_end(view: Story) -> None:
    found, now = [], NOW
    for second in range(600):
        now = NOW + second
        view = view.pod(2, probe=_still(view, now=now))
        plan = does(view, now=now)
        if plan.startswith("remind"):
            found.append(second)
            view = shown(apply(view, change(view, now=now), now=now), now=now)
    assert len(found) == len(reminders.PAUSES)
    pauses = [after - before for before, after in pairwise(found)]
    assert pauses == [round(pause) for pause in reminders.PAUSES[1:]]
    assert reminders.is_over(state(view, now=now))


def _still(view: Story, *, now: float) -> Probe:
    """The last worker still has a rank, or none, as before."""
    if pods(2)[0] in view.host_of:
        return Probe(idle_at=now, idle_since=NOW - 11, asked_at=now)
    return Probe(busy_seen=True, busy_at=now, asked_at=now)


def shown(view: Any, *, now: float) -> Any:
    return view.shown(at=now)


@pytest.mark.parametrize(("count", "name"), [(0, "0.r01"), (1, "0.r02"), (8, "0.r09")])
def test_each_reminder_has_another_name_than_the_one_before(count: int, name: str) -> None:
    found = change(reminded(added(), count, at=NOW - 300))
    assert found.reminds == pods(2)
    assert found.memory.reminded == Reminded(count=count + 1, at=NOW)
    assert parse_script(found.script).reminder == f"j-worker-{name}"
    assert len(found.notes) == (count == 0)


def test_the_last_number_is_followed_by_the_first() -> None:
    view = reminded(removed(), 9, at=NOW - 300).remembering(reminded=Reminded(count=3, at=NOW))
    assert parse_script(change(view).script).reminder == "j-worker-0.r01"


def test_a_reminder_changes_nothing_but_the_script_and_the_count() -> None:
    view = added()
    found = change(view)
    assert found.hostfile == view.config.facts.hostfile
    assert (found.added, found.removed, found.lost) == ((), (), ())
    assert (found.memory.added_at, found.memory.elders) == (ADDED_AT, view.memory.elders)
    assert found.kubexec == kubexec.mapped(KUBEXEC)
    mapped = view.configured(kubexec=kubexec.mapped(KUBEXEC)).shown(at=ADDED_AT)
    assert change(mapped).kubexec is None


def test_a_drain_counts_from_the_first_touch_whatever_reminders_follow() -> None:
    view = removed()
    before = state(view).by_name[pods(2)[0]].drain
    later = shown(apply(view, change(view), now=NOW), now=NOW + 0.1)
    after = state(later, now=NOW + 1).by_name[pods(2)[0]].drain
    assert before is not None
    assert before == after


def test_a_change_waits_until_a_reminder_has_settled() -> None:
    view = reminded(added(replicas=2), 1, at=NOW - 1)
    assert state(view).settled_at == NOW - 1 + SETTLE


# Removals: ranks that hear of nothing but a removal do not synchronise with a new rank.
ALL_BUSY = {0: BUSY, 1: BUSY, 2: BUSY}


def shrinks(probes: dict[int, Probe], *, added_ago: float = 12.0, **facts: Any) -> Story:
    """Of four workers the last is to leave; the third was added some seconds ago."""
    view = job(4, replicas=3, **facts)
    for index, probe in probes.items():
        view = view.pod(index, probe=probe)
    at = NOW - added_ago
    return view.remembering(added_at=at).shown(at=at)


@pytest.mark.parametrize(
    ("view", "plan"),
    [
        pytest.param(shrinks(ALL_BUSY), "publish 0 1 2", id="a rank in each host that stays"),
        pytest.param(
            shrinks({**ALL_BUSY, 2: IDLE}), "publish 0 1 2, reminder 0.r01", id="one without"
        ),
        pytest.param(
            shrinks({**ALL_BUSY, 2: but(BUSY, in_doubt=True)}),
            "publish 0 1 2, reminder 0.r01",
            id="perhaps one without",
        ),
        pytest.param(
            shrinks({**ALL_BUSY, 2: but(DIED, in_doubt=True)}, added_ago=900),
            "publish 0 1 2, reminder 0.r01",
            id="perhaps one without for long",
        ),
        pytest.param(
            shrinks({**ALL_BUSY, 2: IDLE}, added_ago=900),
            "publish 0 1 2, reminder 0.r01",
            id="one without for long",
        ),
        pytest.param(
            shrinks({**ALL_BUSY, 2: Probe()}), "publish 0 1 2, reminder 0.r01", id="one is unknown"
        ),
        pytest.param(
            shrinks({}, added_ago=reminders.NEW_FOR + 1), "publish 0 1 2", id="nothing new"
        ),
        pytest.param(
            shrinks({**ALL_BUSY, 2: IDLE}).configured(kubexec="mine"),
            "publish 0 1 2",
            id="names lead nowhere",
        ),
    ],
)
def test_a_removal_comes_with_a_reminder_while_a_host_may_be_without_a_rank(
    view: Story, plan: str
) -> None:
    assert does(view, but="wake") == f"{plan} (Draining)"
    assert change(view).memory.reminded is None


@pytest.mark.parametrize(
    ("view", "line"),
    [
        pytest.param(reminded(added(BUSY), 3), "j-worker-0.r03", id="nothing changes"),
        pytest.param(
            reminded(
                added(
                    BUSY,
                    replicas=4,
                    workers=tuple(map(worker, range(4))),
                    role=role(0, 1, 2, 3),
                    config=config(pods(0, 1, 2)),
                ),
                3,
            ),
            "",
            id="a host is added",
        ),
        pytest.param(reminded(added(BUSY, replicas=2), 3), "", id="a host leaves"),
        pytest.param(
            reminded(added(IDLE, replicas=3, workers=tuple(map(worker, range(3)))), 3)
            .pod(1, probe=IDLE)
            .but(replicas=2),
            "j-worker-0.r04",
            id="a host leaves while another has no rank",
        ),
        pytest.param(
            reminded(added(BUSY, launcher=launcher(started_at=NOW - 3)), 3),
            "",
            id="another driver has started",
        ),
        pytest.param(
            reminded(added(BUSY, launcher=launcher(LauncherPhase.WAITING)), 3),
            "",
            id="no driver runs",
        ),
    ],
)
def test_how_long_the_line_stays(view: Story, line: str) -> None:
    written = change(view).script if does(view).startswith("publish") else view.config.facts.script
    assert parse_script(written or "").reminder == line


def test_the_user_is_told_once_of_the_first_reminder() -> None:
    told = note(added())
    assert (told.reason, told.warning) == ("HostListRepeated", False)
    assert "j-worker-2 listed without a rank" in told.message
    assert "a rank may still run in j-worker-2" in note(removed()).message


@pytest.mark.parametrize(
    ("view", "is_new"),
    [
        (added(), True),
        (added().remembering(elders=pods(0, 1)), True),
        (added().remembering(elders=pods(2)), False),
        (added().remembering(added_at=NOW - sum(reminders.PAUSES)), False),
    ],
)
def test_who_may_not_have_been_heard_of(view: Story, is_new: bool) -> None:
    assert reminders.is_new(state(view), pods(2)[0]) is is_new
