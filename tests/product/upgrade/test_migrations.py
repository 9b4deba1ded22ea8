"""What users of other operators write: converted to the same, or named with what to do."""

import copy
from typing import Any

import msgspec
import pytest

from mpijob_elastic import names
from mpijob_elastic.kube import kubectl_yaml
from mpijob_elastic.model import operator_types
from upgrade import conversion
from upgrade.notes import ConversionNote

RUN_POLICY = "mpijob-elastic/run-policy"
HOROVODRUN = "horovodrun --host-discovery-script {} python train.py"
Job = dict[str, Any]


def training_job(script: str = "/etc/edl/discover_hosts.sh", **spec: Any) -> Job:
    """Return a TrainingJob of which nothing needs a hand."""
    launcher = {"containers": [{"name": "l", "command": ["sh", "-c", HOROVODRUN.format(script)]}]}
    return {
        "apiVersion": "kai.alibabacloud.com/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {"name": "train"},
        "spec": {
            "launcherAttachMode": "kubexec",
            "etReplicaSpecs": {
                "launcher": {"replicas": 1, "template": {"spec": launcher}},
                "worker": {
                    "replicas": 2,
                    "minReplicas": 1,
                    "template": {"spec": {"containers": [{"name": "w"}]}},
                },
            },
            **spec,
        },
    }


def old_job(command: str = "mpirun train", **spec: Any) -> Job:
    """Return an MPIJob v1alpha2."""
    launcher = {"containers": [{"name": "l", "command": ["sh", "-c", command]}]}
    return {
        "apiVersion": "kubeflow.org/v1alpha2",
        "kind": "MPIJob",
        "metadata": {"name": "train"},
        "spec": {
            "mpiReplicaSpecs": {
                "Launcher": {"replicas": 1, "template": {"spec": launcher}},
                "Worker": {"replicas": 2, "template": {"spec": {"containers": [{"name": "w"}]}}},
            },
            **spec,
        },
    }


def new_job(**spec: Any) -> Job:
    """Return an MPIJob v1."""
    return {**old_job(**spec), "apiVersion": "kubeflow.org/v1"}


def changed(job: Job, *path: str, to: Any) -> Job:
    """Return the job with another value at a path."""
    result = copy.deepcopy(job)
    *above, last = path
    inner = result
    for key in above:
        inner = inner.setdefault(key, {})
    inner[last] = to
    return result


def converted(job: Job) -> tuple[Job, list[ConversionNote]]:
    """Return the job as it is printed and read by kubectl, and the notes."""
    one = conversion.convert(job)
    [read] = kubectl_yaml.read_all(conversion.render([one]))
    assert read == one.manifest
    return read, list(one.notes)


def to_do(notes: list[ConversionNote]) -> dict[str, str]:
    return {note.field: note.text for note in notes if note.to_do}


def said(notes: list[ConversionNote]) -> str:
    return "\n".join(map(str, notes))


def role(job: Job, name: str) -> Job:
    found: Job = job["spec"]["mpiReplicaSpecs"][name]
    return found


def command(job: Job) -> str:
    found: str = role(job, "Launcher")["template"]["spec"]["containers"][0]["command"][2]
    return found


WORKER, LAUNCHER = ("spec", "etReplicaSpecs", "worker"), ("spec", "etReplicaSpecs", "launcher")
OLD_WORKER = ("spec", "mpiReplicaSpecs", "Worker")
OLD_LAUNCHER = ("spec", "mpiReplicaSpecs", "Launcher")


def test_a_job_of_which_all_is_the_same_needs_nobody() -> None:
    assert to_do(converted(training_job())[1]) == {}
    assert to_do(converted(old_job())[1]) == {}


@pytest.mark.parametrize("policy", ["Always", "OnFailure", "ExitCode"])
@pytest.mark.parametrize("place", [LAUNCHER, WORKER])
def test_et_operator_gives_every_pod_never(place: tuple[str, ...], policy: str) -> None:
    job, notes = converted(changed(training_job(), *place, "restartPolicy", to=policy))
    name = place[-1].capitalize()
    assert role(job, name)["restartPolicy"] == "Never"
    assert f"{policy} becomes Never" in said(notes)
    assert to_do(notes) == {}


