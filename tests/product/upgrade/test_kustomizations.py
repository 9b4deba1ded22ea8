"""Folders for kustomize: a patch of an old job is no job, and nothing of it is lost without a word."""

from pathlib import Path
from typing import Any

import pytest

from mpijob_elastic.install import Refused
from mpijob_elastic.kube import kubectl_yaml
from upgrade import conversion_files, kustomizations

TRAINING_JOB = """
apiVersion: kai.alibabacloud.com/v1alpha1
kind: TrainingJob
metadata: {name: mnist}
spec:
  launcherAttachMode: kubexec
  etReplicaSpecs:
    launcher: {template: {spec: {containers: [{name: l, command: [
      horovodrun, --host-discovery-script, /etc/edl/discover_hosts.sh, python, train.py]}]}}}
    worker: {replicas: 2, minReplicas: 1, template: {spec: {containers: [{name: w}]}}}
"""
OLD_JOB = """
apiVersion: kubeflow.org/v1alpha2
kind: MPIJob
metadata: {name: mnist}
spec:
  mpiReplicaSpecs:
    Launcher: {replicas: 1, template: {spec: {containers: [{name: l, command: [mpirun, train]}]}}}
    Worker: {replicas: 2, template: {spec: {containers: [{name: w}]}}}
"""
PATCH = """apiVersion: kai.alibabacloud.com/v1alpha1
kind: TrainingJob
metadata: {name: mnist}
spec: {slotsPerWorker: 2}
"""
OLD_PATCH = """apiVersion: kubeflow.org/v1alpha2
kind: MPIJob
metadata: {name: mnist}
spec: {mpiReplicaSpecs: {Worker: {replicas: 4}}}
"""
NEW_PATCH = OLD_PATCH.replace("v1alpha2", "v1")
JSON_PATCH = "- {op: replace, path: /spec/etReplicaSpecs/worker/replicas, value: 4}\n"
SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: s}\n"
KIND = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"
BASE = {"base/kustomization.yaml": f"{KIND}resources: [job.yaml]\n"}
ANEW = "an MPIJob of kubeflow.org/v1"
A_PATCH = "and has the fields of the old kind; write the patch anew for the converted job"


def indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


def converted(folder: Path, files: dict[str, str]) -> tuple[dict[str, list[Any]], list[str], bool]:
    """Convert a folder with these files.

    Returns the objects of each file that was written, the lines, and whether nothing is to do.
    """
    for name, text in files.items():
        path = folder / "old" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    lines: list[str] = []
    new = folder / "new"
    done = conversion_files.write(conversion_files.convert(folder / "old"), new, say=lines.append)
    written = {
        str(path.relative_to(new)): kubectl_yaml.read_all(path.read_text())
        for path in new.rglob("*")
        if path.is_file()
    }
    return written, lines, done


def sizes(written: dict[str, list[Any]]) -> dict[str, int]:
    """Return the number of workers of each MPIJob, by file."""
    return {
        name: one["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"]
        for name, objects in written.items()
        for one in objects
        if one["kind"] == "MPIJob"
    }


