"""kubexec.sh is run by /bin/sh here, as a launcher runs it, with a kubectl that prints what it was asked for."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from lab.operator import objects
from mpijob_elastic import names
from mpijob_elastic.model import kubexec
from mpijob_elastic.model.bounds import LONGEST_KUBEXEC
from tests.product.test_names import NASTY_JOBS

OPERATORS = '#!/bin/sh\nset -x\nPOD_NAME=$1\nshift\n/opt/kube/kubectl exec ${POD_NAME} -- /bin/sh -c "$*"'
WITH_MAIN = OPERATORS.replace("${POD_NAME} --", "${POD_NAME} --container main-1 --")
SHELLS = [shell for shell in ("/bin/sh", "/bin/dash", "/bin/bash", "/bin/busybox") if Path(shell).exists()]


@pytest.mark.parametrize(
    ("sample", "config"), [("two-workers", "ConfigMap/scale-config"), ("main-container", "ConfigMap/side-config")]
)
def test_a_script_that_the_operator_wrote_is_known(sample: str, config: str) -> None:
    script = objects.sample(sample)[config]["data"]["kubexec.sh"]
    edited = kubexec.mapped(script)
    assert edited is not None
    assert kubexec.unmapped(edited) == script


@pytest.mark.parametrize("script", [OPERATORS, WITH_MAIN])
def test_it_is_edited_once(script: str) -> None:
    edited = kubexec.mapped(script)
    assert edited is not None
    assert edited != script
    assert kubexec.mapped(edited) == edited
    assert (kubexec.is_mapped(script), kubexec.is_mapped(edited)) == (False, True)
    assert kubexec.unmapped(edited) == script == kubexec.unmapped(script)


@pytest.mark.parametrize(
    "script",
    [
        None,
        "",
        OPERATORS + "\n",
        OPERATORS.replace("set -x\n", ""),
        OPERATORS.replace("/opt/kube/kubectl", "kubectl"),
        OPERATORS.replace("${POD_NAME} --", "${POD_NAME} --container $(reboot) --"),
        OPERATORS.replace("shift\n", "shift\necho $POD_NAME\n"),
        OPERATORS.replace("POD_NAME=$1\n", "POD_NAME=$1\n" + 2 * kubexec.MAPPING),
        OPERATORS.replace("shift\n", "shift\n" + kubexec.MAPPING),
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
    run = subprocess.run(
        [*command, "-c", here, "kubexec.sh", host, *words], env={"PATH": ""}, capture_output=True, text=True, check=True
    )
    return run.stdout.splitlines()


@pytest.mark.parametrize("program", SHELLS)
@pytest.mark.parametrize("job", [*NASTY_JOBS, "a.r5", "x.r5-worker-0.r7", "r1"])
def test_every_host_name_leads_to_its_pod(job: str, program: str, tmp_path: Path) -> None:
    edited = kubexec.mapped(WITH_MAIN)
    assert edited is not None
    for index, incarnation in ((0, 0), (3, 1), (12, 0), (5, 20)):
        pod = names.worker(job, index)
        host = names.host(pod, incarnation)
        assert reached(edited, host, "echo", "a b", "$HOME", program=program, tmp_path=tmp_path) == [
            *("exec", pod, "--container", "main-1", "--", "/bin/sh", "-c"),
            "echo a b $HOME",
        ]
        assert names.pod_of(host) == pod


def test_without_the_edit_a_numbered_name_would_reach_nobody(tmp_path: Path) -> None:
    assert reached(OPERATORS, "j-worker-1.r1", "true", program="/bin/sh", tmp_path=tmp_path)[1] == "j-worker-1.r1"


@pytest.mark.parametrize(
    ("script", "container"),
    [
        (OPERATORS, ""),
        (OPERATORS.replace("${POD_NAME}", "${POD_NAME} --container main"), "main"),
        (f"{OPERATORS.replace('${POD_NAME}', '${POD_NAME} --container main')}\n# --container other", "main"),
        # Scripts that a user changed.
        (OPERATORS.replace("${POD_NAME}", "-c gpu-0 ${POD_NAME}"), "gpu-0"),
        (OPERATORS.replace("${POD_NAME}", "${POD_NAME} --container=main"), "main"),
        (OPERATORS.replace("${POD_NAME}", "-c a ${POD_NAME}") + "\n/opt/kube/kubectl exec -c a x -- true", "a"),
    ],
)
def test_the_container_that_it_names(script: str, container: str) -> None:
    assert kubexec.container(script) == container
    assert kubexec.container(kubexec.mapped(script) or script) == container


@pytest.mark.parametrize(
    "script",
    [
        None,
        "",
        OPERATORS.replace("$*", "tool --container x"),
        OPERATORS.replace('"$*"', "echo"),
        OPERATORS.replace("${POD_NAME}", "$OPTIONS ${POD_NAME}"),
        f"# kubectl exec x -c side\n{OPERATORS}",
        OPERATORS.replace("${POD_NAME}", "-c a ${POD_NAME}") + "\n/opt/kube/kubectl exec -c b x -- true",
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

        def split(self, *arguments: Any) -> list[str]:
            Text.read += len(self)
            return super().split(*arguments)

        def replace(self, *arguments: Any) -> str:
            Text.read += len(self)
            return super().replace(*arguments)

    for size in (LONGEST_KUBEXEC, 32 * 2**10, 64 * 2**10):
        script = Text(("kubectl exec " * size)[:size])
        assert (kubexec.container(script), kubexec.mapped(script)) == (None, None)
        assert Text.read <= 3 * LONGEST_KUBEXEC