def test_nobody_replaces_a_worker_of_a_fixed_size() -> None:
    source = training_job()
    source["spec"]["etReplicaSpecs"]["launcher"]["template"]["spec"]["containers"][0]["command"] = [
        "mpirun"
    ]
    _, notes = converted(changed(source, *WORKER, "restartPolicy", to="Always"))
    assert (
        "nobody replaces a failed worker"
        in to_do(notes)["spec.etReplicaSpecs.worker.restartPolicy"]
    )


@pytest.mark.parametrize("policy", [None, "Always", "OnFailure", "ExitCode", "Never"])
def test_a_launcher_of_v1alpha2_is_tried_again_six_times(policy: str | None) -> None:
    source = changed(old_job(), *OLD_LAUNCHER, "restartPolicy", to=policy) if policy else old_job()
    job, notes = converted(source)
    assert role(job, "Launcher").get("restartPolicy", "Never") == "Never"
    assert job["spec"]["runPolicy"] == {"backoffLimit": 6}
    assert job["metadata"]["annotations"] == {RUN_POLICY: "true"}
    assert "backoffLimit is 6" in said(notes)


@pytest.mark.parametrize(
    ("spec", "limits"),
    [
        (
            {"backoffLimit": 2, "activeDeadlineSeconds": 60},
            {"backoffLimit": 2, "activeDeadlineSeconds": 60},
        ),
        ({"backoffLimit": 2, "runPolicy": {"backoffLimit": 0}}, {"backoffLimit": 0}),
        (
            {"runPolicy": {"activeDeadlineSeconds": 5}},
            {"backoffLimit": 6, "activeDeadlineSeconds": 5},
        ),
    ],
)
def test_the_limits_of_v1alpha2(spec: Job, limits: Job) -> None:
    assert converted(old_job(**spec))[0]["spec"]["runPolicy"] == limits


@pytest.mark.parametrize(
    "field", ["cleanPodPolicy", "schedulingPolicy", "ttlSecondsAfterFinished", "suspend"]
)
def test_what_no_run_policy_of_v1alpha2_did_it_does_not_begin_to_do(field: str) -> None:
    job, notes = converted(old_job(runPolicy={field: "x"}))
    assert job["spec"]["runPolicy"] == {"backoffLimit": 6}
    [note] = [note for note in notes if note.field == f"spec.runPolicy.{field}"]
    assert "had no effect" in note.text
    assert "annotate" not in note.text


@pytest.mark.parametrize(
    ("line", "policy"),
    [("mpirun train", "Always"), (HOROVODRUN.format(names.DISCOVER_HOSTS_PATH), None)],
)
def test_workers_of_v1alpha2_were_a_stateful_set(line: str, policy: str | None) -> None:
    job, notes = converted(changed(old_job(line), *OLD_WORKER, "restartPolicy", to="Never"))
    assert role(job, "Worker").get("restartPolicy") == policy
    assert "spec.mpiReplicaSpecs.Worker.restartPolicy" in said(notes)


RULES = {
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "topologyKey": "kubernetes.io/hostname",
                    "labelSelector": {
                        "matchLabels": {"JOB": "train", "app": "x"},
                        "matchExpressions": [
                            {"key": "ROLE", "operator": "In", "values": ["worker"]},
                            {"key": "GROUP", "operator": "In", "values": ["OLD-GROUP"]},
                        ],
                    },
                }
            ]
        },
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "pool", "operator": "Exists"}]}]
            }
        },
    },
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"JOB": "train"}},
        }
    ],
    "containers": [
        {
            "name": "w",
            "env": [
                {
                    "name": "ROLE",
                    "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['ROLE']"}},
                }
            ],
        }
    ],
    "volumes": [
        {
            "name": "v",
            "downwardAPI": {
                "items": [{"path": "job", "fieldRef": {"fieldPath": "metadata.labels['JOB']"}}]
            },
        }
    ],
}


