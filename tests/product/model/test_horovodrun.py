"""A launcher's command is read as far as it is certain, and no further."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpijob_elastic.model import horovodrun
from mpijob_elastic.model.horovodrun import Launch

SCRIPT = "/etc/mpi/discover_hosts.sh"
WHOLE = Launch(program="horovodrun", np=2, min_np=1, max_np=4, discovery_script=SCRIPT)
LINE = f"horovodrun -np 2 --min-np 1 --max-np 4 --host-discovery-script {SCRIPT} python train.py"


@pytest.mark.parametrize(
    "command",
    [
        LINE.split(),
        ["/usr/local/bin/horovodrun", *LINE.split()[1:]],
        [
            "horovodrun",
            "--num-proc=2",
            "--min-num-proc=1",
            "--max-num-proc=4",
            f"--host-discovery-script={SCRIPT}",
            "x",
        ],
        ["horovodrun", "--verbose", "--gloo", "--log-level", "DEBUG", *LINE.split()[1:]],
        ["sh", "-c", LINE],
        ["/bin/bash", "-lc", f"set -x; cd /work && exec {LINE} 2>&1 | tee log"],
        [
            "bash",
            "-o",
            "pipefail",
            "-c",
            f"# horovodrun -np 9\nexport A=1\nA=b {LINE.replace('--max', chr(92) + chr(10) + '--max')}",
        ],
        ["sh", "-c", f"bash -c '{LINE}'"],
        ["env", "A=b", *LINE.split()],
        ["horovodrun", *LINE.split()[1:], "--max-np", "99"],
    ],
)
def test_the_limits_are_read(command: list[str]) -> None:
    assert horovodrun.parse(command) == WHOLE


def test_the_other_options() -> None:
    line = (
        "horovodrun --slots-per-host 4 --blacklist-cooldown-range 60 300 --reset-limit 9 --gloo-timeout-seconds 15 "
        "-np 8 python train.py"
    )
    found = Launch(program="horovodrun", np=8, reset_limit=9, cooldown=(60, 300), gloo_timeout=15)
    assert horovodrun.parse(line.split()) == found


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("horovodrun -np $N --min-np 2 python x", Launch(program="horovodrun", min_np=2, unread=True)),
        ("horovodrun --max-np=$(MAX) -np 2 python x", Launch(program="horovodrun", np=2, unread=True)),
        ("horovodrun $OPTIONS -np 2 python x", Launch(program="horovodrun", np=2, unread=True)),
        ("horovodrun -np many python x", Launch(program="horovodrun", unread=True)),
        ("horovodrun -np", Launch(program="horovodrun", unread=True)),
        ("horovodrun --host-discovery-script $S -np 2 x", Launch(program="horovodrun", np=2, unread=True)),
        ("horovodrun -np 2 python x --lr $LR", Launch(program="horovodrun", np=2)),
    ],
)
def test_what_is_only_known_when_it_runs_is_unread(command: str, expected: Launch) -> None:
    assert horovodrun.parse(command.split()) == expected


@pytest.mark.parametrize("program", ["mpirun", "/opt/openmpi/bin/mpirun", "mpiexec"])
def test_mpirun_is_recognised(program: str) -> None:
    found = horovodrun.parse([program, "-np", "2", "python", "train.py"])
    assert found is not None
    assert found.program in horovodrun.MPIRUN


@pytest.mark.parametrize(
    "command",
    [
        [],
        ["python", "train.py"],
        ["/start.sh"],
        ["sh", "-c"],
        ["sh", "-c", "echo horovodrun -np 2"],
        ["sh", "-c", "'horovodrun -np 2"],
        ["sh", "train.sh", "horovodrun"],
        ["sh", "-c", "x" * 10**6],
        ["sh", "-c", "a;" * 5_000 + LINE],
        ["sh", "-c", "echo 'horovodrun'; ls # horovodrun -np 2"],
    ],
)
def test_what_cannot_be_read_is_none(command: list[str]) -> None:
    assert horovodrun.parse(command) is None


@pytest.mark.parametrize(
    "script",
    [
        f"# don't\n{LINE}",
        f"ls # then \n{LINE}",
        f"echo a#b; {LINE}",
        f"echo \"a; b\" 'c; d' \\; && {LINE}",
        LINE.replace("--min-np 1", "'--min-np' \"1\""),
        f"if true; then\n{LINE}\nfi".replace("then\n", ":\n"),
    ],
)
def test_a_script_is_split_as_a_shell_does(script: str) -> None:
    assert horovodrun.parse(["sh", "-c", script]) == WHOLE


def test_quotations_are_taken_off() -> None:
    found = horovodrun.parse(["sh", "-c", """horovodrun --host-discovery-script "/a \\"b\\" 'c'"'/d'\\ e -np 2"""])
    assert found == Launch(program="horovodrun", np=2, discovery_script="/a \"b\" 'c'/d e")


def test_only_the_first_thousand_words_are_read() -> None:
    assert horovodrun.parse(["horovodrun", *["-v"] * 500, "-np", "2"]) == Launch(program="horovodrun", np=2)
    assert horovodrun.parse(["horovodrun", *["-v"] * 500_000, "-np", "2"]) == Launch(program="horovodrun")


def test_training_waits_below_np_unless_told_otherwise() -> None:
    assert Launch(program="horovodrun", np=4).effective_min_np == 4
    assert Launch(program="horovodrun", np=4, min_np=2).effective_min_np == 2
    assert Launch(program="horovodrun", np=4, unread=True).effective_min_np is None


WORDS = st.sampled_from(
    ["sh", "-c", "horovodrun", "-np", "--min-np=", "'", '"', ";", "\n", "#", "$A", "2", "a\\", "(", "9" * 20]
)


@given(st.lists(WORDS | st.text(max_size=12), max_size=12))
def test_nothing_makes_it_fail(words: list[str]) -> None:
    for command in (words, ["sh", "-c", " ".join(words)]):
        found = horovodrun.parse(command)
        assert found is None or found.program == "horovodrun" or found.program in horovodrun.MPIRUN
