"""Jobs that mpi-operator v0.2.3 cannot work with are refused, and fields that it drops are named."""

from typing import Any

import pytest

from mpijob_elastic.admission.review import Refusal, Verdict
from tests.product.webhook.answers import verdict
from tests.product.webhook.objects import ELASTIC, PLAIN, Object, mpi_job


def job(*env: object, **worker: Any) -> Object:
    """A job of plain mpirun with this environment and these fields in the container of its workers."""
    made = mpi_job(command=PLAIN, conditions=["Created"])
    made["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0] |= {
        "env": [*env],
        **worker,
    }
    return made


def without_size(made: Object) -> Object:
    del made["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"]
    return made


def finished(made: Object) -> Object:
    return {**made, "status": {"conditions": [{"type": "Succeeded", "status": "True"}]}}


def having(made: Object, **metadata: Any) -> Object:
    return {**made, "metadata": {**made["metadata"], **metadata}}


def deleted(made: Object) -> Object:
    return having(made, deletionTimestamp="2026-01-01T00:00:00Z")


def annotated(made: Object, enabled: str = "false") -> Object:
    return having(made, annotations={"mpijob-elastic/enabled": enabled})


GOOD, BAD = {"name": "A", "value": "1"}, {"name": "A", "value": 1}


@pytest.mark.parametrize("state", [lambda made: made, finished, deleted, annotated])
def test_what_a_request_brings_in_is_refused_whatever_the_state_of_the_job(state: Any) -> None:
    size = "spec.mpiReplicaSpecs.Worker.replicas"
    value = "spec.mpiReplicaSpecs.Worker.template.spec.containers[0].env[0].value"
    for made, field in ((without_size(job()), size), (job(BAD), value)):
        for old in (None, state(job())):
            assert [refusal.field for refusal in verdict(state(made), old).refusals] == [field]


@pytest.mark.parametrize(
    ("before", "after", "warned"),
    [
        pytest.param(job(BAD), job(BAD), True, id="it stays"),
        pytest.param(job(BAD), finished(job(BAD)), True, id="the job finishes"),
        pytest.param(job(BAD), deleted(job(BAD)), True, id="the job is deleted"),
        pytest.param(job(BAD), job(GOOD, BAD), True, id="it moves"),
        pytest.param(job(BAD), job({"name": "A", "value": 2}), True, id="another value"),
        pytest.param(job(BAD), job(GOOD), False, id="it is mended"),
        pytest.param(without_size(job()), job(GOOD), False, id="the size is given"),
    ],
)
def test_a_fault_that_was_there_is_told_and_blocks_nobody(
    before: Object, after: Object, warned: bool
) -> None:
    found = verdict(after, before)
    assert found == Verdict(warnings=found.warnings)
    assert ["cannot work with such a job" in text for text in found.warnings] == [True] * warned


@pytest.mark.parametrize(
    ("after", "field"),
    [
        (job(BAD, tty=1), "spec.mpiReplicaSpecs.Worker.template.spec.containers[0].tty"),
        (without_size(job(BAD)), "spec.mpiReplicaSpecs.Worker.replicas"),
        (annotated(job(GOOD), "no"), "metadata.annotations[mpijob-elastic/enabled]"),
    ],
)
def test_another_fault_is_refused_alone(after: Object, field: str) -> None:
    assert [refusal.field for refusal in verdict(after, job(BAD)).refusals] == [field]


def test_of_many_faults_a_few_are_named_and_all_may_be_mended_one_by_one() -> None:
    many = [{"name": f"A{number}", "value": number} for number in range(200)]
    assert len(verdict(job(*many)).refusals) == 5
    assert len(verdict(job(*many), job(*many)).warnings) == 5
    assert verdict(job(*many[1:]), job(*many)).allowed
    assert verdict(job(*many[1:], tty=1), job(*many)).allowed