@pytest.mark.parametrize(
    ("job", "patch", "subject"),
    [
        pytest.param(TRAINING_JOB, PATCH, "TrainingJob mnist", id="et-operator"),
        pytest.param(OLD_JOB, OLD_PATCH, "MPIJob mnist", id="v1alpha2"),
        pytest.param(OLD_JOB, f"{SERVICE}---\n{OLD_PATCH}", "MPIJob mnist", id="beside-another"),
        pytest.param(TRAINING_JOB, JSON_PATCH, "a TrainingJob", id="json"),
        pytest.param(
            TRAINING_JOB, "spec: {etReplicaSpecs: {}}", "a TrainingJob", id="without-kind"
        ),
    ],
)
@pytest.mark.parametrize(
    ("kustomization", "names", "place"),
    [
        ("overlay/kustomization.yaml", "patches: [{path: p.yaml}]", "overlay/p.yaml"),
        ("overlay/kustomization.yml", "patches: [{path: ./deep/../p.yaml}]", "overlay/p.yaml"),
        ("overlay/Kustomization", "patchesStrategicMerge: [p.yaml]", "overlay/p.yaml"),
        ("overlay/kustomization.yaml", "patches: [{path: ../patches/p.json}]", "patches/p.json"),
        ("kustomization.yaml", "patches: [{path: a.yml}, {path: o/p.yml}]", "o/p.yml"),
        (
            "overlay/kustomization.yaml",
            "patchesJson6902: [{path: p.yaml, target: {name: mnist}}]",
            "overlay/p.yaml",
        ),
    ],
)
@pytest.mark.parametrize("kind", ["", KIND, KIND.replace("Kustomization", "Component")])
def test_a_patch_of_an_old_job_becomes_no_job(
    tmp_path: Path, job: str, patch: str, subject: str, kustomization: str, names: str, place: str,
    kind: str,
) -> None:  # fmt: skip
    files = {
        **BASE,
        "base/job.yaml": job,
        kustomization: f"{kind}resources: [../base]\n{names}\n",
        place: patch,
    }
    written, lines, done = converted(tmp_path, files)
    assert sizes(written) == {"base/job.yaml": 2}
    assert place not in written
    assert [line for line in lines if line.startswith(f"{place}:")] == [
        f"{place}: to do: skipped: {kustomization} names the file as a patch; the patch is for "
        f"{subject} {A_PATCH}, {ANEW}"
    ]
    assert not done


@pytest.mark.parametrize("patch", [NEW_PATCH, SERVICE, f"{SERVICE}---\n{NEW_PATCH}"])
def test_a_patch_of_another_object_stays(tmp_path: Path, patch: str) -> None:
    files = {
        **BASE,
        "base/job.yaml": TRAINING_JOB,
        "overlay/kustomization.yaml": f"{KIND}resources: [../base]\npatches: [{{path: p.yaml}}]\n",
        "overlay/p.yaml": patch,
    }
    written, lines, done = converted(tmp_path, files)
    assert written["overlay/p.yaml"] == kubectl_yaml.read_all(patch)
    assert [line for line in lines if "overlay" in line] == []
    assert done


INLINE = [
    pytest.param("patches:\n- patch: |\n{}", "patches[0].patch", id="patches"),
    pytest.param(
        "patchesStrategicMerge:\n- a.yaml\n- |\n{}", "patchesStrategicMerge[1]", id="merge"
    ),
    pytest.param("patchesJson6902:\n- patch: |\n{}", "patchesJson6902[0].patch", id="json"),
]


@pytest.mark.parametrize("kind", ["", KIND])
@pytest.mark.parametrize(("form", "field"), INLINE)
@pytest.mark.parametrize(
    ("patch", "subject"),
    [(PATCH, "TrainingJob mnist"), (OLD_PATCH, "MPIJob mnist")],
)
def test_a_patch_within_a_kustomization_is_named(
    tmp_path: Path, kind: str, form: str, field: str, patch: str, subject: str
) -> None:
    text = f"{kind}resources: [../base]\n{form.format(indented(patch))}"
    files = {**BASE, "base/job.yaml": TRAINING_JOB, "overlay/kustomization.yaml": text}
    written, lines, done = converted(tmp_path, files)
    assert sizes(written) == {"base/job.yaml": 2}
    assert (
        f"overlay/kustomization.yaml: to do: {field}: the patch is for {subject} {A_PATCH}, {ANEW}"
    ) in lines
    assert not done


@pytest.mark.parametrize("key", ["patches", "patchesJson6902"])
def test_a_json_patch_within_a_kustomization_is_named(key: str) -> None:
    found = kustomizations.read(f"{key}:\n- patch: |\n{indented(JSON_PATCH)}")
    assert [str(note) for note in found.notes] == [
        f"to do: {key}[0].patch: the patch is for a TrainingJob {A_PATCH}, {ANEW}"
    ]


