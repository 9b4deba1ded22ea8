"""What users may do with the ClusterRoles for them: every command of docs/session.md, and what each asks the API server."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.cluster import Cluster
from lab.install import install_into
from lab.operator.process import Operator
from lab.registration import called
from lab.replicas import Controller, Webhook
from mpijob_elastic.cli import rights
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.install.overlays import Overlay
from tests.lab.asked import Asked
from tests.lab.command_line import CommandLine
from tests.lab.stand_in_ranks import standing_in
from tests.lab.typed import Typed
from tests.lab.waiting import create_namespace, may, until
from tests.real.session import PAGE, Shell, shown

pytestmark = [pytest.mark.lab, pytest.mark.thorough]

REFUSED = re.compile(r"403|[Ff]orbidden|may not|lack the right|no right|need the right")
# The lab's pods print what nobody runs, have no terminal and are not measured; so do these end, and
# with which word.
ELSEWHERE = {
    "logs train --rank": "it is not known which worker prints|^$|ended: ",
    "logs train --worker": "no line is known to come from",
    "attach train": "the lab's pods have no terminals",
    "top train": "metrics-server is not installed",
    "logs short": "container not found",
}
# Exit codes that the page does not show.
ANY_CODE = ("explain train", "watch short")
# Roles are kept from view and edit on purpose; these two sentences say so.
ONLY_OF_ADMIN = re.compile(
    r"to see when it will be, you need the right to read Roles|"
    r"unknown: you lack the right to read the launcher's Role \(.*\)"
)
READS = (
    "get",
    "list -o wide",
    "get train",
    "explain train",
    "logs train",
    "logs train --rank 1",
    "history train",
)


@pytest.fixture(scope="module")
def cluster(lab: CommandLine) -> Iterator[Cluster]:
    """The module's own, with our programs and the roles: they widen what others may do."""
    own = lab.cluster
    if not own.exec_offered:
        pytest.skip("PID namespaces cannot be had here")
    installed = install_into(own, also=(Overlay.USER_ROLES,))
    create_namespace(own, "ml")
    with (
        Operator.start(own, qps=0, flags=["--threadiness=8"]),
        Webhook.start(own, installed),
        Controller.start(own, installed),
    ):
        until(lambda: called(own))
        yield own


def bound(cluster: Cluster, role: str) -> Path:
    """The kubeconfig of a ServiceAccount with this ClusterRole in namespace ml, and no other right."""
    here = ("-n", "ml")
    cluster.kubectl("create", "serviceaccount", role, *here)
    who = f"--serviceaccount=ml:{role}"
    cluster.kubectl("create", "rolebinding", role, *here, f"--clusterrole={role}", who)
    may(cluster, role, "list", "mpijobs.kubeflow.org", namespace="ml")
    may(cluster, role, "get", "pods/log", namespace="ml")
    return cluster.service_account_kubeconfig("ml", role)


def node_of(cluster: Cluster, pod: str) -> str:
    return cluster.kubectl("get", "pod", pod, "-nml", "-o", "jsonpath={.spec.nodeName}")


@pytest.mark.parametrize("role", ["edit", rights.EDIT])
def test_with_edit_every_command_of_the_session_can_be_typed(
    cluster: Cluster, role: str, tmp_path: Path
) -> None:
    kubeconfig = bound(cluster, role)
    may(cluster, role, "create", "pods/exec", namespace="ml")
    shell = Shell(cluster, kubeconfig, tmp_path)
    with standing_in(cluster, "ml", "train", ends="short"):
        for line, output in shown(PAGE.read_text()):
            typed = line
            begins = typed.removeprefix("kubectl mpijob-elastic ")
            on_terminal = "[y/N]" in output or begins.startswith("attach")
            if "real-0" in line:
                typed = line.replace("real-0", node_of(cluster, "train-worker-0"))
            code, said = shell.type(typed, ("y",) if on_terminal else ())
            print(f"$ {typed}\n{said}", flush=True)  # noqa: T201 - shown with a failure
            assert not REFUSED.search(ONLY_OF_ADMIN.sub("", said)), (typed, said)
            other = [words for start, words in ELSEWHERE.items() if begins.startswith(start)]
            if other:
                assert re.search(other[0], said), (typed, said)
            elif not begins.startswith(ANY_CODE) and "mpijob-elastic: " not in output:
                assert code == (2 if "Usage:" in output else 0), (typed, code, said)
    code, said = shell.type("kubectl mpijob-elastic status")
    assert (code, " leads, renewed " in said, "answers for jobs in ml" in said) == (0, True, True)