def named(rules: Any, labels: dict[str, str]) -> Any:
    """Return the rules with these labels."""
    text = msgspec.json.encode(rules).decode()
    for name, label in labels.items():
        text = text.replace(name, label)
    return msgspec.json.decode(text)


NOW = {
    '"JOB"': '"mpi-job-name"',
    "'JOB'": "'mpi-job-name'",
    '"ROLE","op': '"mpi-job-role","op',
    "'ROLE'": "'mpi-job-role'",
    "OLD-GROUP": "kubeflow.org",
    "GROUP": "group-name",
}
V1ALPHA2 = {
    '"JOB"': '"mpi_job_name"',
    "'JOB'": "'mpi_job_name'",
    '"ROLE","op': '"mpi_role_type","op',
    "'ROLE'": "'mpi_role_type'",
    "OLD-GROUP": "kubeflow.org",
    "GROUP": "group_name",
}
ET = {
    '"JOB"': '"training-job-name"',
    "'JOB'": "'training-job-name'",
    '"ROLE","op': '"training-job-role","op',
    "'ROLE'": "'training-job-role'",
    "OLD-GROUP": "kai.alibabacloud.com",
    "GROUP": "group-name",
}


@pytest.mark.parametrize(
    ("source", "worker", "labels"),
    [(old_job(), OLD_WORKER, V1ALPHA2), (training_job(), WORKER, ET)],
    ids=["v1alpha2", "et-operator"],
)
def test_rules_name_the_labels_that_pods_have_now(
    source: Job, worker: tuple[str, ...], labels: dict[str, str]
) -> None:
    job, notes = converted(changed(source, *worker, "template", "spec", to=named(RULES, labels)))
    assert role(job, "Worker")["template"]["spec"] == named(RULES, NOW)
    assert "becomes mpi-job-name" in said(notes)
    # mpi-operator v0.2.3 does not know them.
    assert to_do(notes).keys() == set()
    assert "topologySpreadConstraints: mpi-operator v0.2.3 drops this field; the webhook" in said(
        notes
    )


@pytest.mark.parametrize(
    ("job", "label"),
    [
        (old_job("kubectl get pod -l mpi_role_type=worker"), "mpi_role_type"),
        (
            changed(
                training_job(),
                *LAUNCHER,
                "template",
                "spec",
                "containers",
                to=[
                    {
                        "name": "l",
                        "args": ["x"],
                        "env": [{"name": "S", "value": "training-job-name=a"}],
                    }
                ],
            ),
            "training-job-name",
        ),
    ],
)
def test_an_old_label_in_a_text_is_named(job: Job, label: str) -> None:
    _, notes = converted(job)
    assert f"names the label {label}" in "".join(to_do(notes).values())


def test_another_word_is_no_label() -> None:
    assert to_do(converted(old_job("run --my_mpi_job_name x"))[1]) == {}


@pytest.mark.parametrize(
    ("line", "now", "advice"),
    [
        (
            "horovodrun -H $(paste -sd, /etc/edl/hostfile) train",
            "horovodrun -H $(paste -sd, /etc/mpi/hostfile) train",
            "`NAME slots=N`, not `NAME:N`",
        ),
        (
            "deepspeed --hostfile /job/hostfile train.py",
            "deepspeed --hostfile /etc/mpi/hostfile train.py",
            "neither Services nor keys",
        ),
        (
            "cat /my/job/hostfile; horovodrun --host-discovery-script /opt/hosts.sh train",
            "cat /my/job/hostfile; horovodrun --host-discovery-script /opt/hosts.sh train",
            "is /opt/hosts.sh, which the image must have",
        ),
    ],
)
def test_a_path_whose_content_differs_is_named(line: str, now: str, advice: str) -> None:
    source = training_job()
    source["spec"]["etReplicaSpecs"]["launcher"]["template"]["spec"]["containers"][0]["command"][
        2
    ] = line
    job, notes = converted(source)
    assert command(job) == now
    assert advice in "".join(to_do(notes).values())


