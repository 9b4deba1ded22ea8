"""Programs that work for minutes."""

import pytest

from lab.errors import LabError
from lab.images.running import run, telling


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("I: installing remaining packages inside the chroot...\n", "installing remaining packages inside the chroot"),
        ("  [ 45%] Building CXX object CMakeFiles/horovod.dir/x.o\n", "[ 45%]"),
        ("Unpacking python3-torch (1.13.1+dfsg-4) ...\n", None),
    ],
)
def test_lines_that_tell_of_progress(line: str, told: str | None) -> None:
    assert telling(line) == told


def test_progress_is_passed_on_with_the_environment() -> None:
    said: list[str] = []
    run(["sh", "-c", 'echo "I: $WHAT packages..."; echo noise'], say=said.append, environment={"WHAT": "downloading"})
    assert said == ["downloading packages"]


def test_what_is_said_again_is_passed_on_once() -> None:
    said: list[str] = []
    run(["printf", "[ 45%%] one\n[ 45%%] two\nnoise\n[ 46%%] three\n"], say=said.append)
    assert said == ["[ 45%]", "[ 46%]"]


def test_a_failure_shows_the_end_of_the_output() -> None:
    with pytest.raises(LabError, match=r"`sh` ended with 3:\n(?s:.*)20$"):
        run(["sh", "-c", "seq 20; exit 3"], say=lambda _: None)


def test_an_interrupted_program_is_asked_to_end() -> None:
    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    script = 'trap "exit 0" TERM; echo "I: running it"; while :; do sleep 0.05; done'
    with pytest.raises(KeyboardInterrupt):
        run(["sh", "-c", script], say=interrupt)
