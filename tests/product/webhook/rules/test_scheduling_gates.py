"""The scheduling gates of a job's new pods."""

import json
from typing import Any

import jsonpatch
import msgspec
import pytest

from mpijob_elastic import names
from mpijob_elastic.model import job_facts
from mpijob_elastic.model.job_facts import JobFacts
from tests.product.webhook.objects import ELASTIC, Object, launcher_pod, mpi_job, worker_pod
from webhook.rules import mutate, scheduling_gates

SUSPENDED = {"name": names.GATE_SUSPENDED}
SUSPEND = {names.SUSPEND: "true"}


def gated(pod: Object, **job: Any) -> Object:
    made = mpi_job(**{"command": ELASTIC, "annotations": SUSPEND, **job})
    facts = job_facts.read(json.dumps(made).encode())
    changed: Object = jsonpatch.apply_patch(pod, scheduling_gates.missing(msgspec.convert(pod, mutate.Pod), facts))
    return changed


@pytest.mark.parametrize("pod", [worker_pod(), launcher_pod()])
def test_a_new_pod_of_a_suspended_job_gets_the_gate_and_nothing_else(pod: Object) -> None:
    changed = gated(pod)
    assert changed == {**pod, "spec": {**pod["spec"], "schedulingGates": [SUSPENDED]}}
    assert gated(changed) == changed


def test_the_gates_of_others_stay() -> None:
    pod, theirs = worker_pod(), {"name": "kueue.x-k8s.io/admission"}
    pod["spec"]["schedulingGates"] = [theirs]
    assert gated(pod)["spec"]["schedulingGates"] == [theirs, SUSPENDED]


def test_a_job_that_is_resumed_before_its_next_launcher_is_there_still_gets_the_gate() -> None:
    """Ranks of the last may run. The controller takes the notice away once there is a launcher."""
    said = {names.STATUS: "Queued: x\nSuspended: j is suspended"}
    assert gated(launcher_pod(), annotations=said)["spec"]["schedulingGates"] == [SUSPENDED]
    assert gated(launcher_pod(), annotations=said, command=["mpirun", "python"]) == launcher_pod()


@pytest.mark.parametrize("job", [{"annotations": {}}, {"command": ["mpirun", "python"]}])
def test_no_other_pod_gets_it(job: dict[str, Any]) -> None:
    assert gated(worker_pod(), **job) == worker_pod()


def test_a_pod_of_an_earlier_job_of_that_name_gets_none() -> None:
    pod = worker_pod()
    pod["metadata"]["ownerReferences"][0]["uid"] = "of an earlier job"
    assert gated(pod) == pod


def test_a_pod_whose_node_is_chosen_gets_none_because_the_api_server_would_refuse_it() -> None:
    pod = worker_pod()
    pod["spec"]["nodeName"] = "gpu-1"
    assert gated(pod) == pod


def test_a_pod_of_a_job_that_is_not_known_gets_none() -> None:
    assert scheduling_gates.missing(msgspec.convert(worker_pod(), mutate.Pod), None) == ()


QUEUE = {names.LABEL_QUEUE: "team"}
FIELD_OF_QUEUE = "metadata.labels[kueue.x-k8s.io/queue-name]"


def facts(*, labels: Object | None = None, **job: Any) -> JobFacts:
    made = mpi_job(command=ELASTIC, **job)
    made["metadata"]["labels"] = labels or {}
    return job_facts.read(json.dumps(made).encode())


@pytest.mark.parametrize(
    ("minor", "new", "old", "fields"),
    [
        (26, {"labels": QUEUE}, None, [FIELD_OF_QUEUE]),
        (26, {"labels": QUEUE}, {}, [FIELD_OF_QUEUE]),
        (26, {"labels": QUEUE}, {"labels": QUEUE}, []),
        (26, {"annotations": SUSPEND}, {}, [f"annotation {names.SUSPEND}"]),
        (26, {}, None, []),
        (27, {"labels": QUEUE}, None, []),
        (None, {"labels": QUEUE}, None, []),
    ],
)
def test_a_job_that_would_have_to_wait_is_refused_where_nothing_can_hold_its_pods(
    minor: int | None, new: Object, old: Object | None, fields: list[str]
) -> None:
    after, before = facts(**new), None if old is None else facts(**old)
    refused = list(scheduling_gates.refusals(after, before, minor=minor))
    assert [refusal.field for refusal in refused] == fields
    assert all("Kubernetes 1.26 has no scheduling gates" in refusal.message for refusal in refused)
