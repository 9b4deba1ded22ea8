"""Parking at admission: what a placeholder is, and what cannot be parked."""

import json
from collections.abc import Sequence
from typing import Any

import jsonpatch
import pytest

from lab.operator.objects import Object
from mpijob_elastic import names
from mpijob_elastic.admission import review
from mpijob_elastic.admission.size import QuotaFacts, read_quota
from mpijob_elastic.model import parking as of_parking
from mpijob_elastic.names import PARKED
from tests.product.webhook.answers import NOTHING, facts, knowing, running, verdict
from tests.product.webhook.objects import PLAIN, body, config_map, launcher_pod, worker_pod
from webhook.rules import handlers

THREE = {PARKED: "1"}
FILL = {"mpijob-elastic/autoscale": "fill", names.MIN_REPLICAS: "1", names.MAX_REPLICAS: "4"}
PLAINLY = {"command": PLAIN}
NOTHING_AT_ALL = {"cpu": "0", "memory": "0", "nvidia.com/gpu": "0"}


def made(sent: Object, job: Object | None, *, quotas: Sequence[QuotaFacts] = ()) -> Object:
    """What the API server stores of an object that the operator creates."""
    context = knowing(job, quotas=quotas) if job else NOTHING
    stored: Object = sent
    for _ in range(2):  # another webhook's change has the API server ask again
        found = handlers.answer(review.parse(body(stored)), handlers.mutating(context)).verdict
        stored = jsonpatch.apply_patch(stored, found.patch)
    return stored


def with_gpu(index: int) -> Object:
    pod = worker_pod(index)
    pod["spec"]["containers"][0]["resources"] = {
        "limits": {"nvidia.com/gpu": 8},
        "requests": {"cpu": "4"},
    }
    return pod


@pytest.mark.parametrize(
    ("text", "indices"), [("1", {1}), ("3,1", {1, 3}), ("0, 2", {0, 2}), ("9999", {9999})]
)
def test_indices_are_read(text: str, indices: set[int]) -> None:
    assert {*(of_parking.parse(text) or ())} == indices


@pytest.mark.parametrize(
    "text", ["", "-1", "1,", "1-3", "10000", "x", ",".join(str(index) for index in range(101))]
)
def test_other_texts_are_refused(text: str) -> None:
    [refusal] = verdict(running(annotations={PARKED: text}, replicas=200)).refusals
    assert f"metadata.annotations[{PARKED}]" in refusal.field
    assert '"1,3" (numbers of workers; at most 100, each from 0 to 9999)' in refusal.message


def test_a_parked_worker_asks_for_nothing_and_waits_for_ever() -> None:
    spec = made(with_gpu(1), running(annotations=THREE, replicas=3))["spec"]
    assert spec["schedulingGates"] == [{"name": names.GATE_PARKED}]
    assert spec["containers"][0]["resources"] == {
        "requests": NOTHING_AT_ALL,
        "limits": NOTHING_AT_ALL,
    }


def quota(**spec: Any) -> QuotaFacts:
    return read_quota(
        json.dumps({"metadata": {"name": "q", "namespace": "default"}, "spec": spec}).encode()
    )


@pytest.mark.parametrize(
    ("spec", "memory"),
    [
        pytest.param({"scopes": ["BestEffort"]}, "1", id="only pods that ask for nothing count"),
        pytest.param(
            {"scopeSelector": {"matchExpressions": [{"scopeName": "BestEffort"}]}},
            "1",
            id="the same by a selector",
        ),
        pytest.param({"scopes": ["NotBestEffort"]}, "0", id="only others count"),
        pytest.param({}, "0", id="every pod counts"),
    ],
)
def test_where_pods_that_ask_for_nothing_are_limited_it_asks_for_a_byte(
    spec: Object, memory: str
) -> None:
    """Such a quota refused the placeholder, and the operator made nothing of the job."""
    pod = with_gpu(1)
    pod["spec"]["containers"].append({"name": "sidecar"})
    stored = made(
        pod, running(annotations=THREE, replicas=3), quotas=[quota(hard={"pods": "0"}, **spec)]
    )
    first, second = (one["resources"] for one in stored["spec"]["containers"])
    assert first["limits"] == first["requests"] == {**NOTHING_AT_ALL, "memory": memory}
    assert second["requests"] == {"cpu": "0", "memory": "0"}


def test_no_other_gate_and_no_mark_of_a_gang_is_on_it() -> None:
    asked = {**THREE, "mpijob-elastic/suspend": "true", "mpijob-elastic/gang": "volcano"}
    pod = made(with_gpu(1), running(annotations=asked, replicas=3))
    assert pod["spec"]["schedulingGates"] == [{"name": names.GATE_PARKED}]
    assert pod["spec"]["schedulerName"] == with_gpu(1)["spec"]["schedulerName"]
    assert pod["metadata"] == with_gpu(1)["metadata"]


