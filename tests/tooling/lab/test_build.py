"""Building, with a program in Go's place that only writes down what it was asked for.

Other releases of Kubernetes are built by `make matrix`.
"""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from lab.programs import ALL, COMPARED

ROOT = Path(__file__).parents[3]
BUILT = sorted(program.package for program in (*ALL, *COMPARED))
# Answers as Go does as far as it is asked; each build takes long enough for another process to come
# in between. Each program requires one module of its own and one that all have.
GO = """#!/bin/sh
echo "$PWD: $*" >> "$GO_LOG"
required() { echo "{\\"Path\\": \\"$1\\", \\"Version\\": \\"v1.0.0\\"}"; }
case "$1 $2" in
"env GOMODCACHE") echo "$GO_CACHE" ;;
"env GOVERSION") echo go1.26.0 ;;
"mod edit") echo "{\\"Require\\": [$(required "own${PWD##*/}"), $(required example.com/All)]}" ;;
"mod download")
  case $4 in */All@*) path=example.com/!all ;; *) path=${4%@*} ;; esac
  archive=$GO_CACHE/cache/download/$path/@v/v1.0.0
  mkdir -p "${archive%/*}"
  echo archive > "$archive.zip"; echo sum > "$archive.ziphash"
  echo "{\\"Zip\\": \\"$archive.zip\\"}" ;;
"build "*)
  while [ "$1" != -o ]; do shift; done
  target=$2; shift 2
  sleep 0.05
  for package; do
    case $target in */) echo built > "$target${package##*/}" ;; *) echo built > "$target" ;; esac
  done ;;
esac
"""


class Machine:
    """A machine with nothing installed but a Go."""

    def __init__(self, root: Path, script: str = GO) -> None:
        for tool in ("sleep", "sh", "mkdir"):
            (root / tool).symlink_to(f"/bin/{tool}")
        (root / "go").write_text(script)
        (root / "go").chmod(0o755)
        self.cache, self.modules, self._log = root / "cache", root / "modules", root / "go.log"
        self.environment = {
            "HOME": str(root),
            "PATH": str(root),
            "XDG_CACHE_HOME": str(self.cache),
            "GO_LOG": str(self._log),
            "GO_CACHE": str(self.modules),
        }

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "lab", "binaries", *arguments]
        return subprocess.Popen(
            command,
            cwd=ROOT,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str) -> tuple[int, str, str]:
        with self.start(*arguments) as process:
            output, errors = process.communicate()
        return process.returncode, output, errors

    def calls(self, what: str = ": build ") -> list[str]:
        return [line for line in self._log.read_text().splitlines() if what in line]

    def fetched(self) -> list[str]:
        """The modules, each as often as it was fetched."""
        return [call.split()[-1] for call in self.calls(": mod download ")]

    def built(self) -> list[str]:
        """The packages, each as often as it was built."""
        return [
            package for call in self.calls() for package in call.partition(" -o ")[2].split()[1:]
        ]


def test_where_the_pinned_go_cannot_be_had_an_error_says_what_to_install(tmp_path: Path) -> None:
    """Where it can, it is installed: `make test-fresh` shows that."""
    machine = Machine(tmp_path, "#!/bin/sh\necho go1.19.8\n")
    machine.environment["PIP_NO_INDEX"] = "1"
    code, _, errors = machine.run()
    assert code == 1
    assert (
        "\nerror: Go could not be installed; install Go 1.21 or newer (https://go.dev/doc/install):\n"
        in errors
    )


def test_everything_missing_is_built_once_and_again_when_its_module_has_changed(
    tmp_path: Path,
) -> None:
    machine = Machine(tmp_path)
    code, output, errors = machine.run()
    assert code == 0, errors
    directory = machine.cache / "mpijob-elastic" / "lab" / "bin-v1.34.4"
    programs = [one.name for one in (*ALL, *COMPARED)]
    assert [line.split() for line in output.splitlines()] == [
        [name, str(directory / name)] for name in programs
    ]
    assert all((directory / name).is_file() for name in programs)
    assert sorted(machine.built()) == BUILT
    assert sum("k8s.io/kubernetes/cmd" in call for call in machine.calls()) == 1, (
        "one call for all of Kubernetes"
    )
    assert machine.run()[0] == 0
    assert sorted(machine.built()) == BUILT
    (directory / ".etcd.built-from").write_text("an older go.mod")
    machine.run()
    assert machine.built()[len(BUILT) :] == ["go.etcd.io/etcd/server/v3"]


