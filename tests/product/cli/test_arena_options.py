"""What becomes of each option of `arena submit etjob`, as people type it.

arena-etjob-flags.tsv is what Arena v0.15.5 itself says of its options: name, short form, type.
"""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpijob_elastic.capabilities.gangs.facts import (
    COSCHEDULING,
    KOORDINATOR,
    KUBERNETES,
    KUBERNETES_WORKERS,
    VOLCANO,
)
from mpijob_elastic.cli import arena
from mpijob_elastic.kube import kubectl_yaml
from mpijob_elastic.model import operator_types
from tests.product.cli.test_commands import typed

ROOT = Path(__file__).parents[3]
with (Path(__file__).parent / "arena-etjob-flags.tsv").open() as file:
    FLAGS = [row for row in csv.reader(file, delimiter="\t") if row[0] != "help"]
LINE = "horovodrun -np 2 --host-discovery-script /etc/mpi/discover_hosts.sh python train.py"
NEEDED = {"name": "train", "image": "horovod:1"}
# A value that Arena takes, for options of which it does not take any text.
VALUES = {
    "env": "SEED=1",
    "data": "images:/data",
    "data-dir": "/mnt/data:/data",
    "dataDir": "/mnt/data",
    "annotation": "team=a=b",
    "launcher-annotation": "a=1",
    "worker-annotation": "b=2",
    "label": "team=ml",
    "selector": "zone=a",
    "launcher-selector": "zone=b",
    "toleration": "gpu=yes:NoSchedule,Equal",
    "device": "amd.com/gpu=1",
    "image-pull-policy": "Never",
    "config-file": "/etc/hosts:/etc/hosts",
    "cpu": "1",
    "memory": "1Gi",
    "min-workers": "1",
    "workingDir": "/examples",
}


def value(name: str, kind: str) -> str:
    return VALUES.get(name, "2" if kind == "int" else "team")


def submit(*words: str) -> Any:
    return typed("submit", "--name=train", "--image=horovod:1", "--dry-run", *words)


def said(done: Any) -> str:
    return " ".join(done.stderr.replace("│", " ").split())


def made(*words: str) -> Any:
    done = submit(*words, LINE)
    assert done.exit_code == 0, done.stderr
    [body] = kubectl_yaml.read_all(done.stdout)
    assert operator_types.judge(json.dumps(body).encode())[0] == []
    return body


def templates(body: Any) -> list[Any]:
    specs = body["spec"]["mpiReplicaSpecs"]
    return [specs["Launcher"]["template"], specs["Worker"]["template"]]


def test_the_table_has_arenas_options_and_no_other() -> None:
    theirs = {
        (f"--{name}", f"-{short}" if short else "", kind == "bool") for name, short, kind in FLAGS
    }
    ours = {(name, flag.short, flag.is_switch) for name, flag in arena.FLAGS.items()}
    assert ours == theirs


@pytest.mark.parametrize(("name", "short", "kind"), FLAGS, ids=[row[0] for row in FLAGS])
def test_it_is_accepted_or_refused_with_what_to_type(
    name: str, short: str, kind: str, tmp_path: Path
) -> None:
    (tmp_path / "kubeconfig").touch()
    needed = {**NEEDED, "config": str(tmp_path / "kubeconfig")}
    given = needed.get(name) or value(name, kind)
    forms = [[f"--{name}={given}"], [f"--{name}", given]]
    if kind == "bool":
        forms = [[f"--{name}=true"], [f"--{name}"]]
    elif short:
        forms += [[f"-{short}", given], [f"-{short}={given}"]]
    read = [arena.read([*form, LINE], {}) for form in forms]
    if arena.FLAGS[f"--{name}"].instead:
        assert [set(one.refused) for one in read] == [{f"--{name}"}] * len(forms)
    else:
        assert [one.refused for one in read] == [{}] * len(forms)
        done = [submit(*form, LINE) for form in (forms[0], forms[-1])]
        assert [one.exit_code for one in done] == [0, 0], done[0].stderr
        assert done[0].stdout == done[1].stdout


@pytest.mark.parametrize("name", [row[0] for row in FLAGS if row[2] == "bool"])
def test_a_switch_that_is_off_changes_nothing(name: str) -> None:
    read = arena.read([f"--{name}=false", LINE], {})
    assert (read.words, read.refused) == ([LINE], {})


