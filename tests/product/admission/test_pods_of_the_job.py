"""Each rule for new pods changes those of the job itself, as the operator names and labels them, and no others."""

from collections.abc import Callable

import pytest

from mpijob_elastic import names
from mpijob_elastic.admission import mutate, pod_templates, worker_grace
from mpijob_elastic.capabilities.gangs.admission import GangAdmission
from mpijob_elastic.capabilities.gangs.facts import GANG
from mpijob_elastic.capabilities.run_policy import RUN_POLICY
from mpijob_elastic.capabilities.run_policy.admission import RunPolicyAdmission
from mpijob_elastic.names import SUSPEND
from tests.product.webhook.answers import PodRule, own, patch_of
from tests.product.webhook.objects import PLAIN, Object, launcher_pod, mpi_job, worker_pod

RULES = [
    pytest.param(mutate.launcher, names.ROLE_LAUNCHER, id="discover_hosts"),
    pytest.param(own(RunPolicyAdmission()), names.ROLE_LAUNCHER, id="run policy"),
    pytest.param(worker_grace.fitting, names.ROLE_WORKER, id="grace period"),
    *(
        pytest.param(rule, role, id=f"{rule.__qualname__} {role}")
        for rule in (
            pod_templates.missing_labels,
            pod_templates.restored_security,
            mutate.gates,
            own(GangAdmission()),
        )
        for role in (names.ROLE_LAUNCHER, names.ROLE_WORKER)
    ),
]


def asking() -> Object:
    """A job that asks for everything."""
    asks = (names.ENABLED, RUN_POLICY, SUSPEND)
    job = mpi_job(command=PLAIN, annotations={**dict.fromkeys(asks, "true"), GANG: "volcano"})
    job["spec"]["runPolicy"] = {"activeDeadlineSeconds": 60}
    for role in job["spec"]["mpiReplicaSpecs"].values():
        role["template"]["metadata"] = {"labels": {"team": "vision"}}
        role["template"]["spec"]["securityContext"] = {"seccompProfile": {"type": "RuntimeDefault"}}
    return job


def new_pod(role: str) -> Object:
    return launcher_pod(command=PLAIN) if role == names.ROLE_LAUNCHER else worker_pod()


@pytest.mark.parametrize(("rule", "role"), RULES)
def test_a_pod_of_the_job_is_changed_and_one_of_another_or_an_unknown_job_is_not(
    rule: PodRule, role: str
) -> None:
    assert patch_of(rule, new_pod(role), asking())
    later = asking()
    later["metadata"]["uid"] = "of a later job of this name"
    assert patch_of(rule, new_pod(role), later) == patch_of(rule, new_pod(role), None) == ()


OTHER_ROLE = {names.ROLE_LAUNCHER: names.ROLE_WORKER, names.ROLE_WORKER: names.ROLE_LAUNCHER}
STRANGERS: dict[str, Callable[[Object], object]] = {
    "without an owner": lambda metadata: metadata.pop("ownerReferences"),
    "not controlled": lambda metadata: metadata["ownerReferences"][0].update(controller=False),
    "of a newer MPIJob": lambda metadata: metadata["ownerReferences"][0].update(
        apiVersion="kubeflow.org/v2beta1"
    ),
    "of a TFJob": lambda metadata: metadata["ownerReferences"][0].update(kind="TFJob"),
    "of another job": lambda metadata: metadata["ownerReferences"][0].update(name="other"),
    "another name": lambda metadata: metadata.update(name="train-other-0"),
    "a worker's name without an index": lambda metadata: metadata.update(name="train-worker-x"),
    "the name of the job": lambda metadata: metadata.update(name="train"),
    "no labels": lambda metadata: metadata.pop("labels"),
    "another role": lambda metadata: metadata["labels"].update({"mpi-job-role": "driver"}),
    "a launcher's name and a worker's label, or the other way round": lambda metadata: metadata[
        "labels"
    ].update({names.LABEL_JOB_ROLE: OTHER_ROLE[metadata["labels"][names.LABEL_JOB_ROLE]]}),
}


@pytest.mark.parametrize(("rule", "role"), RULES)
@pytest.mark.parametrize("change", STRANGERS.values(), ids=STRANGERS.keys())
def test_another_pod_is_left_alone(
    rule: PodRule, role: str, change: Callable[[Object], object]
) -> None:
    pod = new_pod(role)
    change(pod["metadata"])
    assert patch_of(rule, pod, asking()) == ()


@pytest.mark.parametrize("rule", [own(GangAdmission()), worker_grace.fitting])
def test_what_a_newer_operator_numbers_is_its_own(rule: PodRule) -> None:
    pod = worker_pod()
    pod["metadata"]["labels"][names.LABEL_REPLICA_INDEX] = "0"
    assert patch_of(rule, pod, asking()) == ()


@pytest.mark.parametrize("rule", [mutate.launcher, own(RunPolicyAdmission()), worker_grace.fitting])
def test_what_only_one_role_gets_the_other_does_not(rule: PodRule) -> None:
    pod = launcher_pod() if rule is worker_grace.fitting else worker_pod()
    assert patch_of(rule, pod, asking()) == ()
