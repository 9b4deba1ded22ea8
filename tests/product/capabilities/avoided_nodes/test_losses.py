"""Which losses count against a node, when it is avoided, and what its job remembers and says of it."""

import json
from typing import Any

import msgspec
import pytest

from mpijob_elastic import names
from mpijob_elastic.capabilities.avoided_nodes import AvoidedNodes, losses, words
from mpijob_elastic.decide import decide
from mpijob_elastic.decide.actions import DeleteWorkers, LookIntoLauncher, TellUser, WriteConfig
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.kubexec import HeldExecs
from mpijob_elastic.model.memory import LARGEST_OWN, Memory
from mpijob_elastic.model.pod import Probe
from mpijob_elastic.model.policy import Policy
from tests.builders import LONG_AGO, NOW, Story, config, failed, job, pending, pods, role, worker
from tests.product.decide.plans import change, does, written
from tests.rooms.avoided_nodes import lost_on
from tests.simulated_writes import apply

DAY = losses.FORGOTTEN_AFTER
# Looks have found the worker idle for long enough while others trained.
RANKLESS = Probe(
    busy_seen=True, asked_at=NOW - 1, busy_at=NOW - 90, idle_at=NOW - 1, idle_since=NOW - 60
)
NEVER_USED = Probe(asked_at=NOW - 1, idle_at=NOW - 1, idle_since=NOW - 700)
TRAINS = Probe(busy_seen=True, asked_at=NOW - 1, busy_at=NOW - 1)
NAMELESS = "no/node"
LONGEST = "n" * names.LONGEST_SUBDOMAIN


def loses(*ends: Any, own: dict[str, bytes] | None = None, **facts: Any) -> Story:
    """A job whose first workers end like this; one more goes on training."""
    workers = (*ends, worker(len(ends), node="z", probe=TRAINS))
    size = len(workers)
    memory = Memory(own=own or {}, added_at=LONG_AGO)
    known = {"config": config(pods(*range(size)), memory=memory), **facts}
    return job(size, workers=workers, role=role(*range(size)), **known)


def counts(view: JobView, *, now: float = NOW) -> dict[str, int]:
    """The losses by node that the next write of the list remembers."""
    found = json.loads(change(view, now=now).memory.own.get(losses.NAME, b"{}"))
    return {node: known["count"] for node, known in found.items()}


@pytest.mark.parametrize(
    ("end", "counted"),
    [
        pytest.param(failed(0, node="a"), True, id="failed"),
        pytest.param(worker(0, node="a", probe=RANKLESS), True, id="rank gone, the pod runs on"),
        pytest.param(worker(0, node="a", ready_at=None), True, id="not Ready: a silent node"),
        pytest.param(failed(0, node="a", out_of_memory=True), False, id="out of memory"),
        pytest.param(failed(0, node="a", succeeded=True), False, id="ended with 0"),
        pytest.param(worker(0, node="a", deleting=True), False, id="somebody deletes it"),
        pytest.param(worker(0, node="a", disruption="taint spot"), False, id="the node was to go"),
        pytest.param(failed(0, node="a", disruption="Evicted"), False, id="evicted"),
        pytest.param(worker(0, node="a", unhealthy="gpu"), False, id="a move for its GPU"),
        pytest.param(failed(0, node=NAMELESS), False, id="no name of a node"),
        pytest.param(failed(0), False, id="on no node"),
    ],
)
def test_which_losses_count(end: Any, counted: bool) -> None:
    view = loses(end)
    assert change(view).removed == pods(0)
    assert counts(view) == ({"a": 1} if counted else {})


def test_a_node_that_is_gone_is_not_counted() -> None:
    gone = worker(0, node="a", node_gone_at=NOW - 60)
    view = loses(gone, worker(1, node="b", probe=TRAINS))
    about = next(
        one.about for one in decide(view, now=NOW).looks if isinstance(one, LookIntoLauncher)
    )
    looked = view.launched(held=HeldExecs(asked_at=NOW, about=about))
    assert (change(looked).lost, counts(looked)) == (pods(0), {})


def test_a_rank_that_never_was_is_no_loss() -> None:
    view = loses(worker(0, node="a", probe=NEVER_USED))
    assert (change(view).removed, counts(view)) == (pods(0), {})


def test_a_worker_that_is_gone_counts_against_nobody() -> None:
    view = loses(worker(0, node="a")).without(0)
    assert (change(view).removed, counts(view)) == (pods(0), {})


def test_a_smaller_size_is_no_loss() -> None:
    view = loses(worker(0, node="a"), worker(1, node="a")).but(replicas=1)
    assert (change(view).removed, counts(view)) == (pods(1, 2), {})


def test_a_failed_worker_that_is_not_wanted_any_more_is_no_loss() -> None:
    view = loses(worker(0, node="a"), failed(1, node="a")).but(replicas=1)
    assert (change(view).removed, counts(view)) == (pods(1), {})


def test_ranks_that_are_lost_on_several_nodes_at_once_are_no_nodes_fault() -> None:
    assert counts(loses(failed(0, node="a"), failed(1, node="b"))) == {}
    assert counts(loses(failed(0, node="a"), failed(1, node="a"))) == {"a": 2}
    meant = worker(1, node="b", deleting=True)
    assert counts(loses(failed(0, node="a"), meant)) == {"a": 1}


def test_losses_of_a_node_add_up_for_a_day_after_the_last() -> None:
    def after(**known: Any) -> dict[str, int]:
        return counts(loses(failed(0, node="a"), own=lost_on(**known)))

    assert after(a=1) == {"a": 2}
    assert after(a=5, b=1) == {"a": 6, "b": 1}
    assert after(a=5, ago=DAY - 1) == {"a": 6}
    assert after(a=5, b=1, ago=DAY) == {"a": 1}
    # Somebody's clock was set back: such a loss is forgotten, as any old one.
    assert after(a=5, ago=-60) == {"a": 1}