@pytest.mark.parametrize(
    ("pod", "job"),
    [
        pytest.param(with_gpu(2), {}, id="not parked"),
        pytest.param(launcher_pod(), {"annotations": {PARKED: "0"}}, id="the launcher"),
        pytest.param(with_gpu(1), {"command": PLAIN}, id="not elastic"),
    ],
)
def test_others_are_as_they_were(pod: Object, job: dict[str, Any]) -> None:
    stored = made(pod, running(**{"annotations": THREE, "replicas": 3, **job}))
    assert "schedulingGates" not in stored["spec"]
    assert stored["spec"]["containers"][0].get("resources") == pod["spec"]["containers"][0].get(
        "resources"
    )


@pytest.mark.parametrize(
    ("notices", "labels"),
    [
        pytest.param("HandedOver: it is theirs", {}, id="the job was handed over"),
        pytest.param("", {names.LABEL_REPLICA_INDEX: "1"}, id="v0.3.0 makes the pod"),
    ],
)
def test_a_job_of_another_operator_gets_no_placeholder(
    notices: str, labels: dict[str, str]
) -> None:
    """The controller would delete it, and that operator make it again, for ever."""
    told = {names.STATUS: notices} if notices else {}
    pod = with_gpu(1)
    pod["metadata"]["labels"] |= labels
    stored = made(pod, running(annotations={**THREE, **told}, replicas=3))
    assert "schedulingGates" not in stored["spec"]
    assert stored["spec"]["containers"][0]["resources"] == pod["spec"]["containers"][0]["resources"]


def on_node(job: Object, node: str) -> Object:
    job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["nodeName"] = node
    return job


def test_a_template_gets_no_node_while_workers_are_parked() -> None:
    """A gate cannot hold such a pod, so it would start, and be deleted and made again for ever."""

    def job(**more: Any) -> Object:
        return running(**{"annotations": THREE, "replicas": 3, **more})

    [refusal] = verdict(on_node(job(), "n"), job()).refusals
    assert "use nodeSelector, or unpark all workers first" in refusal.message
    assert verdict(on_node(job(), "m"), on_node(job(), "n")).allowed
    assert verdict(on_node(job(annotations={}), "n"), job(annotations={})).allowed


def test_the_launcher_does_not_wait_for_it() -> None:
    job = running(annotations={PARKED: "1,5"}, replicas=3)
    hostfile = made(config_map(replicas=3), job)["data"]["hostfile"]
    assert [line.split(" ")[0] for line in hostfile.splitlines()] == [
        "train-worker-0",
        "train-worker-2",
    ]


@pytest.mark.parametrize(
    ("annotations", "why"),
    [
        (
            {PARKED: "0,1,2"},
            "leaves 0 of 3 workers, below the smallest size (1); park fewer, or add workers",
        ),
        (
            {PARKED: "0", names.MIN_REPLICAS: "3"},
            "leaves 2 of 3 workers, below mpijob-elastic/min-replicas (3)",
        ),
        ({PARKED: "0", **FILL}, "remove mpijob-elastic/autoscale first"),
    ],
)
def test_what_cannot_be_parked_is_refused(annotations: dict[str, str], why: str) -> None:
    said = [
        str(refusal) for refusal in verdict(running(annotations=annotations, replicas=3)).refusals
    ]
    assert len(said) == 1
    assert why in said[0]


def test_a_size_that_is_wrong_without_parking_too_is_told_as_well() -> None:
    annotations = {PARKED: "0,1,2", names.MIN_REPLICAS: "4"}
    fields = [one.field for one in verdict(running(annotations=annotations, replicas=3)).refusals]
    assert fields == [
        "spec.mpiReplicaSpecs.Worker.replicas",
        f"metadata.annotations[{PARKED}]",
    ]


@pytest.mark.parametrize(
    ("before", "after", "warned"),
    [
        pytest.param(None, ("9", 4), "9", id="created with one"),
        pytest.param(("", 4), ("9", 4), "9", id="named now"),
        pytest.param(("", 4), ("1,4,9", 4), "4, 9", id="some are beyond"),
        pytest.param(("9", 4), ("9,1", 4), "", id="named before"),
        pytest.param(("9", 12), ("9", 4), "", id="a smaller size"),
        pytest.param(("", 4), ("3", 4), "", id="within the size"),
    ],
)
def test_a_worker_beyond_the_size_that_is_parked_is_warned_of(
    before: tuple[str, int] | None, after: tuple[str, int], warned: str
) -> None:
    def job(parked: tuple[str, int]) -> Object:
        annotations = {PARKED: parked[0]} if parked[0] else {}
        return running(annotations=annotations, replicas=parked[1])

    told = verdict(job(after), job(before) if before else None).warnings
    said = f"{PARKED} names {warned}, but the job has 4 workers, numbered from 0: no effect yet"
    assert [one for one in told if "numbered from 0" in one] == ([said] if warned else [])


