"""Building, with a program in Go's place that only writes down what it was asked for."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lab.programs import ALL, PEERS

ROOT = Path(__file__).parents[3]
# Answers as Go does as far as it is asked; each build takes long enough for another process to come in between.
GO = """#!/bin/sh
echo "$PWD: $*" >> "$GO_LOG"
case $1 in
env) echo go1.26.0 ;;
build)
  while [ "$1" != -o ]; do shift; done
  sleep 0.05
  echo built > "$2" ;;
esac
"""


class Machine:
    """A machine with nothing installed but what a test puts there."""

    def __init__(self, root: Path) -> None:
        self.bin = root / "bin"
        self.bin.mkdir()
        self.cache = root / "cache"
        self.log = root / "go.log"
        self.environment = {
            "HOME": str(root),
            "PATH": str(self.bin),
            "XDG_CACHE_HOME": str(self.cache),
            "GO_LOG": str(self.log),
        }

    def install_go(self, script: str = GO) -> None:
        for tool in ("sleep", "sh"):
            (self.bin / tool).symlink_to(f"/bin/{tool}")
        (self.bin / "go").write_text(script)
        (self.bin / "go").chmod(0o755)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "lab", *arguments]
        return subprocess.Popen(
            command, cwd=ROOT, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def run(self, *arguments: str) -> tuple[int, str, str]:
        with self.start(*arguments) as process:
            output, errors = process.communicate()
        return process.returncode, output, errors

    def builds(self) -> list[str]:
        return [line.split()[-1] for line in self.log.read_text().splitlines() if " build " in f" {line} "]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize("old", [None, "#!/bin/sh\necho go1.19.8\n"], ids=["no Go", "a Go that is too old"])
def test_where_the_pinned_go_cannot_be_had_an_error_says_what_to_install(machine: Machine, old: str | None) -> None:
    """Where it can, it is installed: `make test-fresh` shows that."""
    if old:
        machine.install_go(old)
    machine.environment["PIP_NO_INDEX"] = "1"
    code, _, errors = machine.run("binaries")
    assert code == 1
    assert "\nerror: Go could not be installed; install Go 1.21 or newer (https://go.dev/doc/install):\n" in errors


def test_everything_missing_is_built_once(machine: Machine) -> None:
    machine.install_go()
    code, output, errors = machine.run("binaries")
    assert code == 0, errors
    directory = machine.cache / "mpijob-elastic" / "lab" / "bin-v1.34.4"
    assert [line.split() for line in output.splitlines()] == [[one.name, str(directory / one.name)] for one in ALL]
    assert machine.builds() == [program.package for program in ALL]
    assert "building kube-apiserver, 2 of 11 (about 10 min left on 2 cores)" in errors
    assert machine.run("binaries")[0] == 0
    assert len(machine.builds()) == len(ALL)


def test_peers_are_built_once_and_only_when_asked_for(machine: Machine) -> None:
    machine.install_go()
    for _ in range(2):
        code, output, errors = machine.run("peers")
        assert code == 0, errors
    directory = machine.cache / "mpijob-elastic" / "lab" / "bin-peers"
    assert [line.split() for line in output.splitlines()] == [[one.name, str(directory / one.name)] for one in PEERS]
    assert machine.builds() == [program.package for program in PEERS]


def test_two_at_once_do_not_build_twice(machine: Machine) -> None:
    machine.install_go()
    with machine.start("binaries") as one, machine.start("binaries") as other:
        errors = one.communicate()[1] + other.communicate()[1]
    assert (one.returncode, other.returncode) == (0, 0), errors
    assert sorted(machine.builds()) == sorted(program.package for program in ALL)


def test_a_program_is_built_again_when_its_module_has_changed(machine: Machine) -> None:
    machine.install_go()
    machine.run("binaries")
    (stamp,) = machine.cache.rglob(".etcd.built-from")
    stamp.write_text("an older go.mod")
    machine.run("binaries")
    assert machine.builds()[len(ALL) :] == ["go.etcd.io/etcd/server/v3"]


def test_a_failed_build_shows_the_complaint_and_leaves_no_program(machine: Machine) -> None:
    machine.install_go(GO.replace("echo built", 'echo "no space left" >&2; exit 1; echo built'))
    code, _, errors = machine.run("binaries")
    assert code == 1
    assert errors.rstrip().endswith("ended with 1:\nno space left")
    assert not list(machine.cache.rglob("etcd"))


@pytest.mark.parametrize(("minor", "without_providers"), [(33, False), (31, False), (30, True)])
def test_another_release_of_kubernetes_gets_a_module_of_its_own(
    machine: Machine, minor: int, *, without_providers: bool
) -> None:
    released = machine.bin.parent / "released"
    answers = f"""
mod)
  case $2 in
  download) echo '{{"GoMod": "{released}"}}' ;;
  edit) echo '{{"Go": "1.24.0", "Require": [
      {{"Path": "k8s.io/api", "Version": "v0.0.0"}}, {{"Path": "k8s.io/utils", "Version": "v0.1.0"}}]}}' ;;
  esac ;;
"""
    machine.install_go(GO.replace("build)", answers.strip() + "\nbuild)", 1))
    code, output, errors = machine.run("binaries", "--kubernetes-version", f"v1.{minor}.5")
    assert code == 0, errors
    assert f"bin-v1.{minor}.5/kube-apiserver" in output
    written = next(machine.cache.rglob("go.mod")).read_text().splitlines()
    assert f"require k8s.io/kubernetes v1.{minor}.5" in written
    assert "tool k8s.io/kubernetes/cmd/kube-apiserver" in written
    assert [line for line in written if line.startswith("replace")] == [
        f"replace k8s.io/api => k8s.io/api v0.{minor}.5"
    ]
    assert f"gitVersion=v1.{minor}.5" in machine.log.read_text()
    assert ("-tags=providerless" in machine.log.read_text()) == without_providers
    assert os.fspath(released) in machine.log.read_text()
