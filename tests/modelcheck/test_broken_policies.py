"""The check can fail: policies with one mistake each, and what the check says of them."""

import re
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from mpijob_elastic import names
from mpijob_elastic.decide import derive, drain, next_memory
from mpijob_elastic.decide.actions import (
    Action,
    DeleteLauncher,
    DeleteWorkers,
    Gated,
    Note,
    Plan,
    Removal,
    TellUser,
    Ungate,
    WriteConfig,
    WriteRole,
)
from mpijob_elastic.decide.parking import DeletePlaceholder
from mpijob_elastic.model.bounds import MOST_INT32
from mpijob_elastic.model.job import JobView, parse_script
from mpijob_elastic.model.pod import Worker
from tests.builders import LONG_AGO, NOW, but
from tests.modelcheck import explore
from tests.modelcheck.controller import Controller, Decide, Removals, really_decide, really_remove
from tests.modelcheck.world import Setup

CALM = Setup(size=2, edits=2, start=1)
GENTLE = Setup(size=2, edits=0, start=2, fault_budget=1, faults=frozenset({"deleted-gently"}))
SUSPENDED = Setup(size=2, edits=0, start=2, suspensions=2)
PARKED = Setup(size=2, edits=0, start=2, parks=2)
LOSSES = Setup(size=2, edits=1, start=2, fault_budget=1, faults=frozenset({"fails"}))


def removal(worker: Worker) -> Removal:
    return Removal(worker=worker, outcome="broken", note=Note(reason="Broken", message=""))


def delete(plan: Plan, gone: drain.Leaving) -> Plan:
    """The plan with these deletions, before everything else."""
    others = tuple(action for action in plan.actions if not isinstance(action, DeleteWorkers))
    first: tuple[Action, ...] = (DeleteWorkers(removals=gone.removals),) if gone.removals else ()
    return but(plan, actions=first + others)


def hasty(view: JobView) -> drain.Leaving:
    """Deletes what is surplus, published or not."""
    return drain.Leaving(
        removals=tuple(removal(worker) for worker in view.surplus if not worker.facts.deleting)
    )


def impatient(view: JobView) -> drain.Leaving:
    """Takes a worker for drained as soon as nothing was seen in it once, whatever the launcher knows."""
    unlisted = (
        worker
        for worker in view.surplus
        if worker.name not in view.published_pods and not worker.facts.deleting
    )
    empty = [removal(worker) for worker in unlisted if worker.probe.idle_at is not None]
    return drain.Leaving(removals=(*really_remove(view).removals, *empty))


def rough(view: JobView) -> drain.Leaving:
    """Ends a worker that somebody else deletes as soon as it has left the list."""
    ending = (
        worker
        for worker in view.workers
        if worker.facts.deleting and worker.name not in view.published_pods
    )
    return drain.Leaving(removals=(*really_remove(view).removals, *map(removal, ending)))


def at_once(view: JobView) -> Plan:
    """Publishes what is wanted in one step, whatever comes and goes."""
    plan = really_decide(view)
    stay = [
        worker
        for worker in derive(view, now=NOW).workers
        if worker.wanted and worker.standing is None
    ]
    wanted = [worker for worker in stay if worker.ready and not (worker.rank_lost or worker.going)]
    for action in plan.actions:
        if isinstance(action, WriteConfig) and wanted:
            script = names.discover_hosts([worker.host for worker in wanted], slots=1)
            memory = next_memory.signed(action.memory, script=script)
            return Plan(actions=(but(action, script=script, memory=memory),))
    return plan


def late_role(view: JobView) -> Plan:
    """Never lets the launcher into more workers."""
    plan = really_decide(view)
    return but(
        plan, actions=tuple(action for action in plan.actions if not isinstance(action, WriteRole))
    )


def restless(view: JobView) -> Plan:
    """Says at rest that a job is suspended, and takes it back."""
    plan = really_decide(view)
    text = "" if names.is_suspended(view.facts.notices) else "Suspended: by a field"
    return plan if plan.actions else Plan(actions=(TellUser(ref=view.ref, text=text),))


def forgetful(view: JobView) -> Plan:
    """Gives every pod the name that its predecessor had."""
    plan = really_decide(view)
    for action in plan.actions:
        if isinstance(action, WriteConfig):
            published = parse_script(action.script)
            plain = [names.pod_of(host) for host in published.hosts] if published else []
            script = names.discover_hosts(plain, slots=1)
            memory = next_memory.signed(action.memory, script=script)
            return Plan(actions=(but(action, script=script, memory=memory, kubexec=None),))
    return plan


