"""The scheduling gates of a job's new pods."""

import json
from typing import Any

import jsonpatch
import msgspec
import pytest

from mpijob_elastic import names
from mpijob_elastic.model import job_facts
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