def test_the_memory_is_bounded() -> None:
    known = {f"b{number}": 1 for number in range(losses.MOST)}
    found = counts(loses(failed(0, node="a"), own=lost_on(**known)))
    assert len(found) == losses.MOST
    assert found["a"] == 1

    long = {letter + LONGEST[1:]: 1 for letter in "bcd"}
    record = change(loses(failed(0, node=LONGEST), own=lost_on(**long))).memory.own[losses.NAME]
    assert len(record) <= LARGEST_OWN
    assert json.loads(record)[LONGEST]["count"] == 1


@pytest.mark.parametrize(
    "text",
    [
        b"[]",
        b"null",
        b'{"a": 1}',
        b'{"a": {"count": 0, "at": 1}}',
        b'{"a": {"count": 2, "at": 1e300}}',
        b'{"a": {"count": 2}}',
        b"[" * 1000,
        b'{"A/": {"count": 2, "at": %d}}' % NOW,
        b'{"a\\n": {"count": 2, "at": %d}}' % NOW,
    ],
)
def test_what_somebody_else_writes_there_counts_as_no_loss(text: bytes) -> None:
    own = {losses.NAME: text}
    assert losses.avoided(loses(own=own), now=NOW) == ()
    assert does(loses(own=own).shown(), but="wake") == "nothing"
    assert counts(loses(failed(0, node="a"), own=own)) == {"a": 1}


def test_a_job_without_a_loss_remembers_nothing() -> None:
    view = loses(pending(0, node="a"), known=False).configured(memory=None)
    assert losses.NAME not in change(view).memory.own
    assert does(job(2), but="wake") == "nothing"


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param({"elastic": False}, id="plain"),
        pytest.param({"policy": Policy(enabled=False)}, id="not to be elastic"),
    ],
)
def test_a_job_that_is_not_elastic_avoids_nobody(facts: dict[str, Any]) -> None:
    view = loses(own=lost_on(a=2), **facts)
    assert view.of(AvoidedNodes) is None
    assert "NodesAvoided" not in does(view)


def test_forgetting_takes_no_write_of_its_own() -> None:
    view = loses(own=lost_on(a=1, ago=DAY + 1))
    assert written(view) is None
    assert does(view, but="wake") == "nothing"


def test_a_node_with_two_losses_is_named_once_and_for_a_day() -> None:
    view = loses(own=lost_on(a=2, b=3, c=1))
    [told] = [action for action in decide(view, now=NOW).actions if isinstance(action, TellUser)]
    [note] = told.notes
    assert note.line == (
        "NodesAvoided: a, b: 2 or more workers of j were lost there, so new workers prefer other "
        "nodes until a day has passed without a loss"
    )
    assert words.nodes_in(told.text) == ("a", "b")
    told_once = apply(view, told, now=NOW)
    assert does(told_once, but="wake") == "nothing"
    ends_at = NOW - 60 + DAY
    assert does(told_once, now=ends_at - 1, but="wake") == "nothing"
    assert does(told_once, now=ends_at, but="wake") == "say nothing more"


def test_the_job_is_looked_at_when_a_day_has_passed() -> None:
    view = loses(own=lost_on(a=2, b=1)).but(launcher=None)
    assert losses.ends_at(view, now=NOW) == NOW - 60 + DAY
    assert decide(view, now=NOW).wake_at == NOW - 60 + DAY
    assert losses.ends_at(loses(own=lost_on(b=1)), now=NOW) is None


def test_the_webhook_knows_the_node_before_its_worker_is_made_again() -> None:
    """The notice is written before the deletion, upon which the operator makes the pod again."""
    view: JobView = loses(failed(0, node="a"), own=lost_on(a=1)).remembering(elders=pods(1))
    [first, *_] = decide(view, now=NOW).actions
    assert isinstance(first, WriteConfig)
    plan = decide(apply(view, first, now=NOW), now=NOW).actions
    kinds = [type(action) for action in plan]
    assert kinds.index(TellUser) < kinds.index(DeleteWorkers)
    [told] = [action for action in plan if isinstance(action, TellUser)]
    assert words.nodes_in(told.text) == ("a",)


@pytest.mark.parametrize(
    ("notices", "nodes"),
    [
        ("", ()),
        ("NodesAvoided", ()),
        ("NodesAvoided: ", ()),
        ("Parked: x\nNodesAvoided: a.b, c: words: more, d", ("a.b", "c")),
        ("NodesAvoided: gpu-17, gpu-2", ()),
        ("NodesAvoided: a, B, c/d, , -e, f\x00, g: words", ("a", "g")),
        (f"NodesAvoided: {LONGEST}x, {LONGEST}: ", (LONGEST,)),
        ("Other: NodesAvoided: a: ", ()),
        ("NodesAvoided: " + ", ".join(f"n{number}" for number in range(99)) + ": words", None),
    ],
)
def test_what_the_webhook_reads(notices: str, nodes: tuple[str, ...] | None) -> None:
    found = words.nodes_in(notices)
    if nodes is None:
        assert len(found) == losses.MOST
    else:
        assert found == nodes


def test_what_the_memory_holds_can_be_read_again() -> None:
    view: JobView = loses(failed(0, node="a"), own=lost_on(a=1)).remembering(elders=pods(1))
    record = change(view).memory.own[losses.NAME]
    known = msgspec.json.decode(record, type=dict[str, losses.NodeLosses])
    assert known == {"a": losses.NodeLosses(count=2, at=NOW)}
