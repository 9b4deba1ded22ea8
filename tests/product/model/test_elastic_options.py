"""The options of elastic.sh are read as the script itself reads them."""

import re
from pathlib import Path

import pytest

from mpijob_elastic import model
from mpijob_elastic.model import elastic_options
from mpijob_elastic.model.elastic_options import OPTIONS, ElasticOptions

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
