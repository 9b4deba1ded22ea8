"""What becomes of ScaleIns and ScaleOuts."""

from dataclasses import replace
from typing import Any

import pytest

from mpijob_elastic.capabilities.autoscaling.autoscaler import Autoscaler
from mpijob_elastic.capabilities.autoscaling.facts import Autoscale, Scaling
from mpijob_elastic.capabilities.et_operator import EtOperator
from mpijob_elastic.capabilities.et_operator.actions import OwnRequest, SayPhase, SetWorkers
from mpijob_elastic.capabilities.et_operator.facts import (
    FAILED,
    PENDING,
    SCALE_INS,
    SCALING,
    SUCCEEDED,
    UNDONE,
    ScaleRequest,
)
from mpijob_elastic.capabilities.et_operator.wishes import say
from mpijob_elastic.decide import decide
from mpijob_elastic.model.policy import Policy
from tests.builders import NOW, but, config, job, pending, pods, ref, worker
from tests.product.capabilities.et_operator.requests import (
    asked,
    asking,
    scale_in,
    scale_out,
    started,
)
from tests.product.decide.plans import does

IN, OUT = "uid-of-in", "uid-of-out"


def said(view: Any) -> str:
    [action] = [one for one in decide(view, now=NOW).actions if isinstance(one, SayPhase)]
    return f"{action.phase}: {action.why}"


def test_first_it_belongs_to_the_job() -> None:
    assert does(asked(scale_in(1, owned=False))) == "own in"


@pytest.mark.parametrize(
    ("requests", "plan"),
    [
        pytest.param((scale_in(1, owned=False),), "own in; in Scaling 1", id="it starts"),
        pytest.param(
            (scale_in(1, owned=False), scale_out(1, owned=False)),
            "own in; in Scaling 1; own out; out Pending",
            id="the next one waits for it",
        ),
        pytest.param(
            (started(scale_in(2, owned=False), 2),), "size 2 parked - by uid-of-in", id="it goes on"
        ),
    ],
)
def test_a_request_that_the_job_may_not_own_is_answered_without_the_owner(
    requests: tuple[ScaleRequest, ...], plan: str
) -> None:
    view = replace(asked(*requests), refused={OwnRequest: ""})
    assert plan in does(view)


def test_its_pods_are_written_down_before_anything_else() -> None:
    assert does(asked(scale_in(1))) == "in Scaling 1"
    assert does(asked(asking("in", resource=SCALE_INS, count=2))) == "in Scaling 1 2"
    assert does(asked(scale_out(2))) == "out Scaling 3 4"
    assert does(asked(scale_out(1), size=3, parked=(4,))) == "out Scaling 3"


def test_parked_workers_come_back_first() -> None:
    assert does(asked(scale_out(1), size=4, parked=(1, 2))).endswith("; out Scaling 1")
    assert does(asked(scale_out(3), size=4, parked=(1, 5))).endswith("; out Scaling 1 4 5")


@pytest.mark.parametrize(
    ("view", "size"),
    [
        (asked(started(scale_in(2), 2)), f"size 2 parked - by {IN}"),
        (asked(started(scale_in(1), 1)), f"size 3 parked 1 by {IN}"),
        (asked(started(scale_in(0, 2), 0, 2)), f"size 2 parked 0 by {IN}"),
        (asked(started(scale_out(2), 3, 4), by=IN), f"size 5 parked - by {OUT}"),
        (asked(started(scale_out(1), 1), size=4, parked=(1, 2)), f"size 4 parked 2 by {OUT}"),
        (asked(started(scale_out(2), 1, 3), parked=(1,)), f"size 4 parked - by {OUT}"),
    ],
)
def test_then_the_size_is_set_with_its_mark(view: Any, size: str) -> None:
    [action] = [one for one in decide(view, now=NOW).actions if isinstance(one, SetWorkers)]
    assert f"size {action.after} parked {action.parked or '-'} by {action.mark}" == size


def test_it_succeeds_once_its_workers_are_gone_or_listed() -> None:
    leaves = started(scale_in(2), 2)
    still = asked(
        leaves, size=2, by=IN, workers=(worker(0), worker(1), worker(2)), config=config(pods(0, 1))
    )
    assert "in ScaleSucceeded" not in does(still)
    assert does(asked(leaves, size=2, by=IN)) == "in ScaleSucceeded"

    comes = started(scale_out(1), 2)
    view = asked(
        comes, size=3, by=OUT, workers=(worker(0), worker(1), pending(2)), config=config(pods(0, 1))
    )
    assert "out" not in does(view)
    assert does(asked(comes, size=3, by=OUT)) == "out ScaleSucceeded; wake 59"