def test_all_of_a_line_is_refused_in_one_message() -> None:
    refused = [name for name, flag in arena.FLAGS.items() if flag.instead]
    words = [
        name if arena.FLAGS[name].is_switch else f"{name}={value(name[2:], 'int')}"
        for name in refused
    ]
    done = submit(*words, "--workers=2", LINE)
    assert done.exit_code == 2
    assert [name for name in refused if f"{name}: " not in said(done)] == []


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--queue", "--workers=3", LINE), "type --queue NAME"),
        (("--queue", LINE), "type --queue NAME"),
        (("--workers=3", "--queue"), "type --queue NAME"),
        (("--gang", "--queue", "team", LINE), "type --gang coscheduling"),
        (("--gang", LINE), "type --gang coscheduling"),
        (("--gang=true", LINE), "type --gang coscheduling"),
        (("--sync-mode", "--gang", "--rdma", LINE), "--sync-mode: put the code"),
        (("--hostNetwork", "true", LINE), "--hostNetwork: write --hostNetwork=true; a word of"),
        (("--rdma=2", LINE), "--rdma: 2 is neither true nor false"),
        (("--toleration=gpu", LINE), "gpu is neither all nor KEY=VALUE:EFFECT,OPERATOR"),
        (("--toleration=a=b:Soon,Equal", LINE), "a=b:Soon,Equal is neither all nor"),
        (("--toleration=a=b:NoSchedule,Exists", LINE), "Exists goes with no value"),
        (("--data-dir=data", LINE), "data is not HOST-PATH or HOST-PATH:POD-PATH"),
        (("--selector=zone", LINE), "zone: each needs a = between its two parts"),
    ],
)
def test_it_is_refused(words: tuple[str, ...], expected: str) -> None:
    done = submit(*words)
    assert done.exit_code == 2
    assert expected in said(done)


def test_names_of_queue_and_gang_are_taken() -> None:
    body = made("--queue", "team", "--gang", "volcano")
    assert body["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "team"}
    assert body["metadata"]["annotations"] == {"mpijob-elastic/gang": "volcano"}
    for scheduler in (COSCHEDULING, KOORDINATOR, KUBERNETES, KUBERNETES_WORKERS, VOLCANO):
        assert made(f"--gang={scheduler}")


def test_words_behind_the_dashes_are_the_commands() -> None:
    body = submit("--", "python", "train.py", "--sync-mode=git", "--queue").stdout
    assert "--sync-mode=git" in body
    assert "--queue" in body


def test_the_fields_are_those_of_arenas_chart() -> None:
    body = made(
        *("-l", "team=ml", "-a", "note=x", "--launcher-annotation=a=1", "--worker-annotation=b=2"),
        *("--selector=zone=a", "--launcher-selector=zone=b", "--device=amd.com/gpu=4", "--cpu=2"),
        *("--toleration=gpu=:NoSchedule,Exists", "--data=images:/data", "--data-dir=/mnt"),
        *("--image-pull-secret=one", "--image-pull-secret=two", "--image-pull-policy=Never"),
        *("--scheduler=mine", "--rdma", "--hostNetwork", "--hostIPC=true", "--hostPID=1"),
    )
    assert body["metadata"]["labels"] == {"team": "ml"}
    assert body["metadata"]["annotations"] == {"note": "x"}
    launcher, worker = templates(body)
    assert launcher["metadata"] == {
        "labels": {"team": "ml"},
        "annotations": {"note": "x", "a": "1"},
    }
    assert worker["metadata"] == {"labels": {"team": "ml"}, "annotations": {"note": "x", "b": "2"}}
    assert launcher["spec"].pop("nodeSelector") == {"zone": "b"}
    assert worker["spec"].pop("nodeSelector") == {"zone": "a"}
    resources = []
    for template in (launcher, worker):
        spec = template["spec"]
        [container] = spec.pop("containers")
        resources.append(container["resources"]["limits"])
        assert container["resources"]["requests"] == container["resources"]["limits"]
        assert container["imagePullPolicy"] == "Never"
        assert container["securityContext"] == {"capabilities": {"add": ["IPC_LOCK"]}}
        mounts = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
        assert mounts == {"data-0": "/data", "dir-0": "/mnt"}
        assert spec == {
            "volumes": [
                {"name": "data-0", "persistentVolumeClaim": {"claimName": "images"}},
                {"name": "dir-0", "hostPath": {"path": "/mnt"}},
            ],
            "tolerations": [{"key": "gpu", "effect": "NoSchedule", "operator": "Exists"}],
            "imagePullSecrets": [{"name": "one"}, {"name": "two"}],
            "schedulerName": "mine",
            "hostNetwork": True,
            "dnsPolicy": "ClusterFirstWithHostNet",
            "hostIPC": True,
            "hostPID": True,
        }
    assert resources == [
        {"cpu": "2", "rdma/hca": "1"},
        {"cpu": "2", "rdma/hca": "1", "amd.com/gpu": "4"},
    ]


def test_what_an_option_says_wins_over_an_annotation() -> None:
    body = made("--min-workers=1", "--annotation=mpijob-elastic/min-replicas=9")
    assert body["metadata"]["annotations"] == {"mpijob-elastic/min-replicas": "1"}


_PARTS = ("-e", "-e=A=B", "--", "-", "A=B", "-n", "--rdma=no", "--gang=x", "x y")
_WORDS = st.lists(st.sampled_from([*_PARTS, *arena.FLAGS]) | st.text(max_size=5))

_TAKES_WORD = {flag.ours: not flag.is_switch for flag in arena.FLAGS.values() if flag.ours}


@given(_WORDS)
def test_no_word_is_lost(words: list[str]) -> None:
    """Reading what was read changes nothing, and what stands behind the dashes stays."""
    read = arena.read(words, _TAKES_WORD)
    again = arena.read(read.words, _TAKES_WORD)
    assert (again.words, again.refused) == (read.words, {})
    for option in read.refused:
        assert arena.FLAGS[option].instead or "=" in " ".join(words)


def test_the_page_names_each_option() -> None:
    page = (ROOT / "docs" / "arena.md").read_text()
    assert [name for name in (*arena.FLAGS, *arena.MPIJOB_FLAGS) if f"`{name}`" not in page] == []


# pkg/argsbuilder/submit_mpijob.go has these five, of which an etjob has two as well.
@pytest.mark.parametrize(
    ("words", "policy"),
    [
        (("--clean-task-policy=All",), "All"),
        (("--clean-task-policy", "None"), "None"),
        (("--mounts-on-launcher",), "Running"),
        (("--mounts-on-launcher=true", "--cpu=1", "--memory=1Gi"), "Running"),
        (("--gputopology=false",), "Running"),
    ],
)
def test_a_line_for_an_mpijob_is_accepted(words: tuple[str, ...], policy: str) -> None:
    assert made(*words)["spec"]["cleanPodPolicy"] == policy


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--gputopology", LINE), "--gputopology: leave it out: only Alibaba Cloud's scheduler"),
        (("--clean-task-policy=Some", LINE), "'Some' is not one of 'None', 'Running', 'All'"),
        (("--mounts-on-launcher", "true", LINE), "write --mounts-on-launcher=true; a word of"),
        (("--retry=3", LINE), "For an mpijob it is spec.backoffLimit"),
    ],
)
def test_a_line_for_an_mpijob_is_refused(words: tuple[str, ...], expected: str) -> None:
    done = submit(*words)
    assert done.exit_code == 2
    assert expected in said(done)


