import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from mpijob_elastic import names
from mpijob_elastic.install import Refused
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model import policy
from tests.doubles.api import TinyApi, refused
from tests.doubles.direct import Sent
from upgrade import conversion, conversion_files

TRAINING_JOB = """
apiVersion: kai.alibabacloud.com/v1alpha1
kind: TrainingJob
metadata:
  name: mnist
  namespace: ml
  labels: {team: vision}
  annotations: {job-supervisor.kube-ai.io/spot-instance: "true", keep: "1"}
spec:
  launcherAttachMode: ssh
  restartPolicy: OnFailure
  backoffLimit: 3
  etReplicaSpecs:
    launcher:
      replicas: 1
      template: {spec: {containers: [{
        command: [sh, -c, horovodrun --host-discovery-script /etc/edl/discover_hosts.sh python train.py],
        env: [{name: HOSTS, value: /etc/edl/hostfile}, {name: POD, valueFrom: {}}]}]}}
    worker:
      replicas: 2
      minReplicas: 1
      maxReplicas: 9
      restartPolicy: ExitCode
      template: {spec: {containers: [{resources: {limits: {nvidia.com/gpu: "4"}}}]}}
status: {phase: Running}
"""
OLD_MPI_JOB = """
apiVersion: kubeflow.org/v1alpha2
kind: MPIJob
metadata: {name: bench, resourceVersion: "7", uid: u}
spec:
  slotsPerWorker: 2
  backoffLimit: 6
  cleanPodPolicy: Running
  mainContainer: main
  gpus: 8
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      template: {spec: {containers: [{
        command: [horovodrun, --min-np, "3", --max-np=9, --host-discovery-script, /etc/mpi/discover_hosts.sh]}]}}
    Worker:
      template: {spec: {containers: [{name: main}]}}
"""


def converted(text: str) -> tuple[dict[str, Any], dict[str, str]]:
    [one] = conversion.convert_text(text, where="test")
    return dict(one.manifest), {note.field: note.text for note in one.notes}


def test_a_training_job() -> None:
    job, notes = converted(TRAINING_JOB)
    assert (job["apiVersion"], job["kind"]) == ("kubeflow.org/v1", "MPIJob")
    kept = {"name": "mnist", "namespace": "ml", "labels": {"team": "vision"}}
    annotations = {"keep": "1", names.MIN_REPLICAS: "1", names.MAX_REPLICAS: "9"}
    assert job["metadata"] == {**kept, "annotations": annotations}
    assert (job["spec"]["slotsPerWorker"], job["spec"]["cleanPodPolicy"], "status" in job) == (
        4,
        "Running",
        False,
    )
    [container] = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"]
    assert "/etc/mpi/discover_hosts.sh" in container["command"][2]
    assert container["env"] == [
        {"name": "HOSTS", "value": "/etc/mpi/hostfile"},
        {"name": "POD", "valueFrom": {}},
    ]
    worker = job["spec"]["mpiReplicaSpecs"]["Worker"]
    assert worker == {"replicas": 2, "restartPolicy": "Never", "template": worker["template"]}
    of_spec = ("launcherAttachMode", "restartPolicy", "backoffLimit")
    of_replicas = ("etReplicaSpecs.launcher.template", "etReplicaSpecs.worker.restartPolicy")
    spot = "metadata.annotations[job-supervisor.kube-ai.io/spot-instance]"
    assert notes.keys() == {*(f"spec.{field}" for field in (*of_spec, *of_replicas)), spot}


LARGE_JOB = TRAINING_JOB.replace("maxReplicas: 9", "maxReplicas: 999999")


@pytest.mark.parametrize("text", [LARGE_JOB, OLD_MPI_JOB.replace("=9", "=999999")])
def test_a_bound_that_means_none_becomes_the_largest_that_is_allowed(text: str) -> None:
    job, _ = converted(text)
    assert job["metadata"]["annotations"][names.MAX_REPLICAS] == "10000"
    assert policy.parse(job["metadata"]["annotations"])[1] == []