@pytest.mark.parametrize("command", [PLAIN, ELASTIC])
def test_each_dropped_field_is_named_once_at_creation_with_its_meaning(command: list[str]) -> None:
    made = mpi_job(command=command)
    for role in ("Launcher", "Worker"):
        spec = made["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]
        spec |= {
            "topologySpreadConstraints": [{}],
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        }
        spec["containers"][0] |= {
            "restartPolicyRules": [{}],
            "securityContext": {"seccompProfile": {}},
        }
    made["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["initContainers"] = [
        {"restartPolicy": "Always"}
    ]
    made["spec"]["managedBy"] = "kubeflow.org/mpi-operator"
    at = "spec.mpiReplicaSpecs.Launcher.template.spec"
    sidecar = "a sidecar becomes an init container, and its pod waits until that ends"
    drops = "mpi-operator v0.2.3 drops this field"
    assert verdict(made).warnings == (
        f"{at}.containers[0].restartPolicyRules and 1 more: {drops}: the pods do without it",
        f"{at}.topologySpreadConstraints and 1 more: {drops}: the pods are not spread",
        f"{at.replace('Launcher', 'Worker')}.initContainers[0].restartPolicy: {drops}: {sidecar}",
    )
    assert verdict(made, made).warnings == ()


BELOW = "write it below template.spec of Launcher or Worker in spec.mpiReplicaSpecs"


@pytest.mark.parametrize("command", [PLAIN, ELASTIC])
@pytest.mark.parametrize(
    ("at", "says"),
    [
        ("nodeSelector", BELOW),
        ("volumes", BELOW),
        ("tolerations", BELOW),
        ("restartPolicy", "write it below Launcher or Worker of spec.mpiReplicaSpecs"),
        ("template", "write it below Launcher or Worker of spec.mpiReplicaSpecs"),
        ("ttlSecondsAfterFinished", "write it below spec.runPolicy"),
        ("slotsPerWorkers", "did you mean slotsPerWorker?"),
        ("launcherCreationPolicy", "it has no effect"),
        ("sshAuthMountPath", "it has no effect"),
        ("mpiReplicaSpecs.Workers", "did you mean Worker?"),
        ("mpiReplicaSpecs.worker", "did you mean Worker?"),
        ("mpiReplicaSpecs.Master", "it has no effect"),
        ("mpiReplicaSpecs.Worker.nodeSelector", "the pods do without it"),
        ("mpiReplicaSpecs.Worker.template.spec.nodeSelectors", "did you mean nodeSelector?"),
        ("runPolicy.ttlSecondAfterFinished", "did you mean ttlSecondsAfterFinished?"),
    ],
)
def test_a_field_at_a_wrong_place_is_named_with_the_right_one(
    command: list[str], at: str, says: str
) -> None:
    made = mpi_job(command=command)
    *path, field = at.split(".")
    place = made["spec"]
    for key in path:
        place = place.setdefault(key, {})
    place[field] = {"replicas": 1} if path == ["mpiReplicaSpecs"] else {"a": 1}
    said = f"spec.{at}: mpi-operator v0.2.3 drops this field: {says}"
    assert [one for one in verdict(made).warnings if one.startswith("spec.")] == [said]


NEEDED = "The API server refuses the pods without it"


@pytest.mark.parametrize(
    ("at", "says"),
    [
        ("imgae", f"did you mean image? {NEEDED}"),
        ("Image", f"did you mean image? {NEEDED}"),
        ("name_", f"did you mean name? {NEEDED}"),
        ("volumeMounts[0].mountpath", f"did you mean mountPath? {NEEDED}"),
        ("ports[0].containerport", f"did you mean containerPort? {NEEDED}"),
        ("env[0].values", "did you mean value?"),
        ("comnand", "did you mean command?"),
        ("workingdir", "did you mean workingDir?"),
        ("resources.limit", "did you mean limits?"),
        ("livenessProbe.httpget", "did you mean httpGet?"),
        ("gpu", "the pods do without it"),
    ],
)
def test_a_misspelt_field_of_a_container_is_named_with_what_its_loss_means(
    at: str, says: str
) -> None:
    made = mpi_job(command=PLAIN)
    for role in ("Launcher", "Worker"):
        [container] = made["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]["containers"]
        outer, _, field = at.rpartition(".")
        if outer.endswith("[0]"):
            container[outer.removesuffix("[0]")] = [{field: "a"}]
        elif outer:
            container[outer] = {field: {"a": "1"}}
        else:
            container[field] = "a"
    place = f"spec.mpiReplicaSpecs.Launcher.template.spec.containers[0].{at}"
    drops = f"{place} and 1 more: mpi-operator v0.2.3 drops this field: {says}"
    assert verdict(made).warnings == (drops,)


def renamed(name: str, command: list[str], **annotations: str) -> Object:
    """A job whose workers stand under another name; none stand anywhere if that is empty."""
    made = mpi_job(command=command)
    made["metadata"]["annotations"] = {
        f"mpijob-elastic/{k}-replicas": v for k, v in annotations.items()
    }
    workers = made["spec"]["mpiReplicaSpecs"].pop("Worker")
    if name:
        made["spec"]["mpiReplicaSpecs"][name] = workers
    return made


NO_WORKERS = "spec.mpiReplicaSpecs.Worker"
MIN_NP = ["horovodrun", "-np", "2", "--min-np", "1", *ELASTIC[3:]]


@pytest.mark.parametrize("command", [MIN_NP, PLAIN])
@pytest.mark.parametrize("name", ["worker", "workers", "Workers", "WORKER", "Workre"])
def test_workers_under_a_near_name_are_missed(command: list[str], name: str) -> None:
    asks = f"is missing; did you mean Worker instead of {name}?"
    refused = verdict(renamed(name, command, min="1", max="4"))
    assert refused.refusals == (Refusal(field=NO_WORKERS, message=asks),)
    told = [one for one in refused.warnings if "not elastic" not in one]
    assert told == []
    # Where no bound is broken the operator runs the launcher alone.
    assert verdict(renamed(name, command)) == Verdict(warnings=(f"{NO_WORKERS}: {asks}",))


@pytest.mark.parametrize(
    ("made", "found"),
    [
        (renamed("", PLAIN), Verdict()),
        (
            renamed("", MIN_NP),
            Verdict(warnings=(f"{NO_WORKERS}: is missing; describe the workers there",)),
        ),
        (
            renamed("", MIN_NP, min="1"),
            Verdict(
                refusals=(
                    Refusal(field=NO_WORKERS, message="is missing; describe the workers there"),
                )
            ),
        ),
    ],
)
def test_only_an_elastic_job_misses_workers_without_a_near_name(
    made: Object, found: Verdict
) -> None:
    assert verdict(made) == found


def test_an_edit_that_leaves_the_workers_missing_is_not_told_again() -> None:
    made = renamed("workers", MIN_NP)
    assert verdict(made, made) == Verdict()
    assert [*map(str, verdict(made, mpi_job(command=MIN_NP)).warnings)] == [
        f"{NO_WORKERS}: is missing; did you mean Worker instead of workers?"
    ]


@pytest.mark.parametrize(
    "read", ["managedBy", "runPolicy.suspend", "runPolicy.schedulingPolicy.queue"]
)
def test_a_field_that_something_else_reads_or_tells_of_is_not_named(read: str) -> None:
    made = mpi_job(command=PLAIN)
    *path, field = read.split(".")
    place = made["spec"]
    for key in path:
        place = place.setdefault(key, {})
    place[field] = "a"
    assert not any("drops this field" in one for one in verdict(made).warnings)


def test_of_many_dropped_fields_a_few_are_named() -> None:
    fields: Object = {f"x{number:02}{'y' * 300}": 1 for number in range(20)}
    found = verdict(job(**fields)).warnings
    assert len(found) == 6
    assert "x07" in found[5]
