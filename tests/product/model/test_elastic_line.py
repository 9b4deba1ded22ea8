"""The line that a user types to start a job's mpirun by elastic.sh."""

import json

import pytest
import yaml

from lab.operator import objects
from mpijob_elastic import capabilities
from mpijob_elastic.model import elastic_line
from tests.counted import calls

HEAD = ["/etc/mpi/elastic.sh", "--", "mpirun", "-np", "{np}", "-machinefile", "{hostfile}"]
# A command, and what follows the head in the line.
LINES = {
    "bare": (["mpirun", "python", "train.py"], ["python", "train.py"]),
    "its number": (["mpirun", "-np", "4", "./a", "-np", "1"], ["./a", "-np", "1"]),
    "its hostfile": (
        ["mpirun", "--hostfile", "/etc/mpi/hostfile", "-n", "2", "./a"],
        ["./a"],
    ),
    "its hosts": (["mpirun", "-H", "a:2,b:2", "--host=c", "./a"], ["./a"]),
    "other options": (
        ["mpirun", "--allow-run-as-root", "--mca", "btl", "^openib", "-c", "2", "./a", "yes"],
        ["--allow-run-as-root", "--mca", "btl", "^openib", "./a", "yes"],
    ),
    "words that YAML would read otherwise": (
        ["mpirun", "./a", "1", "1e3", "no", "a: b", "[x", "", "#", '"', "ä", "{np}"],
        ["./a", "1", "1e3", "no", "a: b", "[x", "", "#", '"', "ä", "{np}"],
    ),
}


@pytest.mark.parametrize(("command", "rest"), LINES.values(), ids=LINES)
def test_yaml_reads_the_line_as_the_command_that_is_meant(
    command: list[str], rest: list[str]
) -> None:
    line = elastic_line.field(command, longest=500)
    assert yaml.safe_load(line) == {"command": [*HEAD, *rest]}


@pytest.mark.parametrize("command", [command for command, _ in LINES.values()], ids=LINES)
def test_the_line_makes_a_job_elastic_without_a_word_that_is_wrong(command: list[str]) -> None:
    made = yaml.safe_load(elastic_line.field(command, longest=500))
    facts = capabilities.read(json.dumps(objects.mpi_job(**made)).encode())
    assert facts.elastic
    assert facts.names_elastic
    assert facts.launch is not None
    assert facts.launch.refusal == ""


@pytest.mark.parametrize(
    "command",
    [
        [],
        ["sh", "-c", "mpirun ./a"],
        ["./train.sh"],
        ["mpirun", "--own-option", "./a"],
        ["horovodrun", "-np", "2", "./a"],
    ],
)
def test_what_is_no_plain_mpirun_gets_the_form_of_any(command: list[str]) -> None:
    line = elastic_line.field(command, longest=500)
    assert yaml.safe_load(line) == {"command": [*HEAD, "..."]}


def test_the_program_keeps_its_folder_and_its_name() -> None:
    line = elastic_line.field(["/opt/mpich/bin/mpiexec", "-n", "2", "./a"], longest=500)
    assert yaml.safe_load(line)["command"][2] == "/opt/mpich/bin/mpiexec"


@pytest.mark.parametrize("longest", [10, 90, 100, 120, 200])
def test_a_line_that_is_too_long_says_that_there_is_more(longest: int) -> None:
    command = ["mpirun", "./a", *(f"--argument-{number}" for number in range(50))]
    line = elastic_line.field(command, longest=longest)
    assert len(line) <= max(longest, len("command: [/etc/mpi/elastic.sh, ...]"))
    assert line.endswith(", ...]")


@pytest.mark.parametrize("longest", range(100, 160))
def test_no_word_is_left_out_that_has_room(longest: int) -> None:
    words = [f"word{number}" for number in range(12)]
    lines = [elastic_line.in_yaml(words, longest=10_000)]
    lines += [
        elastic_line.in_yaml([*words[:count], "..."], longest=10_000) for count in range(1, 12)
    ]
    assert elastic_line.in_yaml(words, longest=longest) == max(
        (line for line in lines if len(line) <= longest), key=len
    )


def test_the_words_that_are_left_out_cost_nothing() -> None:
    """A command may have 100,000 words, and its job waits for the answer."""

    def cost_of(count: int) -> int:
        with calls() as counted:
            elastic_line.in_yaml(["train", *["word"] * count], longest=300)
        return sum(counted.values())

    assert cost_of(10_000) == cost_of(100)
