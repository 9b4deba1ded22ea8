"""What the job's author and its users are told."""

import msgspec
import pytest

from mpijob_elastic import capabilities, names
from mpijob_elastic.admission import lint
from mpijob_elastic.capabilities import admission
from mpijob_elastic.capabilities.kube_queue.facts import KUBEQUEUE_SUSPEND
from mpijob_elastic.decide import derive, in_words
from mpijob_elastic.decide.actions import Plan
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.mpijob import MPIJob
from tests.builders import NOW
from tests.product.capabilities.kube_queue.units import held, unit
from tests.product.diagnosis.said import of_job
from tests.product.webhook.objects import mpi_job

SCRIPT = ["--host-discovery-script", "/etc/mpi/discover_hosts.sh"]
WELL = ["horovodrun", "-np", "2", "--min-np", "1", "--max-np", "8", *SCRIPT, "python", "train.py"]
IN_KUEUE = {"kueue.x-k8s.io/queue-name": "team"}


def test_an_empty_plan_says_that_the_job_waits() -> None:
    assert in_words(derive(held(unit()), now=NOW), Plan()) == [
        "nothing: the job waits in KubeQueue"
    ]


@pytest.mark.parametrize(
    ("value", "by"), [("true", f"annotation {KUBEQUEUE_SUSPEND}"), ("yes", "")]
)
def test_its_annotation_suspends_an_elastic_job(value: str, by: str) -> None:
    for enabled in ("true", "false"):
        annotations = {KUBEQUEUE_SUSPEND: value, names.ENABLED: enabled}
        metadata = {"name": "j", "namespace": "n", "annotations": annotations}
        found = capabilities.read(msgspec.json.encode({"metadata": metadata}))
        assert found.suspended is (by != "" and enabled == "true")
        assert found.gates == ((names.GATE_SUSPENDED,) if found.suspended else ())
        stop = derive(
            capabilities.told(JobView(facts=found, replicas=0)), now=0.0
        ).wishes.suspended_by
        assert stop == (by if enabled == "true" else "")
        assert found.problems == ()


@pytest.mark.parametrize(
    ("labels", "warning"),
    [
        pytest.param({}, "", id="held by KubeQueue"),
        pytest.param(IN_KUEUE, "holds a job with a queue of Kueue for", id="in two queues"),
    ],
)
def test_a_new_job_is_told_that_it_is_in_two_queues(labels: dict[str, str], warning: str) -> None:
    job = mpi_job(command=WELL, annotations={KUBEQUEUE_SUSPEND: "true"})
    job["spec"] |= {"cleanPodPolicy": "Running"}
    job["metadata"]["labels"] = labels
    read = msgspec.convert(job, MPIJob)
    warnings = lint.created(read, capabilities.of(read), admission.ALL)
    assert [warning in found for found in warnings] == [True] * bool(warning)
    assert all(len(found) <= 120 for found in warnings)


def test_a_job_that_waits_in_kube_queue_says_so_and_what_holds_it() -> None:
    said = of_job(held(unit(said="1 more needed")))
    assert (
        said["enqueued"].says
        == "j waits in KubeQueue: QueueUnit j-mpi-qu is Enqueued; 1 more needed"
    )
    assert said["enqueued"].next_step == "kubectl -n default describe queueunit j-mpi-qu"
    assert "suspended" in said
    assert "enqueued" not in of_job(held())