@pytest.mark.parametrize("kind", ["etjob", "et", "mpijob", "mpi", "mj"])
def test_the_kind_of_a_job_may_stand_first(kind: str) -> None:
    words = ("--name=train", "--image=horovod:1", "--dry-run", LINE)
    assert typed("submit", kind, *words).stdout == typed("submit", *words).stdout


def test_a_kind_that_stands_elsewhere_is_a_word_of_the_command() -> None:
    assert "- mpijob" in submit("--", "mpijob", "x").stdout


@pytest.mark.parametrize("kind", ["tfjob", "pytorchjob", "horovodjob", "rayjob"])
def test_another_kind_stays_with_arena(kind: str) -> None:
    done = typed("submit", kind, "--name=train", "--image=i", LINE)
    assert done.exit_code == 2
    assert f"{kind} is no MPIJob" in said(done)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("get train --type=etjob", "--type; leave it out: all jobs here are MPIJobs"),
        ("list -T et", "-T; leave it out"),
        ("list --allNamespaces", "type --all-namespaces"),
        ("get train -e", "type `mpijob-elastic events JOB`"),
        ("get train -g", "`mpijob-elastic top JOB` shows how busy GPUs are"),
        ("logs train -i train-worker-1", "type --worker N for those of one worker"),
        ("logs train --instance=train-worker-1", "type --worker N"),
        ("attach train --instance train-worker-1", "`mpijob-elastic attach JOB 2`"),
        ("attach train -c main -- ls", "`mpijob-elastic attach JOB 2`"),
        ("attach train --type mpi -- ls --all", "leave it out: all jobs here are MPIJobs"),
        ("top train -r", "type `watch mpijob-elastic top`"),
        ("scaleout --name=train --count=1", "type the job's name without an option"),
        ("scalein --name=train --retry=3", "type the job's name without an option"),
        ("scaleout train --retry=3", "the controller tries again by itself"),
        ("delete train --type=et", "leave it out"),
        ("delete --all", "`mpijob-elastic prune` deletes all finished jobs"),
        ("events --for mpijob/train", "type the job's name without an option"),
    ],
)
def test_an_option_of_another_command_of_arena_is_named_with_what_to_type(
    line: str, expected: str
) -> None:
    done = typed(*line.split())
    assert done.exit_code == 2
    assert expected in said(done)
