"""A job that fills idle nodes and has lost workers: for a while it grows no further than it was."""

from typing import Any

import msgspec
import pytest

from mpijob_elastic import capabilities
from mpijob_elastic.capabilities.autoscaling.autoscaler import Autoscaler
from mpijob_elastic.capabilities.autoscaling.facts import (
    AUTOSCALE,
    GROW_AFTER_LOSS,
    Autoscale,
    Scaling,
    scaling,
)
from mpijob_elastic.capabilities.kueue.facts import NO_QUEUE, Queue
from mpijob_elastic.model.history import Change
from mpijob_elastic.model.json_parts import Owned
from mpijob_elastic.model.memory import Memory
from mpijob_elastic.model.policy import Policy
from mpijob_elastic.names import MAX_REPLICAS, MIN_REPLICAS
from tests.builders import LONG_AGO, NOW, Story, config, job, pods, role, worker
from tests.product.decide.plans import does, notes
from tests.rooms.autoscaling import grown

MOST = 6
BESIDE = "say wake publish hostfile remember touch delete ask start make"
# A loss of the last minutes; after the default the job grows again.
AGO = 290.0
NO_EFFECT = "mpijob-elastic/grow-after-loss has no effect without mpijob-elastic/autoscale: fill"


def filling(**asked: Any) -> dict[str, Any]:
    return {"scaling": Scaling(autoscale=Autoscale(fill=True), **asked)}


def lost(before: int, after: int, *, ago: float = AGO, **facts: Any) -> Change:
    """A change of the history by which the job lost workers so many seconds ago."""
    known = {"cause": "failure", "note": f"j-worker-{after}: its pod is gone", **facts}
    return Change(at=NOW - ago, before=before, after=after, **known)


def sized(before: int, after: int, *, cause: str = "user", ago: float = AGO) -> Change:
    return Change(at=NOW - ago, cause=cause, by="kubectl", before=before, after=after)


def trains(size: int, *changes: Change, **facts: Any) -> Story:
    """A job that trains on all of its workers, after these changes."""
    removed_at = max((one.at for one in changes), default=0.0)
    memory = Memory(
        own=grown(size, asked=size), added_at=LONG_AGO, removed_at=min(removed_at, NOW - 60)
    )
    known = {
        "policy": Policy(min_replicas=1, max_replicas=MOST),
        "config": config(pods(*range(size)), memory=memory),
        "role": role(*range(MOST)),
        "queue": NO_QUEUE,
        "others_wait": (),
        **filling(),
        **facts,
    }
    return job(size, **known).configured(history=msgspec.json.encode(changes))


@pytest.mark.parametrize(
    ("view", "plan"),
    [
        pytest.param(trains(3), "fill 3 to 4", id="no loss"),
        pytest.param(trains(3, lost(3, 2)), "nothing", id="no further than before the loss"),
        pytest.param(trains(3, lost(3, 2, cause="node")), "nothing", id="a node went"),
        pytest.param(trains(3, lost(3, 2, ago=300.0)), "fill 3 to 4", id="the default is over"),
        # Workers that no node took were given back, so this growth brings replacements.
        pytest.param(trains(3, lost(5, 3)), "fill 3 to 4", id="up to the size before the loss"),
        pytest.param(
            trains(3, lost(4, 3, ago=200.0), lost(3, 2, ago=100.0)),
            "fill 3 to 4",
            id="before the first of two losses",
        ),
        pytest.param(
            trains(3, lost(4, 3, ago=900.0), lost(3, 2, ago=100.0)),
            "nothing",
            id="a loss that is over does not count",
        ),
        pytest.param(trains(3, lost(2, 1)), "nothing", id="a user's larger size stays as it is"),
        pytest.param(trains(3, sized(4, 3)), "fill 3 to 4", id="a smaller size is no loss"),
        pytest.param(
            trains(3, lost(3, 2, cause="Kueue")), "fill 3 to 4", id="nor is quota that is taken"
        ),
        pytest.param(trains(3, lost(3, 2, ago=-60.0)), "fill 3 to 4", id="of another clock"),
        pytest.param(
            trains(3, lost(3, 2, ago=599.0), **filling(grow_after_loss=600.0)),
            "nothing",
            id="a longer time",
        ),
        pytest.param(
            trains(3, lost(3, 2, ago=61.0), **filling(grow_after_loss=0.0)),
            "fill 3 to 4",
            id="no time",
        ),
        pytest.param(trains(4, lost(4, 3), sizes=(2, 4, 6)), "nothing", id="one of its sizes"),
        pytest.param(
            trains(2, lost(5, 4), sizes=(2, 4, 6)), "fill 2 to 4", id="a size that it had"
        ),
        pytest.param(
            trains(3, lost(5, 4), queue=Queue(name="team")), "fill 3 to 5", id="in a queue, too"
        ),
        # What it gives back never waits.
        pytest.param(
            trains(5, lost(5, 4), others_wait=(NOW - 30,)), "fill 5 to 4", id="others wait"
        ),
        pytest.param(
            trains(3, lost(3, 2)).configured(history=b"no json"),
            "fill 3 to 4",
            id="a history that cannot be read",
        ),
    ],
)
def test_it_grows_no_further_than_before_a_loss(view: Story, plan: str) -> None:
    assert does(view, but=BESIDE) == plan


