"""What a job that KubeQueue holds may not do at admission."""

from lab.operator.objects import PLAIN, Object, mpi_job
from mpijob_elastic import names
from mpijob_elastic.capabilities.kube_queue.facts import KUBEQUEUE_SUSPEND
from mpijob_elastic.capabilities.kube_queue.wishes import DeleteUnit
from tests.product.webhook.answers import answer, running, verdict

HELD, FREED = ({KUBEQUEUE_SUSPEND: said} for said in ("true", "false"))


def placed(node: str, annotations: dict[str, str], **facts: object) -> Object:
    """A job whose workers name a node."""
    job = running(annotations=annotations, **facts)
    job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["nodeName"] = node
    return job


def held(fields: int = 10, labels: int = 0) -> Object:
    """A job of so many fields, with so many labels of its workers."""
    job = mpi_job(annotations=HELD)
    worker = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
    worker["metadata"] = {"labels": {f"label-{index}": "x" * 60 for index in range(labels)}}
    worker["spec"]["containers"][0]["env"] = [
        {"name": f"A{index}", "value": "1"} for index in range(fields // 2)
    ]
    return job


def test_it_may_not_choose_a_node_past_its_queue() -> None:
    for said in (verdict(placed("gpu-7", HELD)), verdict(placed("gpu-7", HELD), placed("", HELD))):
        (refusal,) = said.refusals
        assert refusal.field == "spec.mpiReplicaSpecs.Worker.template.spec.nodeName"
    assert not verdict(placed("gpu-7", FREED), placed("gpu-7", HELD)).refusals
    assert not verdict(placed("gpu-7", FREED)).refusals
    assert not verdict(placed("gpu-7", HELD, command=PLAIN)).refusals, "it is not held by us"
    back = verdict(placed("gpu-7", HELD), placed("gpu-7", FREED))
    assert not back.refusals, "the controller asks for the quota back"


def test_what_cannot_be_read_is_refused() -> None:
    """Its pods would start without their queue."""
    assert answer(held(6_000)).outcome == "rejected"
    assert answer(held(6_000), held()).outcome == "rejected"
    assert answer(held(7_000), held(6_000)).outcome == "unreadable"
    assert answer(held(labels=1_200)).outcome == "rejected"


def test_quota_of_a_job_with_parked_workers_may_be_wanted_back() -> None:
    free = running(annotations={names.PARKED: "1"})
    assert verdict(running(annotations={names.PARKED: "1", **HELD}), free).allowed


def test_quota_that_is_given_back_is_decided_again() -> None:
    assert DeleteUnit.rechecked