def tongue_tied(view: JobView) -> Plan:
    """Never says in kubexec.sh how the pod of a numbered host is found."""
    plan = really_decide(view)
    mute = (
        but(action, kubexec=None) if isinstance(action, WriteConfig) else action
        for action in plan.actions
    )
    return but(plan, actions=tuple(mute))


def careless(view: JobView) -> Plan:
    """Takes workers off a node that goes, however few stay."""
    return really_decide(but(view, policy=but(view.policy, min_replicas=None)))


def hurried(view: JobView) -> Plan:
    """Takes every worker for a worker that has been there for long."""
    return really_decide(
        but(view, workers=tuple(but(worker, created_at=LONG_AGO) for worker in view.workers))
    )


def deaf(view: JobView) -> Plan:
    """Takes every node that is gone for a node that has been gone for long."""
    gone = (
        but(worker, node_gone_at=LONG_AGO if worker.facts.node_gone_at else 0.0)
        for worker in view.workers
    )
    return really_decide(but(view, workers=tuple(gone)))


def abrupt(view: JobView) -> Plan:
    """Stops a job without waiting for the workers that can drain."""
    if not (view.facts.suspended and view.driver_running and view.launcher):
        return really_decide(view)
    note = Note(reason="Broken", message="")
    return Plan(actions=(DeleteLauncher(launcher=view.launcher, note=note, suspends=True),))


def eager(view: JobView) -> Plan:
    """Starts a job that is resumed whatever is left of the launcher before."""
    held = tuple(
        Gated(ref=pod.ref) for pod in view.pods if pod.facts.gates and not pod.facts.deleting
    )
    if view.facts.suspended or not held:
        return really_decide(view)
    return Plan(actions=(Ungate(pods=held, note=Note(reason="Broken", message="")),))


def silent(view: JobView) -> Plan:
    """Does not say that the job is suspended, by which the webhook holds a launcher back that comes after a resume."""
    plan = really_decide(view)
    return but(
        plan, actions=tuple(action for action in plan.actions if not isinstance(action, TellUser))
    )


def clinging(view: JobView) -> Plan:
    """Never deletes a placeholder."""
    plan = really_decide(view)
    return but(
        plan,
        actions=tuple(
            action for action in plan.actions if not isinstance(action, DeletePlaceholder)
        ),
    )


def told(view: JobView, **found: Any) -> JobView:
    """The view where elastic.sh has acknowledged something else, if anything."""
    if view.launcher is None or view.launcher.acknowledged.number < 0:
        return view
    known = replace(view.launcher.acknowledged, **found)
    return but(view, launcher=but(view.launcher, acknowledged=known))


def trusting(view: JobView) -> drain.Leaving:
    """Takes a worker for drained as soon as the list is without it."""
    unlisted = (worker for worker in view.surplus if worker.name not in view.host_of)
    gone = [removal(worker) for worker in unlisted if not worker.facts.deleting]
    return drain.Leaving(removals=(*really_remove(view).removals, *gone))


def outdated(view: JobView) -> drain.Leaving:
    """Believes the acknowledgement of an earlier list."""
    return really_remove(told(view, number=MOST_INT32))


def unheard(view: JobView) -> drain.Leaving:
    """Does not heed where something of an earlier start may still run."""
    return really_remove(told(view, busy=frozenset()))


def restarted(view: JobView) -> Plan:
    """Numbers the list from 1 again where nothing is remembered."""
    plan = really_decide(view)
    if view.config is None or view.config.memory:
        return plan
    return but(plan, actions=tuple(map(_first, plan.actions)))


def _first(action: Action) -> Action:
    if not isinstance(action, WriteConfig):
        return action
    script = re.sub("# list [0-9]+", "# list 1", action.script)
    left = {pod: msgspec.structs.replace(one, list=1) for pod, one in action.memory.left.items()}
    memory = msgspec.structs.replace(action.memory, left=left)
    return but(action, script=script, memory=next_memory.signed(memory, script=script))


def unchanged(view: JobView) -> Plan:
    """Gives each list the number of the last."""
    plan = really_decide(view)
    number = view.config.published.number if view.config and view.config.published else 0
    actions = [
        but(action, script=script, memory=next_memory.signed(action.memory, script=script))
        if isinstance(action, WriteConfig)
        and (script := re.sub("# list [0-9]+", f"# list {number or 1}", action.script))
        else action
        for action in plan.actions
    ]
    return but(plan, actions=tuple(actions))