def test_what_does_not_come_in_time_is_taken_back() -> None:
    def late(ago: float, by: str = OUT, size: int = 3) -> Any:
        workers = (worker(0), worker(1), pending(2))[:size]
        comes = started(scale_out(1, timeout=30), 2, ago=ago)
        return asked(comes, size=size, by=by, workers=workers, config=config(pods(0, 1)))

    assert decide(late(20), now=NOW).wake_at == NOW + 10
    assert f"size 2 parked - by {OUT}:undone" in does(late(30))
    assert said(late(31, OUT + UNDONE, 2)) == (
        f"{FAILED}: j-worker-2 did not all start within 30 s, so all were taken back"
    )


def test_a_size_is_set_once_whatever_a_user_makes_of_it() -> None:
    view = asked(started(scale_in(2), 2), size=3, by=IN)
    assert said(view) == f"{FAILED}: somebody else has set another size of j since"


def test_a_status_that_somebody_emptied_stops_nothing() -> None:
    view = asked(started(scale_out(1)))
    [action] = [one for one in decide(view, now=NOW).actions if isinstance(one, SetWorkers)]
    assert action.after == 3
    assert said(asked(started(scale_out(1)), by=OUT)).startswith(SUCCEEDED)


def test_the_oldest_comes_first_and_the_others_say_that_they_wait() -> None:
    first, second = scale_in(2, created_at=NOW - 20), scale_out(1)
    assert does(asked(second, first)) == "in Scaling 2; out Pending"
    assert does(asked(but(second, phase=PENDING), first)) == "in Scaling 2"
    ended = but(first, phase=SUCCEEDED)
    assert does(asked(but(second, phase=PENDING), ended)) == "out Scaling 3"


def test_of_a_flood_of_requests_only_some_are_looked_at() -> None:
    many = [scale_out(1, name=f"out-{number}") for number in range(1000)]
    assert len(decide(asked(*many), now=NOW).actions) == 50


def test_a_job_that_is_suspended_is_scaled_once_it_runs() -> None:
    view = asked(scale_in(2), suspended_by="mpijob-elastic/suspend")
    assert said(view) == f"{PENDING}: the job is suspended by annotation mpijob-elastic/suspend"
    assert "in " not in does(
        asked(but(scale_in(2), phase=PENDING), suspended_by="mpijob-elastic/suspend")
    )


SUSPENDED: dict[str, Any] = {"suspended_by": "mpijob-elastic/suspend"}


def test_the_timeout_of_a_scale_out_does_not_run_while_its_job_is_suspended() -> None:
    late = started(scale_out(1, timeout=30), 2, ago=3600)
    few = (worker(0), worker(1), pending(2))
    pods_of: dict[str, Any] = {"workers": few, "config": config(pods(0, 1))}
    view = asked(late, by=OUT, **pods_of, **SUSPENDED)
    assert said(view) == f"{PENDING}: the job is suspended by annotation mpijob-elastic/suspend"
    assert "undone" not in does(view)
    paused = but(started(late, 2, ago=1), phase=PENDING)
    assert decide(asked(paused, by=OUT, **pods_of, **SUSPENDED), now=NOW).wake_at != NOW + 29

    resumed = asked(but(late, phase=PENDING), by=OUT, **pods_of)
    [again] = [one for one in decide(resumed, now=NOW).actions if isinstance(one, SayPhase)]
    assert (again.phase, again.pods, again.at) == (SCALING, pods(2), NOW)
    assert "size" not in does(resumed), "its size was set before"
    goes_on = asked(started(late, 2, ago=1), by=OUT, **pods_of)
    assert decide(goes_on, now=NOW).wake_at == NOW + 29


def test_a_scale_out_that_had_not_set_the_size_yet_begins_anew() -> None:
    paused = but(scale_out(1), phase=PENDING, pods=pods(7))
    assert does(asked(paused)) == "out Scaling 3"
    assert "size" not in does(asked(started(scale_out(1), 3), **SUSPENDED))


def test_a_scale_in_goes_on_while_its_job_is_suspended() -> None:
    """It has no timeout, and a suspended job loses its workers anyway."""
    assert f"by {IN}" in does(asked(started(scale_in(2), 2), **SUSPENDED))