def test_defaults_of_a_training_job() -> None:
    source = yaml.safe_load(TRAINING_JOB)
    del source["metadata"]["annotations"]
    replicas = {"launcher": {"template": {}}, "worker": {"replicas": 3}}
    source["spec"] = {"etReplicaSpecs": replicas, "launcherAttachMode": "kubexec"}
    job, notes = converted(yaml.safe_dump(source))
    assert job["metadata"]["annotations"] == {names.MIN_REPLICAS: "3"}
    assert (job["spec"]["slotsPerWorker"], job["spec"]["cleanPodPolicy"]) == (1, "Running")
    assert notes.keys() == {
        "spec.mpiReplicaSpecs.Launcher.template",
        "spec.mpiReplicaSpecs.Launcher.template.spec.containers",
        "spec.etReplicaSpecs.worker.minReplicas",
    }


def test_an_old_mpi_job() -> None:
    job, notes = converted(OLD_MPI_JOB)
    # 3 to 9 processes are 2 to 4 workers of 2 slots.
    assert job["metadata"] == {
        "name": "bench",
        "annotations": {
            names.MIN_REPLICAS: "2",
            names.MAX_REPLICAS: "4",
            "mpijob-elastic/run-policy": "true",
        },
    }
    assert (job["spec"]["runPolicy"], job["spec"]["mainContainer"]) == ({"backoffLimit": 6}, "main")
    assert job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] == 1
    assert notes.keys() == {
        "spec.gpus",
        "spec.runPolicy",
        "spec.mpiReplicaSpecs.Worker.restartPolicy",
    }
    assert notes["spec.runPolicy"].endswith('annotated mpijob-elastic/run-policy: "true"')
    assert "gpus" not in job["spec"]


def test_a_job_that_reads_no_host_list_is_told_so() -> None:
    source = yaml.safe_load(OLD_MPI_JOB)
    source["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0][
        "command"
    ] = ["mpirun", "x"]
    job, notes = converted(yaml.safe_dump(source))
    assert job["metadata"]["annotations"] == {"mpijob-elastic/run-policy": "true"}
    assert "--host-discovery-script" in notes["spec.mpiReplicaSpecs.Launcher.template"]


def test_every_note_is_a_comment_too() -> None:
    [one] = conversion.convert_text(TRAINING_JOB, where="test")
    said = [line for line in conversion.render([one]).splitlines() if line.startswith("#")]
    assert said == [f"# TrainingJob ml/mnist: {note}" for note in one.notes]


def test_lists_are_taken_apart_and_other_kinds_stay() -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}
    scale = {
        "apiVersion": "kai.alibabacloud.com/v1alpha1",
        "kind": "ScaleIn",
        "metadata": {"name": "in"},
    }
    old = {
        "apiVersion": "apiextensions.k8s.io/v1beta1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "mpijobs.kubeflow.org"},
    }
    items = [service, scale, old, yaml.safe_load(OLD_MPI_JOB)]
    text = yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items})
    found = conversion.convert_text(text, where="test")
    assert [one.manifest for one in found[:3]] == [service, scale, old]
    assert found[3].manifest["apiVersion"] == "kubeflow.org/v1"
    assert "edit the job's replicas" in str(found[1].notes[0])
    assert "apply docs/examples/mpijob-definition.yaml instead" in str(found[2].notes[0])


@pytest.mark.parametrize("text", ["{", "- 1", "just words", "kind: ''"])
def test_what_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(Refused, match=r"job\.yaml"):
        conversion.convert_text(text, where="job.yaml")


def test_a_folder_is_converted_file_by_file(tmp_path: Path) -> None:
    (tmp_path / "old" / "deep").mkdir(parents=True)
    with pytest.raises(Refused, match="holds no"):
        conversion_files.convert(tmp_path)
    (tmp_path / "old" / "a.yaml").write_text(TRAINING_JOB + "---\n" + OLD_MPI_JOB)
    (tmp_path / "old" / "deep" / "b.yml").write_text(OLD_MPI_JOB)
    (tmp_path / "old" / "notes.txt").write_text("not a manifest")
    said: list[str] = []
    conversion_files.write(
        conversion_files.convert(tmp_path / "old"), tmp_path / "new", say=said.append
    )
    first = list(yaml.safe_load_all((tmp_path / "new" / "a.yaml").read_text()))
    assert [one["metadata"]["name"] for one in first] == ["mnist", "bench"]
    assert (tmp_path / "new" / "deep" / "b.yaml").exists()
    assert any(line.startswith("a.yaml: TrainingJob ml/mnist: spec.backoffLimit:") for line in said)
    assert any(
        line.startswith("a.yaml: TrainingJob ml/mnist: to do: spec.restartPolicy:") for line in said
    )
    with pytest.raises(Refused, match="already exists"):
        conversion_files.write(
            conversion_files.convert(tmp_path / "old"), tmp_path / "new", say=said.append
        )