NODE_GOES = but(CALM, edits=0, start=2, fault_budget=1, faults=frozenset({"node-goes"}))
TWO_STAY = but(NODE_GOES, policy=but(CALM.policy, min_replicas=2))
NODE_LOST = but(LOSSES, faults=frozenset({"node-lost"}))
THREE_TRAIN = but(LOSSES, size=3, start=3, edits=0)
BY_ELASTIC = but(CALM, start=2, elastic_sh=True)
# It shrinks, grows and shrinks again: by then an acknowledgement may be old.
TWICE = but(BY_ELASTIC, edits=3)
STOPS = but(SUSPENDED, suspensions=1, elastic_sh=True)
STAYS = but(BY_ELASTIC, edits=1, fault_budget=1, faults=frozenset({"rank-stays"}))
LIST_LOST = but(BY_ELASTIC, edits=1, fault_budget=1, faults=frozenset({"config-deleted"}))
UNSAFE = {
    "elastic.sh: a job is stopped that has yet to save": (
        STOPS,
        abrupt,
        "before its drain-timeout",
    ),
    "elastic.sh: a number comes again after a lost memory": (
        LIST_LOST,
        restarted,
        "another list has no higher number",
    ),
    "elastic.sh: another list has the same number": (
        BY_ELASTIC,
        unchanged,
        "another list has no higher number",
    ),
    "a removal and an addition in one write": (LOSSES, at_once, "in one write"),
    "a blacklisted name comes back": (LOSSES, forgetful, "may have died under this name"),
    "a host that the launcher cannot reach": (LOSSES, tongue_tied, "cannot reach"),
    "a node that goes takes too many": (TWO_STAY, careless, "takes more workers than may leave"),
    "a host is added while others get over a loss": (
        THREE_TRAIN,
        hurried,
        "while others get over a loss",
    ),
    "a node that is gone leaves the list too early": (
        NODE_LOST,
        deaf,
        "may call a node that is gone",
    ),
    "a job is stopped that has yet to shrink": (SUSPENDED, abrupt, "has yet to shrink"),
    "a job is resumed beside the launcher before": (SUSPENDED, eager, "beside ranks"),
    "nobody says that the job is suspended": (SUSPENDED, silent, "beside ranks"),
}


EARLY = {
    "elastic.sh: a worker that has only left the list": (
        BY_ELASTIC,
        trusting,
        "a rank is killed before its drain-timeout",
    ),
    "elastic.sh: the acknowledgement of an earlier list": (
        TWICE,
        outdated,
        "in which the driver may start a rank|a rank is killed before its drain-timeout",
    ),
    "elastic.sh: a worker in which something stays": (
        STAYS,
        unheard,
        "a rank is killed before its drain-timeout",
    ),
    "a worker that is published": (CALM, hasty, "a worker that is published is deleted"),
    "a worker that is in use": (CALM, impatient, "in which the driver may start a rank"),
    "a worker that somebody else deletes": (
        GENTLE,
        rough,
        "a rank is killed before its drain-timeout",
    ),
}


@pytest.mark.parametrize(
    ("setup", "broken", "words"), [pytest.param(*row, id=name) for name, row in UNSAFE.items()]
)
def test_an_unsafe_policy_is_caught(setup: Setup, broken: Decide, words: str) -> None:
    with pytest.raises(explore.Mistake, match=words):
        explore.explore(setup, Controller(setup=setup, decide=broken))


@pytest.mark.parametrize(
    ("setup", "removals", "words"), [pytest.param(*row, id=name) for name, row in EARLY.items()]
)
def test_a_worker_that_goes_too_early_is_caught(
    setup: Setup, removals: Removals, words: str
) -> None:
    def broken(view: JobView) -> Plan:
        return delete(really_decide(view), removals(view))

    with pytest.raises(explore.Mistake, match=words):
        explore.explore(setup, Controller(setup=setup, decide=broken, removals=removals))


@pytest.mark.parametrize(
    ("setup", "broken"),
    [
        pytest.param(CALM, late_role, id="the launcher may not exec into more workers"),
        pytest.param(PARKED, clinging, id="a placeholder that is not needed stays"),
        # Without a least size the start waits for a worker that never comes.
        pytest.param(
            Setup(size=2, edits=0, start=2, running=False, unplaced=0b01),
            really_decide,
            id="no node",
        ),
    ],
)
def test_a_job_that_never_gets_to_its_size_is_caught(setup: Setup, broken: Decide) -> None:
    controller = Controller(setup=setup, decide=broken)
    with pytest.raises(explore.Mistake, match="goal cannot be reached"):
        explore.check_goal(explore.explore(setup, controller), controller)


def test_writes_that_never_end_are_caught() -> None:
    with pytest.raises(explore.Mistake, match="comes again and again"):
        explore.check_rest(explore.explore(CALM, Controller(setup=CALM, decide=restless)))