def test_a_job_that_is_suspended_again_and_again_makes_its_request_no_larger() -> None:
    """Anybody who may edit the job may do so all day."""
    request = started(scale_out(1), 2, ago=5)
    for phase in (PENDING, SCALING) * 10:
        [change] = say(request, phase, "because", now=NOW).change()
        status = change["value"]
        request = but(request, conditions=tuple(status["conditions"]), phase=phase)
        assert status["addPods"] == [*pods(2)]
    assert [one["type"] for one in request.conditions] == [PENDING, SCALING]


def test_a_worker_that_does_not_come_back_in_time_is_parked_again() -> None:
    workers = (worker(0), pending(1), worker(2))
    comes = started(scale_out(1, timeout=30), 1, ago=31)
    view = asked(comes, by=OUT, workers=workers, config=config(pods(0, 2)))
    assert f"size 3 parked 1 by {OUT}:undone" in does(view)


HPA = Autoscaler(metadata=ref("own"), digest="", labelled=False, deleting=False)
FILL = Scaling(autoscale=Autoscale(fill=True))


@pytest.mark.parametrize(
    "one", [scale_in(2), started(scale_in(2), 2), scale_out(1), started(scale_out(1), 3)]
)
@pytest.mark.parametrize(
    ("facts", "why"),
    [
        (
            {"size_manager": "argocd-controller"},
            "argocd-controller sets the size of j; change the size at its source, such as in Git",
        ),
        ({"autoscalers": (HPA,)}, "HPA own sets the size of j; edit or delete that HPA"),
        (
            {"scaling": FILL},
            "the annotation mpijob-elastic/autoscale lets idle nodes set the size of j",
        ),
    ],
)
def test_a_size_that_somebody_else_sets_is_left_alone(
    one: ScaleRequest, facts: dict[str, Any], why: str
) -> None:
    view = asked(one, **facts)
    assert said(view).startswith(f"{FAILED}: {why}")
    assert not [
        action for action in decide(view, now=NOW).actions if isinstance(action, SetWorkers)
    ]


BOUNDS = Policy(min_replicas=3, max_replicas=3)


@pytest.mark.parametrize(
    ("view", "why"),
    [
        (asked(scale_out(1, script="sh x")), "spec.script is not run"),
        (asked(scale_out(10**12)), "more than 500 workers at once: ask for them in several steps"),
        (asked(scale_out(0)), ".spec.toAdd.count has to be greater than 0"),
        (
            asked(asking("in", resource=SCALE_INS)),
            ".spec.toDelete.count or .spec.toDelete.podNames has to be set",
        ),
        (asked(scale_in(1, count=2)), ".spec.toDelete.count and .spec.toDelete.podNames disagree"),
        (asked(scale_in(1, 7, 9)), "j has no worker j-worker-7, j-worker-9"),
        (asked(scale_in(0, 1, 2)), "j would have 0 workers; its bounds are 1 and none"),
        (asked(scale_in(1), policy=BOUNDS), "j would have 2 workers; its bounds are 3 and 3"),
        (asked(scale_out(1), policy=BOUNDS), "j would have 4 workers; its bounds are 3 and 3"),
        (asked(scale_in(1), sizes=(1, 3)), "j may have only these sizes: 1, 3"),
        (asked(scale_in(1), finished=True), "j has ended"),
        (
            asked(scale_in(1), policy=Policy(enabled=False), spec_elastic=False),
            "j cannot change its size: `mpijob-elastic explain j -n default` says why",
        ),
        (asked(scale_in(1), foreign="it is another's"), "another operator manages j"),
    ],
)
def test_what_cannot_be_done_fails_with_the_reason(view: Any, why: str) -> None:
    assert said(view).startswith(f"{FAILED}: {why}")


def test_what_the_webhook_refuses_has_failed_with_its_words() -> None:
    view = replace(
        asked(started(scale_in(1), 1)), refused={SetWorkers: "workers whose template names a node"}
    )
    assert said(view) == f"{FAILED}: workers whose template names a node"
    assert not [one for one in decide(view, now=NOW).actions if isinstance(one, SetWorkers)]


@pytest.mark.parametrize("why", [{"foreign": "it is another's"}, {"finished": True}])
def test_no_size_is_set_of_a_job_that_is_not_ours_any_more(why: Any) -> None:
    view = asked(started(scale_in(2), 2), **why)
    assert said(view).startswith(FAILED)
    assert not [one for one in decide(view, now=NOW).actions if isinstance(one, SetWorkers)]


def test_requests_of_another_job_of_the_name_are_left_alone() -> None:
    other = but(scale_in(1), metadata=but(scale_in(1).metadata, job_uid="of-another"))
    assert EtOperator.of(job(3), [other, but(scale_in(1), deleting=True)]) is None