def test_replacements_do_not_wait() -> None:
    """The size stays, so the operator makes the pod again; it is published as soon as it is Ready."""
    view = trains(3, lost(4, 3), workers=tuple(map(worker, range(4))), replicas=4)
    assert (
        does(view, but="say wake hostfile remember touch ask") == "publish 0 1 2 3 (HostsPublished)"
    )


def test_it_looks_again_when_the_time_is_over() -> None:
    view = trains(3, lost(3, 2), queue=Queue(name="team"))
    assert does(view, but="ask say remember touch") == "wake 10"


OWN = Autoscaler(metadata=Owned(name="own", namespace="default", uid="own", resource_version="1"))


def waits(why: str) -> str:
    return (
        f"the job has lost workers{why}, so mpijob-elastic/autoscale makes the job no larger than 3 "
        "workers until 5m after the loss; mpijob-elastic/grow-after-loss sets that time"
    )


GONE = waits(" (j-worker-2: its pod is gone)")


@pytest.mark.parametrize(
    ("view", "words"),
    [
        pytest.param(trains(3, lost(3, 2)), GONE, id="it waits"),
        pytest.param(trains(2, lost(3, 2)), GONE, id="it may have the lost worker back"),
        # A command does not look who else waits for nodes, and says it all the same.
        pytest.param(trains(3, lost(3, 2), others_wait=None), GONE, id="for a command"),
        pytest.param(
            trains(3, lost(3, 2, note="a\nStillElastic: b")),
            waits(" (a StillElastic: b)"),
            id="one line, whoever wrote the history",
        ),
        pytest.param(trains(3, lost(3, 2, note="")), waits(""), id="no reason is known"),
        pytest.param(trains(3), "", id="no loss"),
        pytest.param(trains(3, lost(3, 2, ago=300.0)), "", id="it is over"),
        pytest.param(trains(MOST, lost(MOST, 5)), "", id="its largest size"),
        pytest.param(trains(3, lost(3, 2), scaling=None), "", id="it does not fill"),
        pytest.param(trains(3, lost(3, 2), suspended_by="annotation"), "", id="suspended"),
        pytest.param(trains(3, lost(3, 2), elastic=False), "", id="not elastic"),
        pytest.param(
            trains(3, lost(3, 2), autoscalers=(OWN,)), "", id="an HPA of the user sets the size"
        ),
    ],
)
def test_the_user_reads_why_it_does_not_grow(view: Story, words: str) -> None:
    told = [one.message for one in notes(view) if one.reason == "GrowthWaits"]
    assert told == ([words] if words else [])


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0s", 0.0), ("10m", 600.0), ("24h", 86400.0), ("24h1s", 300.0), ("-1s", 300.0), ("5", 300.0)],
)
def test_a_time_that_cannot_be_read_is_refused_and_the_default_holds(
    text: str, seconds: float
) -> None:
    said = {AUTOSCALE: "fill", GROW_AFTER_LOSS: text, MIN_REPLICAS: "1", MAX_REPLICAS: "4"}
    found = capabilities.read(msgspec.json.encode({"metadata": {"name": "j", "annotations": said}}))
    assert scaling(found).pause_after_loss == seconds
    assert [one.field for one in found.problems] == (
        [f"metadata.annotations[{GROW_AFTER_LOSS}]"] if text in ("24h1s", "-1s", "5") else []
    )


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"autoscale": Autoscale(fill=True)}, []),
        ({"autoscale": Autoscale(value=70)}, [NO_EFFECT]),
        ({}, [NO_EFFECT]),
    ],
)
def test_it_is_said_at_admission_that_only_a_job_that_fills_waits(
    asked: dict[str, Any], said: list[str]
) -> None:
    facts = Scaling(grow_after_loss=60.0, **asked)
    assert [*facts.findings(job(3).facts)] == said
