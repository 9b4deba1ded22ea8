"""`--kind`, with programs in the places of docker, kind and kubectl that only write down what they were asked for."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
RECORD = '#!/bin/sh\necho "${0##*/} $*" >> "$LOG"\n'
CLUSTER = "mpijob-lab-default"


class Machine:
    """A machine with nothing installed but what a test puts there."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.log = root / "log"
        self.kubeconfig = root / "state/mpijob-elastic/lab/default/kubeconfig"
        self.log.touch()

    def install(self, name: str, script: str = "") -> None:
        path = self.root / name
        path.write_text(RECORD + script)
        path.chmod(0o755)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "lab", *arguments],
            cwd=ROOT,
            env={"PATH": str(self.root), "XDG_STATE_HOME": str(self.root / "state"), "LOG": str(self.log)},
            capture_output=True,
            text=True,
            check=False,
        )

    def asked(self, program: str) -> list[str]:
        return [line for line in self.log.read_text().splitlines() if line.startswith(program)]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def equipped(machine: Machine) -> Machine:
    for name, script in {"docker": "", "kubectl": "", "kind": f"[ $1 = get ] && echo {CLUSTER} || true"}.items():
        machine.install(name, script)
    return machine


@pytest.mark.parametrize("missing", ["docker", "kind", "kubectl"])
def test_a_missing_tool_is_named_with_where_to_get_it(machine: Machine, missing: str) -> None:
    for tool in {"docker", "kind", "kubectl"} - {missing}:
        machine.install(tool)
    refused = machine.run("up", "--kind")
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"error: {missing} is missing, which --kind needs: see https://")


def test_a_docker_that_does_not_answer_is_told(equipped: Machine) -> None:
    equipped.install("docker", "exit 1")
    refused = equipped.run("up", "--kind")
    assert (refused.returncode, refused.stderr[:29]) == (1, "error: Docker does not answer")


def test_the_verbs_are_those_of_the_other_labs(equipped: Machine) -> None:
    up = equipped.run("up", "--kind")
    assert up.returncode == 0, up.stderr
    (create,) = equipped.asked("kind create")
    assert create == f"kind create cluster --name={CLUSTER} --kubeconfig={equipped.kubeconfig} --wait=180s"
    assert [line.split()[2] for line in equipped.asked("kubectl")] == ["apply", "wait"]
    assert equipped.asked("kubectl")[0].endswith("/lab/manifests/podgroup-crd.yaml")
    assert equipped.run("up").returncode == 1, "the name is taken"
    equipped.kubeconfig.touch()
    assert equipped.run("kubeconfig").stdout == f"{equipped.kubeconfig}\n"
    assert equipped.run("status").stdout == "lab default: ready, made by kind\n"
    assert equipped.run("logs").stdout.startswith("written to ")
    assert equipped.run("down").returncode == 0
    assert equipped.asked("kind delete") == [f"kind delete cluster --name={CLUSTER}"]
    assert equipped.run("status").stdout == "lab default: down\n"


def test_a_release_is_an_image(equipped: Machine) -> None:
    equipped.run("up", "--kind", "--kubernetes-version", "v1.33.5")
    assert equipped.asked("kind create")[0].endswith("--image=kindest/node:v1.33.5")


def test_it_cannot_stay_in_the_foreground(equipped: Machine) -> None:
    assert equipped.run("up", "--kind", "--foreground").returncode == 1
    assert equipped.log.read_text() == ""


def test_a_failed_start_deletes_the_cluster(equipped: Machine) -> None:
    equipped.install("kubectl", "echo no such host >&2; exit 1")
    failed = equipped.run("up", "--kind")
    assert failed.returncode == 1
    assert failed.stderr.rstrip().endswith("ended with 1:\nno such host")
    assert equipped.asked("kind delete") == [f"kind delete cluster --name={CLUSTER}"]
    assert not equipped.kubeconfig.parent.exists()
