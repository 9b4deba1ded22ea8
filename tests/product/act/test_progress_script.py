"""What the look into a worker tells of its progress: the script in real shells, in a container of its own."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from mpijob_elastic.act import worker_scripts
from mpijob_elastic.cli.jobs import exec_probes
from mpijob_elastic.model.progress import LONGEST, PATH, VARIABLE, parse
from tests.builders import NOW
from tests.product.act.containers import container, needed

# As `exec` starts them: looks know one another by this name.
AS_SH = 'exec -a /bin/sh "$@"'
SHELLS = {"dash": ["dash"], "bash": ["bash"], "busybox": ["busybox"]}
NO_VARIABLES: Mapping[str, str] = {}
pytestmark = needed


class Worker:
    """A worker with the files of a folder, and a shell in which looks run."""

    def __init__(self, inside: list[str], shell: str, folder: Path) -> None:
        self.inside, self.shell = inside, SHELLS[shell]
        self.file = folder / "line"

    def command(self, script: str) -> list[str]:
        return [*self.inside, "bash", "-c", AS_SH, "bash", *self.shell, "-c", script]

    def look(
        self,
        script: str = worker_scripts.SCRIPT,
        *,
        variables: Mapping[str, str] = NO_VARIABLES,
        folder: Path | None = None,
    ) -> str:
        """Return what a look prints; folder: the only one with programs."""
        environment = {"PATH": os.environ["PATH"], VARIABLE: f"{self.file}", **variables}
        command = self.command(script)
        if folder is not None:
            command[len(self.inside) :] = [
                *("env", f"PATH={folder}", "/bin/bash", "-c", AS_SH, "bash"),
                *(shutil.which(self.shell[0]) or "", "-c", script),
            ]
        done = subprocess.run(
            command,
            env=environment,
            cwd=self.file.parent,
            capture_output=True,
            start_new_session=True,
            timeout=60,
            check=True,
        )
        return done.stdout.decode(errors="replace")

    @contextmanager
    def runs(self, *command: str) -> Iterator[str]:
        """Run a process until the end of the block; yield its id and start, as a line has them."""
        words = ["sh", "-c", 'echo "$$"; exec "$@"', "sh", *command]
        with subprocess.Popen(
            [*self.inside, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        ) as process:
            assert process.stdout
            pid = process.stdout.readline().decode().strip()
            try:
                while "exec " in self._read(f"/proc/{pid}/cmdline"):
                    pass  # before that it is not what it is to be
                stat = self._read(f"/proc/{pid}/stat")
                yield f"{pid} {stat.rpartition(')')[2].split()[19]}"
            finally:
                subprocess.run([*self.inside, "kill", "-KILL", pid], check=True)

    @contextmanager
    def looks_long(self, script: str) -> Iterator[None]:
        """Run a look that has given itself its name, and waits."""
        look = self.command(script)[len(self.inside) :]
        with self.runs(*look) as process:
            pid = process.split()[0]
            while self._read(f"/proc/{pid}/comm").strip() != worker_scripts.LOOK:
                pass  # before that it counts as a process of the worker
            yield

    def _read(self, path: str) -> str:
        command = [*self.inside, "cat", path]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture(params=[shell for shell in SHELLS if shutil.which(shell)])
def inside(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Worker]:
    with container() as within:
        yield Worker(within, request.param, tmp_path)


def line_of(process: str) -> str:
    return f"v1 {process} 9 96 3 {NOW:.3f} 10.0 5.0 {NOW - 50:.3f} {NOW - 50:.3f} 4.000 0.000 0 1.000 0"


def test_a_line_counts_as_alive_while_its_process_runs(inside: Worker) -> None:
    assert inside.look() == "idle\n"
    with inside.runs("tail", "-f", "/dev/null") as process:
        assert inside.look() == "busy\n"
        line = line_of(process)
        inside.file.write_text(f"{line}\n")
        answer = inside.look()
        assert answer == f"busy\nalive {line}\n"
        found = parse(answer.partition("\n")[2].strip(), asked_at=NOW)
        assert found
        assert found.alive
    assert inside.look() == f"idle\nended {line}\n"


def test_another_process_with_the_same_number_has_another_start(inside: Worker) -> None:
    with inside.runs("tail", "-f", "/dev/null") as process:
        pid, _, ticks = process.partition(" ")
        line = line_of(f"{pid} {int(ticks) - 1}")
        inside.file.write_text(f"{line}\n")
        assert inside.look() == f"busy\nended {line}\n"


def test_a_variable_of_the_worker_changes_no_answer(inside: Worker) -> None:
    others = dict.fromkeys(("answer", "line", "state", "stat", "command", "pid", "process"), "busy")
    assert inside.look(variables=others) == "idle\n"
    inside.file.write_text(f"{line_of('7 8')}\n")
    assert inside.look(variables=others) == f"idle\nended {line_of('7 8')}\n"


def _is_missing(file: Path) -> None:
    assert not file.exists()


def _is_a_directory(file: Path) -> None:
    file.mkdir()


def _is_a_pipe(file: Path) -> None:
    os.mkfifo(file)


def _is_a_device(file: Path) -> None:
    file.symlink_to("/dev/zero")


@pytest.mark.timeout(60)
@pytest.mark.parametrize("happens", [_is_missing, _is_a_directory, _is_a_pipe, _is_a_device])
def test_what_is_no_file_has_no_line(inside: Worker, happens: Callable[[Path], None]) -> None:
    happens(inside.file)
    assert inside.look() == "idle\n"


def test_the_path_without_the_variable(inside: Worker) -> None:
    inside.file.write_text(f"{line_of('7 8')}\n")
    file = Path(PATH)
    expected = "idle\n"
    if file.is_file():
        expected += f"ended {file.read_text()}"
    assert inside.look(variables={VARIABLE: ""}) == expected


HOSTILE = {
    "commands": "v1 7 8 $(touch ran) `touch ran` ; touch ran & touch ran\n",
    "globs": "v1 7 8 * /* lin? [a-z]* ~ {a,b}\n",
    "quotes": "v1 7 8 \" ' \\ \\n %s %n $0 ${20} $$\n",
    "commands in the place of the numbers": "v1 $(touch ran) $(touch ran)\n",
    "paths in the place of the process": "v1 ../../etc/passwd 8\n",
    "words": f"v1 7 8 {'x ' * 13}\n",
    "no process": "v1\n",
    "options": "-e -n v1\n",
    "lines": "busy\n7 8 9\nidle\n",
    "long numbers": f"v1 {'9' * 90} {'9' * 90} 1\n",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_nothing_in_the_line_is_carried_out_or_expanded(inside: Worker, text: str) -> None:
    inside.file.write_text(text)
    first, _, more = inside.look().partition("\n")
    assert first == "idle"
    assert more in ("", f"ended {text.strip()}\n", f"ended {text.rstrip(chr(10))}\n")
    assert parse(more.strip(), asked_at=NOW) is None
    assert [path.name for path in inside.file.parent.iterdir()] == ["line"]


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"v1 7 8 " + b"9" * 10**8, id="100 MB without an end of the line"),
        pytest.param(b"v1 7 8 \n" * 10**6, id="a million lines"),
        pytest.param(bytes(range(256)) * 9, id="any bytes"),
        pytest.param(b"v1 7 8 " + b"\xff\x00\xfe\x1b[2J" * 90, id="bytes that are no text"),
    ],
)
def test_only_the_beginning_of_a_file_is_read(inside: Worker, content: bytes) -> None:
    inside.file.write_bytes(content)
    began = time.monotonic()
    first, _, more = inside.look().partition("\n")
    assert time.monotonic() - began < 30
    assert first == "idle"
    assert len(more) <= LONGEST + len("ended \n")
    assert parse(more.strip(), asked_at=NOW) is None


def test_without_head_there_is_no_line(inside: Worker, tmp_path: Path) -> None:
    inside.file.write_text(f"{line_of('7 8')}\n")
    if inside.shell == ["busybox"]:
        pytest.skip("busybox has a head of its own")
    (tmp_path / "bin").mkdir()
    assert inside.look(folder=tmp_path / "bin") == "idle\n"


@pytest.mark.parametrize(
    "script",
    [
        # A look that takes long: looks know one another by their first line.
        f"{worker_scripts.SCRIPT.splitlines()[0]}\nread -r word\n",
        f"{exec_probes.SCRIPT.splitlines()[0]}\nread -r word\n",
    ],
    ids=["controller", "command line"],
)
def test_looks_at_the_same_time_do_not_count_one_another(inside: Worker, script: str) -> None:
    with inside.looks_long(script), inside.looks_long(script):
        assert inside.look() == "idle\n"
        assert "sh" not in inside.look(exec_probes.SCRIPT).split()


def test_a_look_does_not_count_the_program_of_another_look(inside: Worker) -> None:
    os.mkfifo(inside.file)
    with inside.runs("head", "-c", f"{LONGEST}", f"{inside.file}"):
        assert inside.look() == "idle\n"
        assert "head" not in inside.look(exec_probes.SCRIPT).split()