TEMPLATE = """apiVersion: kubeflow.org/v1alpha2
kind: MPIJob
metadata: {name: {{ .Release.Name }}}
"""


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        (
            "values.yaml",
            b"image: x\n",
            "skipped: values.yaml holds a document that is no Kubernetes object",
        ),
        (
            "kustomization.yaml",
            b"resources: [job.yaml]\n",
            "skipped: kustomization.yaml holds a document",
        ),
        ("list.json", b'["a"]', "skipped: list.json holds a document"),
        ("notes.yaml", b"gr\xfcn: 1\n", "skipped: notes.yaml is not UTF-8"),
        (
            "templates/_helpers.yaml",
            b"{{ define }}\n",
            "skipped: templates/_helpers.yaml is not YAML",
        ),
        ("templates/job.yaml", TEMPLATE.encode(), "to do: skipped: templates/job.yaml is not YAML"),
    ],
)
def test_a_folder_skips_what_has_no_objects_with_a_line(
    tmp_path: Path, name: str, content: bytes, line: str
) -> None:
    (tmp_path / "old" / "templates").mkdir(parents=True)
    (tmp_path / "old" / name).write_bytes(content)
    (tmp_path / "old" / "service.yaml").write_text(
        "apiVersion: v1\nkind: Service\nmetadata: {name: s}\n"
    )
    said: list[str] = []
    done = conversion_files.write(
        conversion_files.convert(tmp_path / "old"), tmp_path / "new", say=said.append
    )
    assert [found.startswith(f"{name}: {line}") for found in said] == [True]
    assert done is not line.startswith("to do")
    assert [path.name for path in (tmp_path / "new").rglob("*.*")] == ["service.yaml"]
    with pytest.raises(Refused):
        conversion_files.convert(tmp_path / "old" / name)


def test_two_files_that_would_become_one_are_refused(tmp_path: Path) -> None:
    for name in ("a.yaml", "a.yml"):
        (tmp_path / name).write_text(OLD_MPI_JOB)
    with pytest.raises(Refused, match=r"a\.yaml and a\.yml would both become .*a\.yaml"):
        conversion_files.write(conversion_files.convert(tmp_path), tmp_path / "new", say=print)
    assert not (tmp_path / "new").exists()


def test_the_name_of_a_field_stays_within_its_comment() -> None:
    hostile = "x\nkind: ClusterRoleBinding\n---\n\x1b[2J\u2028y"
    (job,) = conversion.convert_text(TRAINING_JOB, where="a file")
    shown = conversion.render(
        [conversion.convert({**yaml.safe_load(TRAINING_JOB), "spec": {hostile: 1}})]
    )
    assert [found["kind"] for found in yaml.safe_load_all(shown)] == [job.manifest["kind"]]
    assert "\x1b" not in shown


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("NotFound", "--live trainingjob/mnist: gone in namespace ml (kai.alibabacloud.com/"),
        ("", "--live trainingjob/mnist: this cluster has no TrainingJob (kai.alibabacloud.com/"),
    ],
)
async def test_a_kind_that_the_cluster_does_not_have_is_named(
    api: TinyApi, client: ApiWriter, reason: str, said: str
) -> None:
    def answer(_: Sent) -> None:
        raise refused(404, reason, "gone" if reason else "404 page not found\n")

    api.hook = answer
    with pytest.raises(Refused, match=re.escape(said)):
        await conversion_files.convert_live(client, "trainingjob/mnist", "ml")