@pytest.mark.parametrize(("form", "field"), INLINE)
def test_a_new_patch_within_a_kustomization_needs_nothing(form: str, field: str) -> None:
    found = kustomizations.read(f"resources: [a]\n{form.format(indented(NEW_PATCH))}")
    assert found.notes == (), field


# As kustomize 5.5.0 does it: a selector has whole regular expressions.
@pytest.mark.parametrize(
    ("selector", "is_old"),
    [
        ("{kind: TrainingJob}", True),
        ("{kind: TrainingJob, name: mnist}", True),
        ("{kind: Training.*}", True),
        ("{group: kai.alibabacloud.com}", True),
        ("{apiVersion: kai.alibabacloud.com/v1alpha1, kind: TrainingJob}", True),
        ("{kind: MPIJob, version: v1alpha2}", True),
        ("{kind: MPIJob, group: kubeflow.org, version: v1alpha2}", True),
        ("{kind: MPIJob|TrainingJob}", False),
        ("{kind: MPIJob}", False),
        ("{kind: Job}", False),
        ("{name: mnist}", False),
        ("{kind: Deployment, version: v1}", False),
        ("{kind: '('}", False),
        ("{kind: 5}", False),
        ("{}", False),
        ("[]", False),
    ],
)
@pytest.mark.parametrize(
    ("form", "field"),
    [
        ("patches: [{path: p.yaml, target: %s}]", "patches[0].target"),
        ("patchesJson6902: [{path: p.yaml, target: %s}]", "patchesJson6902[0].target"),
        (
            "replacements: [{targets: [{select: {kind: Job}}, {select: %s}]}]",
            "replacements[0].targets[1].select",
        ),
        ("replacements: [{source: %s}]", "replacements[0].source"),
        ("vars: [{objref: %s}]", "vars[0].objref"),
    ],
)
def test_a_selector_that_no_longer_selects_is_named(
    selector: str, is_old: bool, form: str, field: str
) -> None:
    notes = kustomizations.read(form.replace("%s", selector)).notes
    assert [(note.field, note.to_do) for note in notes] == [(field, True)] * is_old
    assert all("group kubeflow.org, version v1 and kind MPIJob" in note.text for note in notes)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "- a",
        "patches: 5",
        "patches: [a, 5, null, {path: 5}, {path: null, patch: 7}]",
        "patchesStrategicMerge: {a: b}",
        "patchesStrategicMerge: [5, {}, null]",
        "patches: [{patch: '{'}]",
        'patches: [{path: "a\\0b"}]',
        "patches: [{path: https://example.com/p.yaml}]",
    ],
)
def test_a_kustomization_that_is_none_ends_nothing(tmp_path: Path, text: str) -> None:
    written, _, done = converted(tmp_path, {"kustomization.yaml": text, "job.yaml": TRAINING_JOB})
    assert sizes(written) == {"job.yaml": 2}
    assert done


def test_a_kustomization_without_an_ending_is_written_as_kustomize_finds_it(
    tmp_path: Path,
) -> None:
    text = f"{KIND}resources: [job.yaml]\n"
    written, lines, _ = converted(tmp_path, {"Kustomization": text, "job.yaml": TRAINING_JOB})
    assert written["kustomization.yaml"] == kubectl_yaml.read_all(text)
    assert not any(line.startswith(("kustomization", "Kustomization")) for line in lines)


def test_two_kustomizations_in_a_folder_are_refused(tmp_path: Path) -> None:
    files = {"Kustomization": KIND, "kustomization.yml": KIND, "job.yaml": TRAINING_JOB}
    with pytest.raises(Refused, match=r"^Kustomization and kustomization\.yml would both become"):
        converted(tmp_path, files)