def test_the_script_of_arenas_image_is_replaced() -> None:
    job, notes = converted(training_job("/usr/local/bin/discover_hosts.sh"))
    assert command(job) == HOROVODRUN.format(names.DISCOVER_HOSTS_PATH)
    assert to_do(notes) == {}
    assert "/usr/local/bin/discover_hosts.sh becomes /etc/mpi/discover_hosts.sh" in said(notes)


@pytest.mark.parametrize("version", ["v1alpha1", "v2beta1", "v2"])
def test_an_mpi_job_of_another_version_is_named(version: str) -> None:
    source = {**new_job(), "apiVersion": f"kubeflow.org/{version}"}
    job, notes = converted(source)
    assert job == source
    assert "write the job as kubeflow.org/v1" in to_do(notes)["apiVersion"]


def test_a_pytorch_job_stays() -> None:
    source = {**new_job(), "kind": "PyTorchJob", "spec": {"x": 1}}
    assert converted(source) == (source, [])


@pytest.mark.parametrize(
    ("field", "advice"),
    [
        ("cleanPodPolicy", "write it below spec"),
        ("schedulingPolicy", "has no effect, unless the scheduler KAI reads it"),
        ("suspend", f'annotate the job {RUN_POLICY}: "true"'),
        ("ttlSecondsAfterFinished", f'annotate the job {RUN_POLICY}: "true"'),
    ],
)
def test_what_a_run_policy_in_v1_does_not_do_is_named(field: str, advice: str) -> None:
    values = {"cleanPodPolicy": "Running", "schedulingPolicy": {}, "suspend": True}
    job = new_job(runPolicy={field: values.get(field, 5)})
    assert advice in to_do(converted(job)[1])[f"spec.runPolicy.{field}"]
    annotated = changed(job, "metadata", "annotations", to={RUN_POLICY: "true"})
    assert (to_do(converted(annotated)[1]) == {}) is ("annotate" in advice)


@pytest.mark.parametrize("make", [old_job, new_job])
@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("template", "spec", "hostNetwork"), "true"),
        (("template", "spec", "containers"), [{"name": "l", "command": ["mpirun", "-np", 2]}]),
        (("template", "spec", "containers"), [{"name": "l", "env": [{"name": "N", "value": 8}]}]),
        (("replicas",), "2"),
    ],
)
def test_what_the_operator_cannot_read_is_named(
    make: Any, place: tuple[str, ...], value: Any
) -> None:
    job, notes = converted(changed(make(), *OLD_LAUNCHER, *place, to=value))
    faults, _ = operator_types.judge(msgspec.json.encode(job))
    assert faults
    assert {fault.field for fault in faults} <= to_do(notes).keys()


def test_what_the_operator_drops_is_named() -> None:
    job = changed(
        new_job(nodeSelector={"a": "b"}), *OLD_LAUNCHER, "template", "spec", "overhead", to={}
    )
    assert to_do(converted(job)[1]).keys() == {
        "spec.nodeSelector",
        "spec.mpiReplicaSpecs.Launcher.template.spec.overhead",
    }


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        (("name",), False, "metadata.name"),
        (("labels",), {"build": 899}, "metadata.labels[build]"),
        (("annotations",), {"a": 1}, "metadata.annotations[a]"),
    ],
)
def test_a_name_that_is_no_string_is_named(path: tuple[str, ...], value: Any, field: str) -> None:
    _, notes = converted(changed(old_job(), "metadata", *path, to=value))
    assert "is not a string" in to_do(notes)[field]


def test_a_key_that_stands_twice_is_named() -> None:
    [one] = conversion.convert_text(
        "apiVersion: v1\nkind: Service\nmetadata: {name: a, name: b}\n", where="x"
    )
    assert one.manifest["metadata"] == {"name": "b"}
    assert [str(note) for note in one.notes] == [
        "to do: name: stands twice in an object; the last one counts, as for kubectl"
    ]


