"""The scheduling gates of a job's new pods."""

from typing import Any

import pytest

from mpijob_elastic import names
from tests.product.webhook.answers import facts, patched
from tests.product.webhook.objects import PLAIN, Object, launcher_pod, mpi_job, worker_pod
from webhook.rules import scheduling_gates

SUSPENDED = {"name": names.GATE_SUSPENDED}
THEIRS = {"name": "kueue.x-k8s.io/admission"}
SUSPEND = {names.SUSPEND: "true"}
# Ranks of the last launcher may run. The controller takes the notice away once there is a launcher.
RESUMED = {names.STATUS: "Queued: x\nSuspended: j is suspended"}


def with_spec(pod: Object, **fields: Any) -> Object:
    return {**pod, "spec": {**pod["spec"], **fields}}


@pytest.mark.parametrize(
    ("pod", "job", "gates"),
    [
        pytest.param(worker_pod(), mpi_job(annotations=SUSPEND), [SUSPENDED], id="a worker of a suspended job"),
        pytest.param(launcher_pod(), mpi_job(annotations=SUSPEND), [SUSPENDED], id="its launcher"),
        pytest.param(
            with_spec(worker_pod(), schedulingGates=[THEIRS]),
            mpi_job(annotations=SUSPEND),
            [THEIRS, SUSPENDED],
            id="beside the gates of others",
        ),
        pytest.param(
            launcher_pod(), mpi_job(annotations=RESUMED), [SUSPENDED], id="resumed before its next launcher is there"
        ),
        pytest.param(launcher_pod(), mpi_job(annotations=RESUMED, command=PLAIN), None, id="a plain job that was"),
        pytest.param(worker_pod(), mpi_job(), None, id="not suspended"),
        pytest.param(worker_pod(), mpi_job(annotations=SUSPEND, command=PLAIN), None, id="not elastic"),
        # The API server would refuse it.
        pytest.param(
            with_spec(worker_pod(), nodeName="gpu-1"), mpi_job(annotations=SUSPEND), None, id="its node is chosen"
        ),
    ],
)
def test_a_new_pod_gets_the_gates_of_its_job_and_nothing_else(
    pod: Object, job: Object, gates: list[Object] | None
) -> None:
    expected = pod if gates is None else with_spec(pod, schedulingGates=gates)
    assert patched(scheduling_gates.missing, pod, job) == expected


FIELD_OF_QUEUE = "metadata.labels[kueue.x-k8s.io/queue-name]"
PLAINLY, SUSPENDING = mpi_job(), mpi_job(annotations=SUSPEND)
QUEUED = {**PLAINLY, "metadata": {**PLAINLY["metadata"], "labels": {names.LABEL_QUEUE: "team"}}}


@pytest.mark.parametrize(
    ("minor", "new", "old", "fields"),
    [
        pytest.param(26, QUEUED, None, [FIELD_OF_QUEUE], id="created in a queue"),
        pytest.param(26, QUEUED, PLAINLY, [FIELD_OF_QUEUE], id="put into a queue"),
        pytest.param(26, QUEUED, QUEUED, [], id="in a queue before"),
        pytest.param(26, SUSPENDING, PLAINLY, [f"annotation {names.SUSPEND}"], id="suspended"),
        pytest.param(26, PLAINLY, None, [], id="has not to wait"),
        pytest.param(27, QUEUED, None, [], id="Kubernetes has gates"),
        pytest.param(None, QUEUED, None, [], id="the version is not known"),
    ],
)
def test_a_job_that_would_have_to_wait_is_refused_where_nothing_can_hold_its_pods(
    minor: int | None, new: Object, old: Object | None, fields: list[str]
) -> None:
    refused = list(scheduling_gates.refusals(facts(new), facts(old) if old else None, minor=minor))
    assert [refusal.field for refusal in refused] == fields
    why = "Kubernetes 1.26 has no scheduling gates, so the pods would start at once; it takes 1.27"
    assert all(refusal.message == why for refusal in refused)
