"""Building, with a program in Go's place that only writes down what it was asked for.

Other releases of Kubernetes are built by `make matrix`.
"""

import subprocess
import sys
from pathlib import Path

from lab.programs import ALL, COMPARED

ROOT = Path(__file__).parents[3]
BUILT = sorted(program.package for program in (*ALL, *COMPARED))
# Answers as Go does as far as it is asked; each build takes long enough for another process to come
# in between.
GO = """#!/bin/sh
echo "$PWD: $*" >> "$GO_LOG"
case $1 in
env) echo go1.26.0 ;;
build)
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
        for tool in ("sleep", "sh"):
            (root / tool).symlink_to(f"/bin/{tool}")
        (root / "go").write_text(script)
        (root / "go").chmod(0o755)
        self.cache, self._log = root / "cache", root / "go.log"
        self.environment = {
            "HOME": str(root),
            "PATH": str(root),
            "XDG_CACHE_HOME": str(self.cache),
            "GO_LOG": str(self._log),
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

    def calls(self) -> list[str]:
        return [line for line in self._log.read_text().splitlines() if ": build " in line]

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