@pytest.mark.parametrize("role", ["view", rights.VIEW])
def test_with_view_all_that_reads_can_be_typed_and_what_is_missing_is_said_once(
    cluster: Cluster, role: str, tmp_path: Path
) -> None:
    shell = Shell(cluster, bound(cluster, role), tmp_path)
    created = ("submit", "--name=train", "--image=i", "--workers=3", "--max-workers=4", "--np=1")
    CommandLine(cluster).done(*created, "-nml", "python train.py")
    with standing_in(cluster, "ml", "train"):
        until(lambda: "published 3" in shell.type("kubectl mpijob-elastic get train")[1])
        for words in READS:
            code, said = shell.type(f"kubectl mpijob-elastic {words}")
            print(f"$ {words}\n{said}", flush=True)  # noqa: T201 - shown with a failure
            assert code == 0 or words.startswith("explain"), said
            assert "403" not in said
            assert len(re.findall("your account may not", said)) <= 1, said
        code, said = shell.type("kubectl mpijob-elastic status")
        assert (code, " leads, renewed " in said) == (Exit.NOT_KNOWN, True)
        head = shell.type("kubectl mpijob-elastic explain train")[1].splitlines()[0]
        assert head.startswith("ml/train: Running, 3 of 3 listed; whether they train is not known")
        for words, verb in (
            ("scaleout train", "patch mpijobs.kubeflow.org"),
            ("suspend train", "patch mpijobs.kubeflow.org"),
            ("delete train --yes", "delete mpijobs.kubeflow.org"),
            ("submit --name x --image i -- true", "create mpijobs.kubeflow.org"),
        ):
            code, said = shell.type(f"kubectl mpijob-elastic {words}")
            assert code == 1
            assert said.splitlines()[-1] == (
                f"mpijob-elastic: your account may not {verb} in namespace ml; the ClusterRole "
                "mpijob-elastic-edit gives this right"
            )
    CommandLine(cluster).done("delete", "train", "-nml", "--yes")
    until(lambda: "No MPIJobs" in shell.type("kubectl mpijob-elastic get")[1])


COMMANDS = (
    "get",
    "get train",
    "explain train",
    "logs train",
    "logs train --rank 1",
    "logs trian",
    "top train",
    "history train",
    "scaleout train --to 3 --timeout 60",
    "scalein train --pod 0 --timeout 60",
    "suspend train --timeout 60",
    "resume train --no-wait",
    "delete train --yes",
    "prune --yes",
)


@pytest.mark.usefixtures("cluster")
async def test_commands_ask_what_the_table_says(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked(monkeypatch)
    user = Typed(cluster.kubeconfig, "ml")
    line = ("--name=train", "--image=i", "--workers=2", "--max-workers=4", "--np=1")
    with standing_in(cluster, "ml", "train"):
        await user.run("submit", *line, "--", "python", "train.py")
        assert asked.taken() <= rights.COMMANDS["submit"].needed
        for typed in COMMANDS:
            name, *words = typed.split()
            await user.run(name, *words)
            used = rights.COMMANDS[name]
            taken = asked.taken()
            assert taken & used.needed, typed
            more = taken - used.needed - used.useful
            assert not more, (typed, more)
