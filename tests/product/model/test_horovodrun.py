"""A launcher's command is read as far as it is certain; kubexec.sh is run here as a launcher runs it."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeGuard, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.operator import objects
from mpijob_elastic import names
from mpijob_elastic.model import kubexec, launch_command
from mpijob_elastic.model.bounds import LONGEST_KUBEXEC
from mpijob_elastic.model.launch_command import Launch
from tests.builders import NASTY_JOBS

T = TypeVar("T")
SCRIPT = "/etc/mpi/discover_hosts.sh"
WHOLE = Launch(program="horovodrun", np=2, min_np=1, max_np=4, discovery_script=SCRIPT)
LINE = f"horovodrun -np 2 --min-np 1 --max-np 4 --host-discovery-script {SCRIPT} python train.py"


WORDS_OF_IT = LINE.split()
WITH_EQUALS = (
    f"horovodrun --num-proc=2 --min-num-proc=1 --max-num-proc=4 --host-discovery-script={SCRIPT} x"
)
CONTINUED = (
    f"# horovodrun -np 9\nexport A=1\nA=b {LINE.replace('--max', chr(92) + chr(10) + '--max')}"
)


@pytest.mark.parametrize(
    "command",
    [
        ["/usr/local/bin/horovodrun", *WORDS_OF_IT[1:]],
        WITH_EQUALS.split(),
        ["horovodrun", "--verbose", "--gloo", "--log-level", "DEBUG", *WORDS_OF_IT[1:]],
        ["sh", "-c", LINE],
        ["/bin/bash", "-lc", f"set -x; cd /work && exec {LINE} 2>&1 | tee log"],
        ["bash", "-o", "pipefail", "-c", CONTINUED],
        ["sh", "-c", f"bash -c '{LINE}'"],
        ["env", "A=b", *WORDS_OF_IT],
        [*WORDS_OF_IT, "--max-np", "99"],
    ],
)
def test_the_limits_are_read(command: list[str]) -> None:
    assert launch_command.parse(command) == WHOLE


OTHERS = "--slots-per-host 4 --blacklist-cooldown-range 60 300 --reset-limit 9 --gloo-timeout-seconds 15 -np 8"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            f"{OTHERS} python x",
            {"np": 8, "reset_limit": 9, "cooldown": (60, 300), "gloo_timeout": 15},
        ),
        # What is only known when it runs is unread.
        ("-np $N --min-np 2 python x", {"min_np": 2, "computed": {"np"}}),
        ("--max-np=$(MAX) -np 2 python x", {"np": 2, "computed": {"max_np"}}),
        ("$OPTIONS -np 2 python x", {"np": 2, "unread": True}),
        ("-np many python x", {"computed": {"np"}}),
        ("-np", {"computed": {"np"}, "unread": True}),
        ("--host-discovery-script $S -np 2 x", {"np": 2, "computed": {"discovery_script"}}),
        ("-np 2 python x --lr $LR", {"np": 2}),
    ],
)
def test_the_other_options_and_what_is_only_known_later(
    options: str, expected: dict[str, Any]
) -> None:
    assert launch_command.parse(["horovodrun", *options.split()]) == Launch(
        program="horovodrun", **expected
    )


@pytest.mark.parametrize("program", ["/opt/openmpi/bin/mpirun", "mpiexec"])
def test_mpirun_is_recognised(program: str) -> None:
    found = launch_command.parse([program, "-np", "2", "python", "train.py"])
    assert found.program in launch_command.MPIRUN


@pytest.mark.parametrize(
    "command",
    [
        [],
        ["python", "train.py"],
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
    assert launch_command.parse(command) is None


@pytest.mark.parametrize(
    "script",
    [
        f"# don't\n{LINE}",
        f"echo a#b; {LINE}",
        f"echo \"a; b\" 'c; d' \\; && {LINE}",
        LINE.replace("--min-np 1", "'--min-np' \"1\""),
        f"if true; then\n{LINE}\nfi".replace("then\n", ":\n"),
    ],
)
def test_a_script_is_split_as_a_shell_does(script: str) -> None:
    assert launch_command.parse(["sh", "-c", script]) == WHOLE


def test_quotations_are_taken_off() -> None:
    found = launch_command.parse(
        ["sh", "-c", """horovodrun --host-discovery-script "/a \\"b\\" 'c'"'/d'\\ e -np 2"""]
    )
    assert found == Launch(program="horovodrun", np=2, discovery_script="/a \"b\" 'c'/d e")


def test_only_the_first_thousand_words_are_read() -> None:
    assert launch_command.parse(["horovodrun", *["--gloo"] * 500, "-np", "2"]) == Launch(
        program="horovodrun", np=2
    )
    assert launch_command.parse(["horovodrun", *["--gloo"] * 500_000, "-np", "2"]) == Launch(
        program="horovodrun"
    )


@pytest.mark.parametrize(
    ("facts", "least"),
    [
        ({}, 4),
        ({"min_np": 2}, 2),
        ({"unread": True}, None),
        ({"computed": frozenset({"min_np"})}, None),
        ({"computed": frozenset({"max_np"})}, 4),
        ({"min_np": 2, "unread": True}, 2),
    ],
)
def test_training_waits_below_np_unless_told_otherwise(
    facts: dict[str, Any], least: int | None
) -> None:
    assert Launch(program="horovodrun", np=4, **facts).effective_min_np == least


WORDS = st.sampled_from(
    [*"'\";\n#2(", "sh", "-c", "horovodrun", "-np", "--min-np=", "$A", "a\\", "9" * 20]
)


@given(st.lists(WORDS | st.text(max_size=12), max_size=12))
def test_nothing_makes_it_fail(words: list[str]) -> None:
    for command in (words, ["sh", "-c", " ".join(words)]):
        found = launch_command.parse(command)
        assert (
            found is None or found.program == "horovodrun" or found.program in launch_command.MPIRUN
        )


OPERATORS = (
    '#!/bin/sh\nset -x\nPOD_NAME=$1\nshift\n/opt/kube/kubectl exec ${POD_NAME} -- /bin/sh -c "$*"'
)
WITH_MAIN = OPERATORS.replace("${POD_NAME} --", "${POD_NAME} --container main-1 --")
SHELLS = [
    shell for shell in ("/bin/sh", "/bin/dash", "/bin/bash", "/bin/busybox") if Path(shell).exists()
]


WRITTEN = [
    objects.sample(sample)[f"ConfigMap/{job}-config"]["data"]["kubexec.sh"]
    for sample, job in (("two-workers", "scale"), ("main-container", "side"))
]


@pytest.mark.parametrize("script", [*WRITTEN, OPERATORS, WITH_MAIN])
def test_a_script_that_the_operator_wrote_is_edited_once(script: str) -> None:
    edited = kubexec.mapped(script)
    assert edited != script
    assert kubexec.mapped(edited) == edited
    assert (kubexec.is_mapped(script), kubexec.is_mapped(edited)) == (False, True)
    assert kubexec.unmapped(edited or "") == script == kubexec.unmapped(script)


@pytest.mark.parametrize(
    "script",
    [
        None,
        OPERATORS + "\n",
        OPERATORS.replace("set -x\n", ""),
        OPERATORS.replace("/opt/kube/kubectl", "kubectl"),
        OPERATORS.replace("${POD_NAME} --", "${POD_NAME} --container $(reboot) --"),
        OPERATORS.replace("shift\n", "shift\necho $POD_NAME\n"),
        OPERATORS.replace("POD_NAME=$1\n", "POD_NAME=$1\n" + 2 * kubexec.MAPPING),
        OPERATORS.replace("shift\n", "shift\n" + kubexec.MAPPING),
        OPERATORS.replace("/opt/kube", "exec /opt/kube"),
    ],
)
def test_what_somebody_else_wrote_is_left_alone(script: str | None) -> None:
    assert kubexec.mapped(script) is None
    assert not kubexec.is_mapped(script)
    assert script is None or kubexec.unmapped(script) == script


def reached(script: str, host: str, *words: str, program: str, tmp_path: Path) -> list[str]:
    """Return the arguments with which the script calls kubectl, a word a line; no other program can be found."""
    kubectl = tmp_path / "kubectl"
    kubectl.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    kubectl.chmod(0o755)
    here = script.replace("/opt/kube/kubectl", str(kubectl))
    command = [program, "sh"] if program.endswith("busybox") else [program]
    command += ["-c", here, "kubexec.sh", host, *words]
    return subprocess.check_output(command, env={"PATH": ""}, text=True).splitlines()


@pytest.mark.parametrize("program", SHELLS)
@pytest.mark.parametrize("job", [*NASTY_JOBS, "a.r5", "x.r5-worker-0.r7", "r1"])
def test_every_host_name_leads_to_its_pod(job: str, program: str, tmp_path: Path) -> None:
    edited = kubexec.mapped(WITH_MAIN) or ""
    for index, incarnation in ((0, 0), (3, 1), (12, 0), (5, 20)):
        pod = names.worker(job, index)
        host = names.host(pod, incarnation)
        called = reached(edited, host, "echo", "a b", "$HOME", program=program, tmp_path=tmp_path)
        assert called == [
            "exec",
            pod,
            "--container",
            "main-1",
            "--",
            "/bin/sh",
            "-c",
            "echo a b $HOME",
        ]
        assert names.pod_of(host) == pod


def given_up(script: str, *, program: str, tmp_path: Path) -> bool:
    """Tell whether kubectl ends when horovodrun gives up.

    [horovod] horovodrun starts the script by a shell, and ends the children of that shell, and then the
    shell (runner/common/util/safe_shell_exec.py, terminate_executor_shell_and_children).
    """
    pid, kubectl, file = tmp_path / "pid", tmp_path / "kubectl", tmp_path / "kubexec.sh"
    kubectl.write_text(f"#!/bin/sh\necho $$ > {pid}.new\nmv {pid}.new {pid}\nexec sleep 60\n")
    words = [program, "sh"] if program.endswith("busybox") else [program]
    text = script.replace("#!/bin/sh", f"#!{' '.join(words)}")
    file.write_text(text.replace("/opt/kube/kubectl", str(kubectl)))
    kubectl.chmod(0o755)
    file.chmod(0o755)
    command = [*words, "-c", f"{file} j-worker-0 true"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as shell:
        holds = _soon(lambda: int(pid.read_text()) if pid.exists() else None)
        for child in _children(shell.pid):
            os.kill(child, signal.SIGTERM)
        _soon(lambda: not _children(shell.pid) or None, patience=0.5)
        shell.kill()
    is_over = _soon(lambda: not _runs(holds) or None, patience=1.0)
    if _runs(holds):
        os.kill(holds, signal.SIGKILL)
    return bool(is_over)


def _children(pid: int) -> list[int]:
    try:
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def _runs(pid: int | None) -> TypeGuard[int]:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def _soon(look: Callable[[], T | None], *, patience: float = 5.0) -> T | None:
    deadline = time.monotonic() + patience
    while (found := look()) is None and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


@pytest.mark.parametrize("program", SHELLS)
def test_kubectl_ends_when_horovodrun_gives_up(program: str, tmp_path: Path) -> None:
    assert given_up(kubexec.mapped(OPERATORS) or "", program=program, tmp_path=tmp_path)


@pytest.mark.skipif("/bin/dash" not in SHELLS, reason="dash is not there")
def test_where_the_shell_is_dash_the_operators_script_leaves_kubectl_running(
    tmp_path: Path,
) -> None:
    assert not given_up(OPERATORS, program="/bin/dash", tmp_path=tmp_path)


def test_an_edit_of_an_earlier_version_is_completed() -> None:
    earlier = OPERATORS.replace("POD_NAME=$1\n", "POD_NAME=$1\n" + kubexec.MAPPING)
    assert kubexec.is_mapped(earlier)
    assert kubexec.mapped(earlier) == kubexec.mapped(OPERATORS)
    assert kubexec.unmapped(earlier) == OPERATORS


def test_without_the_edit_a_numbered_name_would_reach_nobody(tmp_path: Path) -> None:
    assert (
        reached(OPERATORS, "j-worker-1.r1", "true", program="/bin/sh", tmp_path=tmp_path)[1]
        == "j-worker-1.r1"
    )


@pytest.mark.parametrize(
    ("script", "container"),
    [
        (OPERATORS, ""),
        (OPERATORS.replace("${POD_NAME}", "${POD_NAME} --container main"), "main"),
        # Scripts that a user changed.
        (OPERATORS.replace("${POD_NAME}", "-c gpu-0 ${POD_NAME}"), "gpu-0"),
        (OPERATORS.replace("${POD_NAME}", "${POD_NAME} --container=main"), "main"),
        (
            OPERATORS.replace("${POD_NAME}", "-c a ${POD_NAME}")
            + "\n/opt/kube/kubectl exec -c a x -- true",
            "a",
        ),
    ],
)
def test_the_container_that_it_names(script: str, container: str) -> None:
    assert kubexec.container(script) == container
    assert kubexec.container(kubexec.mapped(script) or script) == container


@pytest.mark.parametrize(
    "script",
    [
        None,
        OPERATORS.replace("$*", "tool --container x"),
        OPERATORS.replace('"$*"', "echo"),
        OPERATORS.replace("${POD_NAME}", "$OPTIONS ${POD_NAME}"),
        f"# kubectl exec x -c side\n{OPERATORS}",
        OPERATORS.replace("${POD_NAME}", "-c a ${POD_NAME}")
        + "\n/opt/kube/kubectl exec -c b x -- true",
        WITH_MAIN + "\n" + "#" * LONGEST_KUBEXEC,
    ],
)
def test_where_it_cannot_be_read_nothing_is_assumed(script: str | None) -> None:
    assert kubexec.container(script) is None


def test_of_a_script_without_end_little_is_read() -> None:
    class Text(str):
        """Counts the characters that are looked at."""

        __slots__ = ()
        read = 0

        def __getattribute__(self, name: str) -> Any:
            Text.read += len(self) if name in {"split", "replace"} else 0
            return super().__getattribute__(name)

    for size in (LONGEST_KUBEXEC, 64 * 2**10):
        script = Text(("kubectl exec " * size)[:size])
        assert (kubexec.container(script), kubexec.mapped(script)) == (None, None)
        assert 0 < Text.read <= 3 * LONGEST_KUBEXEC