def test_a_queued_job_and_one_that_chooses_its_node_park_nothing() -> None:
    queued = running(annotations=THREE, replicas=3)
    queued["metadata"].setdefault("labels", {})["kueue.x-k8s.io/queue-name"] = "team"
    placed = running(annotations=THREE, replicas=3)
    placed["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["nodeName"] = "n"
    for job, why in (
        (queued, "workers of a queued job cannot be parked"),
        (placed, "names a node (nodeName)"),
    ):
        assert why in str(verdict(job).refusals)


def test_a_job_with_parked_workers_joins_no_queue_that_counts_them() -> None:
    """Its quota would be asked for by numbers of workers that are not there, and some would wait for ever."""
    free, queued = (running(annotations=THREE, replicas=3) for _ in range(2))
    queued["metadata"].setdefault("labels", {})["kueue.x-k8s.io/queue-name"] = "team"
    assert "workers of a queued job cannot be parked" in str(verdict(queued, free).refusals)
    assert verdict(queued, queued).allowed


def test_a_job_with_parked_workers_gets_no_other_that_chooses_its_size() -> None:
    before, after = (running(annotations={**THREE, **more}, replicas=3) for more in ({}, FILL))
    assert "remove mpijob-elastic/autoscale first" in str(verdict(after, before).refusals)


def test_what_was_parked_before_stays_and_can_be_edited() -> None:
    before = running(annotations={PARKED: "0,1,2"}, replicas=3)
    after = running(annotations={PARKED: "0,1,2", "mpijob-elastic/drain-timeout": "1m"}, replicas=3)
    assert verdict(after, before).allowed


def test_a_size_is_not_refused_for_what_was_parked_while_nobody_checked() -> None:
    before, after = (running(annotations={**THREE, **FILL}, replicas=size) for size in (4, 3))
    assert verdict(after, before).allowed


def test_bounds_and_sizes_count_those_that_are_not_parked() -> None:
    sizes = {PARKED: "1", "mpijob-elastic/sizes": "2,4"}
    assert verdict(running(annotations=sizes, replicas=3)).allowed
    assert "3 is not a size of" in str(verdict(running(annotations=sizes, replicas=4)).refusals)
    assert verdict(running(annotations={PARKED: "1", names.MAX_REPLICAS: "2"}, replicas=3)).allowed
    assert facts(running(annotations={PARKED: "1,7"}, replicas=3)).workers == 2


def test_a_job_that_is_not_elastic_is_warned() -> None:
    told = verdict(running(annotations=THREE, replicas=3, command=PLAIN)).warnings
    assert f"{PARKED} has no effect: this job is not elastic" in told


STILL = {names.STATUS: f"{names.REASON_STILL_ELASTIC}: until its next launcher"}


def test_a_job_whose_launcher_is_still_elastic_keeps_its_placeholders() -> None:
    job = running(annotations={**THREE, **STILL}, replicas=3, command=PLAIN)
    assert made(with_gpu(1), job)["spec"]["schedulingGates"] == [{"name": names.GATE_PARKED}]
    forbidden = {**THREE, **STILL, names.ENABLED: "false"}
    job = running(annotations=forbidden, replicas=3, command=PLAIN)
    assert "schedulingGates" not in made(with_gpu(1), job)["spec"]


def test_an_edit_to_a_plain_command_says_when_it_takes_effect() -> None:
    before, after = (running(annotations=THREE, replicas=3, **more) for more in ({}, PLAINLY))
    said = verdict(after, before).warnings
    assert any("is not elastic any more with a new launcher" in one for one in said)
    assert not any("has no effect" in one for one in said)
    both = running(annotations={**THREE, **STILL}, replicas=3, **PLAINLY)
    assert not any("elastic" in one for one in verdict(both, after).warnings)


def test_the_rules_of_parking_hold_until_then() -> None:
    before = running(annotations={**THREE, **STILL}, replicas=3, **PLAINLY)
    after = running(annotations={PARKED: "0,1,2", **STILL}, replicas=3, **PLAINLY)
    assert "leaves 0 of 3 workers" in str(verdict(after, before).refusals)
