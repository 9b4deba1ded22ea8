"""The options of elastic.sh are read as the script itself reads them."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from mpijob_elastic import model
from mpijob_elastic.model import elastic_options
from mpijob_elastic.model.elastic_options import OPTIONS, ElasticOptions
from tests.driver.test_options import REFUSED

SCRIPT = Path(model.__path__[0]) / "elastic.sh"
MPIRUN = ("mpirun", "-np", "{np}", "python", "train.py")


def test_the_options_are_those_of_the_script() -> None:
    taken = re.findall(r"^    (--[a-z-]+)\)", SCRIPT.read_text(), re.MULTILINE)
    assert sorted(taken) == sorted(OPTIONS)


ALL = {
    "np": "4",
    "min_np": "2",
    "max_np": "8",
    "signal": "USR1",
    "grace": "50",
    "gather": "10",
    "retries": "3",
    "implementation": "mpich",
}
FIELDS = {field: option for option, field in OPTIONS.items()}
APART = [word for field, value in ALL.items() for word in (FIELDS[field], value)]
TOGETHER = [f"{FIELDS[field]}={value}" for field, value in ALL.items()]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], ElasticOptions()),
        (["--", *MPIRUN], ElasticOptions(command=MPIRUN)),
        ([*APART, "--", *MPIRUN], ElasticOptions(values=ALL, command=MPIRUN)),
        ([*TOGETHER, "--", *MPIRUN], ElasticOptions(values=ALL, command=MPIRUN)),
        (["--np", "2", "--np", "3"], ElasticOptions(values={"np": "3"})),
        (["--np"], ElasticOptions(values={"np": ""})),
        (["--min-np", "--", "--", "x"], ElasticOptions(values={"min_np": "--"}, command=("x",))),
        (["--help", "--np", "2"], ElasticOptions(only_tells=True)),
        (["--nproc", "2", "--", "x"], ElasticOptions(refused="--nproc")),
        (["mpirun", "-np", "2"], ElasticOptions(refused="mpirun")),
        (
            ["$OPTIONS", "--np", "2", "--", "x"],
            ElasticOptions(values={"np": "2"}, command=("x",), unread=True),
        ),
        (["--np", "$N", "--", "x"], ElasticOptions(values={"np": "$N"}, command=("x",))),
    ],
)
def test_options_are_read(words: list[str], expected: ElasticOptions) -> None:
    assert elastic_options.read(words) == expected


TAKEN = {
    "nothing but a command": ["--", *MPIRUN],
    "all options": [*APART, "--", *MPIRUN],
    "zeros": ["--gather", "0", "--retries", "0", "--", *MPIRUN],
    "SIG": ["--signal", "SIGUSR2", "--", *MPIRUN],
    "equal bounds": ["--np", "2", "--min-np", "2", "--max-np", "2", "--", *MPIRUN],
    "a command of its own": ["--", "./run.sh"],
    "a form that is told": ["--implementation", "mpich", "--", "./run.sh", "{hostfile}"],
    "a form that mpirun tells": ["--", "mpirun", "--hostfile", "{hostfile}", "./a"],
    "Intel MPI": ["--implementation=intel-mpi", "--", "mpirun", "-machinefile", "{hostfile}", "a"],
    "help after wrong words": ["--np", "x", "--help"],
}
MORE_REFUSED = {
    "no value at the end": ["--np", "2", "--min-np"],
    "Intel MPI without a file": ["--implementation", "intel-mpi", "--", "mpirun", "./a"],
    "two dashes are a value": ["--grace", "--", "mpirun"],
    "a file below the operator's": ["--", "mpirun", "-f", "/etc/mpi/hostfile.mine", "./a"],
    "1 is the least": ["--max-np", "0", "--", "./a"],
}


@pytest.mark.parametrize("words", TAKEN.values(), ids=TAKEN)
def test_right_words_have_no_refusal(words: list[str]) -> None:
    assert elastic_options.refusal(elastic_options.read(words)) == ""


@pytest.mark.parametrize(("words", "answer"), REFUSED.values(), ids=REFUSED)
def test_a_refusal_says_what_the_script_says(words: list[str], answer: str) -> None:
    refusal = elastic_options.refusal(elastic_options.read(words))
    # The script knows that a word is missing at the end.
    assert answer.partition(" a value")[0] in refusal


@pytest.mark.parametrize(
    "words",
    [*(words for words, _ in REFUSED.values()), *MORE_REFUSED.values()],
    ids=[*REFUSED, *MORE_REFUSED],
)
def test_the_script_refuses_the_same_words(words: list[str]) -> None:
    assert elastic_options.refusal(elastic_options.read(words)) != ""
    done = subprocess.run(["sh", SCRIPT, *words], capture_output=True, check=False, timeout=60)
    assert done.returncode == 2


@pytest.mark.parametrize("words", list(TAKEN.values())[:-1], ids=list(TAKEN)[:-1])
def test_the_script_takes_the_same_words(words: list[str], tmp_path: Path) -> None:
    """The script then asks mpirun for its name, and finds no folder for its files."""
    (tmp_path / "file").touch()
    (tmp_path / "mpirun").write_text("#!/bin/sh\necho HYDRA\n")
    (tmp_path / "mpirun").chmod(0o755)
    variables = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "MPIJOB_ELASTIC_FOLDER": f"{tmp_path}/file/run",
        "TMPDIR": f"{tmp_path}/file",
    }
    done = subprocess.run(
        ["sh", SCRIPT, *words],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "mount an emptyDir" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["--np", "$N", "--", *MPIRUN],
        ["--np", "9", "--max-np", "$N", "--", *MPIRUN],
        ["--signal", "$S", "--", *MPIRUN],
        ["$OPTIONS"],
        ["--implementation", "$I", "--", "./run.sh", "{hostfile}"],
        ["--", "$MPIRUN", "{hostfile}"],
    ],
)
def test_nothing_is_said_of_what_only_a_shell_knows(words: list[str]) -> None:
    assert elastic_options.refusal(elastic_options.read(words)) == ""
