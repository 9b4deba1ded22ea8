"""Autoscaling of a job that may have some sizes only: each change leads to one of them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpijob_elastic.capabilities.autoscaling import facts as autoscale
from mpijob_elastic.capabilities.autoscaling.autoscaler import MakeAutoscaler
from mpijob_elastic.capabilities.autoscaling.facts import Autoscale, Scaling
from mpijob_elastic.capabilities.kueue.facts import NO_QUEUE, Queue
from mpijob_elastic.decide import decide
from mpijob_elastic.model.memory import Memory
from mpijob_elastic.model.policy import Policy
from tests.builders import LONG_AGO, NOW, Story, config, job, pending, pods, role, worker
from tests.product.decide.plans import does
from tests.rooms.autoscaling import grown

SIZES = (2, 4, 8)
BESIDE = "say wake publish hostfile remember ask"
FILLS: dict[str, Any] = {
    "policy": Policy(min_replicas=1, max_replicas=9),
    "scaling": Scaling(autoscale=Autoscale(fill=True)),
}
IN_TIME: dict[str, Any] = {"scaling": Scaling(scale_timeout=60.0)}


def training(size: int, *, ready: int = 0, worked: int = 0, **facts: Any) -> Story:
    """A job of that size which trains on as many workers as are Ready and complete a size."""
    listed = max((each for each in SIZES if each <= (ready or size)), default=ready or size)
    memory = Memory(own=grown(worked or size, asked=size, at=LONG_AGO), added_at=LONG_AGO)
    late = (pending(index, created_at=LONG_AGO, node="") for index in range(ready or size, size))
    known = {
        "sizes": SIZES,
        "workers": (*map(worker, range(ready or size)), *late),
        "config": config(pods(*range(listed)), memory=memory),
        "role": role(*range(9)),
        "queue": NO_QUEUE,
        "others_wait": (),
    }
    return job(size, **{**known, **facts})


@pytest.mark.parametrize(
    ("view", "plan"),
    [
        pytest.param(training(4, **FILLS), "fill 4 to 8", id="the whole gap"),
        pytest.param(training(8, **FILLS), "nothing", id="its largest size"),
        pytest.param(
            training(4, max_np_workers=7, **FILLS),
            "nothing",
            id="the next is beyond horovodrun's largest",
        ),
        pytest.param(
            training(8, others_wait=(NOW - 30,), **FILLS),
            "fill 8 to 4",
            id="another job waits for one",
        ),
        pytest.param(
            training(2, others_wait=(NOW - 30,), **FILLS),
            "nothing",
            id="another job waits, none is smaller",
        ),
        pytest.param(training(8, ready=7, **FILLS), "fill 8 to 4", id="no node takes the last"),
        pytest.param(
            training(4, queue=Queue(name="team"), **FILLS),
            "fill 4 to 8",
            id="Kueue decides how many run",
        ),
        pytest.param(training(5, **FILLS), "fill 5 to 4", id="a size that missed admission"),
        pytest.param(
            training(8, ready=7, worked=2, **IN_TIME),
            "return 8 to 4",
            id="a size that was reached meanwhile",
        ),
        pytest.param(
            training(8, ready=3, worked=2, **IN_TIME), "return 8 to 2", id="the last that worked"
        ),
    ],
)
def test_each_change_leads_to_an_allowed_size(view: Story, plan: str) -> None:
    assert does(view, but=BESIDE) == plan


@given(st.lists(st.integers(1, 64), min_size=1, max_size=8, unique=True).map(sorted), st.data())
def test_each_load_has_one_size_at_which_the_hpa_rests(
    sizes: list[int], data: st.DataObject
) -> None:
    """Whichever size the job has, the steps of its HPA, each rounded up, lead to the same."""
    asked, least, most = Autoscale(value=70), sizes[0], sizes[-1]
    spec = autoscale.spec(asked, "j", least=1, most=100, paused=False, sizes=sizes)
    assert (spec["minReplicas"], spec["maxReplicas"]) == (least, most)
    load = data.draw(st.integers(1, 80))

    def rests(size: int) -> int:
        for _ in range(len(sizes) + 1):
            [up] = spec["behavior"]["scaleUp"]["policies"]
            [down] = spec["behavior"]["scaleDown"]["policies"]
            wanted = min(max(load, least, size - down["value"]), most, size + up["value"])
            size = next(one for one in sizes if one >= wanted)
        return size

    assert {rests(size) for size in sizes} == {next((one for one in sizes if one >= load), most)}


def test_the_hpa_of_a_job_knows_its_sizes() -> None:
    bounds = Policy(min_replicas=1, max_replicas=9)
    view = training(
        4, policy=bounds, scaling=Scaling(autoscale=Autoscale(value=70)), autoscalers=()
    )
    [made] = [one for one in decide(view, now=NOW).actions if isinstance(one, MakeAutoscaler)]
    [step] = made.spec["behavior"]["scaleUp"]["policies"]
    assert (made.spec["minReplicas"], made.spec["maxReplicas"], step["value"]) == (2, 8, 4)


def test_without_sizes_the_hpa_is_as_before() -> None:
    spec = autoscale.spec(Autoscale(value=70), "j", least=2, most=8, paused=False)
    assert spec["behavior"]["scaleUp"]["policies"] == [
        {"type": "Pods", "value": 1, "periodSeconds": 120}
    ]
    assert (spec["minReplicas"], spec["maxReplicas"]) == (2, 8)