def test_two_at_once_do_not_build_twice(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    with machine.start() as one, machine.start() as other:
        errors = one.communicate()[1] + other.communicate()[1]
    assert (one.returncode, other.returncode) == (0, 0), errors
    assert sorted(machine.built()) == BUILT


def test_a_failed_build_shows_the_complaint_and_leaves_no_program(tmp_path: Path) -> None:
    machine = Machine(tmp_path, GO.replace("sleep 0.05", 'echo "no space left" >&2; exit 1'))
    code, _, errors = machine.run()
    assert code == 1
    assert errors.rstrip().endswith("ended with 1:\nno space left")
    assert not list(machine.cache.rglob("etcd"))


def test_each_module_is_fetched_once_before_the_builds_that_need_it(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    code, _, errors = machine.run()
    assert code == 0, errors
    folders = {one.module for one in (*ALL, *COMPARED)}
    wanted = {"example.com/All@v1.0.0", *(f"own{folder}@v1.0.0" for folder in folders)}
    assert sorted({*machine.fetched()}) == sorted(wanted)
    lines = machine.calls("")
    for folder in folders:
        fetched = next(n for n, line in enumerate(lines) if f" own{folder}@" in line)
        built = next(n for n, line in enumerate(lines) if f"/{folder}: build " in line)
        assert fetched < built
    assert re.search(
        r"building .*: 1 of 9 programs built, \d of 6 modules, 0 MB$", errors, re.MULTILINE
    )


def test_what_go_has_is_not_fetched_again(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    for module in ("ownetcd", "example.com/!all"):
        there = machine.modules / "cache" / "download" / module / "@v"
        there.mkdir(parents=True)
        (there / "v1.0.0.ziphash").write_text("sum")
    assert machine.run()[0] == 0
    assert not {"ownetcd@v1.0.0", "example.com/All@v1.0.0"} & {*machine.fetched()}


def test_the_first_build_is_alone_and_the_longest_comes_next(tmp_path: Path) -> None:
    told = GO.replace("sleep 0.05", "sleep 0.3").replace(
        "  done ;;", '  done; echo "$PWD: ended build" >> "$GO_LOG" ;;'
    )
    machine = Machine(tmp_path, told)
    assert machine.run()[0] == 0
    lines = [one for one in machine.calls("") if ": build " in one or ": ended build" in one]
    assert [line.partition(": ")[2].split()[0] for line in lines[:2]] == ["build", "ended"]
    if len(os.sched_getaffinity(0)) > 1:
        assert [line.partition(": ")[2].split()[0] for line in lines[2:4]] == ["build", "build"]
    assert {"podexec"} == {line.partition(":")[0].rpartition("/")[2] for line in lines[:2]}
    assert "kubernetes" in {line.partition(":")[0].rpartition("/")[2] for line in lines[2:4]}


def test_a_module_that_cannot_be_had_ends_the_fetching_and_the_build_says_why(
    tmp_path: Path,
) -> None:
    """A machine without a network is not to wait for hundreds of them."""
    failing = GO.replace('"mod download")', '"mod download") sleep 0.2; echo "no host" >&2; exit 1')
    machine = Machine(tmp_path, failing.replace("sleep 0.05", 'echo "no such module" >&2; exit 1'))
    code, _, errors = machine.run()
    assert code == 1
    assert errors.rstrip().endswith("ended with 1:\nno such module")


def test_a_killed_run_leaves_what_the_next_one_needs_not_fetch(tmp_path: Path) -> None:
    machine = Machine(tmp_path, GO.replace("sleep 0.05", "sleep 2"))
    with machine.start() as killed:
        while not list(machine.modules.rglob("ownpodexec/@v/*.ziphash")):
            time.sleep(0.02)
        killed.kill()
    had = {one.parents[1].name.replace("!all", "All") for one in machine.modules.rglob("*.ziphash")}
    before = len(machine.fetched())
    assert machine.run()[0] == 0
    again = {call.partition("@")[0].rpartition("/")[2] for call in machine.fetched()[before:]}
    assert had
    assert not had & again


def test_sigterm_ends_the_build(tmp_path: Path) -> None:
    """It was waited for in silence, for minutes."""
    machine = Machine(tmp_path, GO.replace("sleep 0.05", "exec sleep 300"))
    with machine.start() as ended:
        while not list(machine.modules.rglob("*.ziphash")) or not machine.built():
            time.sleep(0.02)
        ended.terminate()
        assert ended.wait(60) == 128 + signal.SIGTERM