def test_a_least_number_that_nobody_gave_is_named() -> None:
    source = training_job()
    del source["spec"]["etReplicaSpecs"]["worker"]["minReplicas"]
    job, notes = converted(source)
    assert job["metadata"]["annotations"][names.MIN_REPLICAS] == "2"
    assert "never shrinks below it" in to_do(notes)["spec.etReplicaSpecs.worker.minReplicas"]


@pytest.mark.parametrize(
    ("key", "advice"),
    [
        ("scheduling.x-k8s.io/priority", "write priorityClassName"),
        ("scheduling.x-k8s.io/suspend", "without one of them, remove it"),
    ],
)
@pytest.mark.parametrize("make", [training_job, old_job, new_job])
def test_annotations_of_a_queue_are_named(make: Any, key: str, advice: str) -> None:
    _, notes = converted(changed(make(), "metadata", "annotations", to={key: "true"}))
    assert advice in to_do(notes)[f"metadata.annotations[{key}]"]


def test_restarts_of_a_whole_job_are_named() -> None:
    _, notes = converted(training_job(restartPolicy="OnFailure", backoffLimit=3))
    assert "spec.runPolicy.backoffLimit" in to_do(notes)["spec.restartPolicy"]
    assert "spec.backoffLimit: left out" in said(notes)


@pytest.mark.parametrize("field", ["hostPID", "hostIPC"])
def test_a_shared_namespace_of_the_node_is_named(field: str) -> None:
    job, notes = converted(changed(training_job(), *LAUNCHER, "template", "spec", field, to=True))
    assert role(job, "Launcher")["template"]["spec"][field] is True
    assert "Remove it" in to_do(notes)[f"spec.etReplicaSpecs.launcher.template.spec.{field}"]


def test_devices_that_et_operator_does_not_count_are_named() -> None:
    limits = {"amd.com/gpu": 4, "cpu": 2}
    containers = [{"name": "w", "resources": {"limits": limits}}]
    job, notes = converted(
        changed(training_job(), *WORKER, "template", "spec", "containers", to=containers)
    )
    assert job["spec"]["slotsPerWorker"] == 1
    assert "spec.slotsPerWorker: 1, because et-operator counts nvidia.com/gpu only" in said(notes)
    assert "amd.com/gpu: 4" in said(notes)


@pytest.mark.parametrize(
    ("make", "spec", "says"),
    [
        (training_job, {"slotsPerWorker": 2}, "the result has fields that the patch does not have"),
        (
            old_job,
            {"mpiReplicaSpecs": {"Worker": {"replicas": 4}}},
            "the result has fields that the patch does not have",
        ),
        (new_job, {"slotsPerWorker": 2}, "nothing is to do"),
        (new_job, None, "nothing is to do"),
        (new_job, {"mpiReplicaSpecs": {"Launcher": {"template": None}}}, "nothing is to do"),
    ],
)
def test_a_job_without_any_container_may_be_a_patch(make: Any, spec: Job, says: str) -> None:
    _, notes = converted({**make(), "spec": spec})
    [line] = [text for text in to_do(notes).values() if "may be a patch" in text]
    assert says in line
    _, notes = converted(changed(make(), *OLD_LAUNCHER, "template", "spec", to={}))
    assert "may be a patch" not in said(notes)


@pytest.mark.parametrize("kind", ["ScaleIn", "ScaleOut"])
def test_a_request_that_stops_kubectl_apply_is_named(kind: str) -> None:
    source = {
        "apiVersion": "kai.alibabacloud.com/v1alpha1",
        "kind": kind,
        "metadata": {"name": "a"},
    }
    job, notes = converted(source)
    assert job == source
    line = to_do(notes)["kind"]
    assert f"without et-operator's definition of {kind}s refuses it" in line
    assert "`kubectl apply` ends with 1 after it has created the other objects of the file" in line
    assert "Remove it from the file" in line
    assert "`mpijob-elastic install --overlay et-operator`" in line
