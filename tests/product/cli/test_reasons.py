"""An explanation as people and programs read it."""

import msgspec
import pytest

from mpijob_elastic.cli.jobs import reasons
from mpijob_elastic.explain import explain
from mpijob_elastic.explain.facts import Facts, Look, Pod
from mpijob_elastic.explain.findings import Explanation
from tests.builders import NOW, config, job, pending, pods, worker
from tests.product.explain.said import BUSY

PENDING = job(workers=(worker(0), worker(1), pending(2)), config=config(["j-worker-0", "j-worker-1.r2"]))
FACTS = Facts(
    state="Running",
    looks={"j-worker-0": BUSY, "j-worker-1": BUSY},
    pods={"j-worker-2": Pod(unscheduled="0/3 nodes are available: " + "3 Insufficient nvidia.com/gpu, " * 4)},
)


REPORT = explain(PENDING, FACTS, now=NOW)


def test_a_page_has_a_paragraph_for_each_worker_and_the_command_to_type() -> None:
    lines = reasons.text(REPORT)
    assert lines[0] == "default/j: Running, 2 of 3 workers train"
    assert lines[lines.index("    host name: j-worker-1.r2") - 1] == "j-worker-1 is training: python3"
    assert any(line.startswith("j-worker-2 cannot be scheduled: 0/3 nodes are available") for line in lines)
    assert lines[-2:] == ["    cause: not-scheduled", "    next: kubectl -n default describe pod j-worker-2"]
    assert max(map(len, lines)) <= reasons.WIDTH


def test_what_holds_for_the_job_comes_first_and_what_the_controller_says_last() -> None:
    view = job(2, notices="SlotsUnchanged: wait\nWorkersNotReady: wait")
    lines = reasons.text(explain(view, Facts(controller="no controller leads"), now=NOW))
    assert lines[2] == "no controller leads, so j keeps its present size"
    assert lines[3:5] == ["    cause: no-controller", "    next: kubectl -n mpijob-elastic get pods,leases"]
    assert lines[-3:] == ["Notices of the controller:", "    SlotsUnchanged: wait", "    WorkersNotReady: wait"]


@pytest.mark.parametrize(
    ("busy", "said"),
    [
        ((), "3 of 3 listed; whether they train is not known: a policy says no"),
        ((0, 1), "2 of 3 workers train; whether the others train is not known: a policy says no"),
    ],
)
def test_what_is_not_known_is_said_first_with_the_reason(busy: tuple[int, ...], said: str) -> None:
    looks = dict.fromkeys(pods(0, 1, 2), Look(error="a policy says no")) | dict.fromkeys(pods(*busy), BUSY)
    report = explain(job(), Facts(state="Running", looks=looks), now=NOW)
    assert reasons.text(report)[0] == f"default/j: Running, {said}"


def test_a_job_that_has_ended_has_no_count_of_workers() -> None:
    view = job(finished=True)
    lines = reasons.text(explain(view, Facts(state="Failed"), now=NOW))
    assert lines == [
        "default/j: Failed",
        "",
        "j has ended: Failed",
        "    cause: ended",
        "    next: kubectl -n default logs j-launcher",
    ]


def test_programs_get_camel_case_and_can_read_it_back() -> None:
    printed = msgspec.json.encode(REPORT)
    read = msgspec.json.decode(printed)
    assert (read["desired"], read["training"], read["allTrain"]) == (3, 2, False)
    assert [worker["host"] for worker in read["workers"]] == ["j-worker-0", "j-worker-1.r2", ""]
    assert read["workers"][2]["cause"]["nextStep"] == "kubectl -n default describe pod j-worker-2"
    assert msgspec.json.decode(printed, type=Explanation) == REPORT


def test_a_single_worker_can_be_reported() -> None:
    second = explain(PENDING, FACTS, now=NOW, worker=pods(1)[0])
    assert reasons.text(second)[0] == "default/j: Running"
    assert [line.split()[0] for line in reasons.text(second)[2:]] == ["j-worker-1", "host"]
