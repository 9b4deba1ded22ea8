"""What users may do with the ClusterRoles for them: every command of docs/session.md, and what each asks the API server."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.cluster import Cluster
from lab.drivers import standing_in
from lab.errors import LabError
from lab.install import install_into
from lab.operator.process import Operator
from lab.registration import called
from lab.replicas import Controller, Webhook
from mpijob_elastic import names
from mpijob_elastic.cli import rights
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.rights import UserRight
from mpijob_elastic.install.overlays import Overlay
from tests.lab.asked import Asked
from tests.lab.command_line import CommandLine
from tests.lab.scalable import scalable
from tests.lab.typed import Typed
from tests.lab.waiting import create_namespace, may, until
from tests.real.session import PAGE, Shell, shown

pytestmark = [pytest.mark.lab, pytest.mark.thorough]

REFUSED = re.compile(r"403|[Ff]orbidden|may not|lack the right|no right|need the right")
# The lab's pods print what nobody runs, and are not measured; so do these end, and with which word.
ELSEWHERE = {
    "logs train --rank": "it is not known which worker prints|^$|ended: ",
    "logs train --worker": "no line is known to come from",
    "top train": "metrics-server is not installed",
    "logs short": "container not found",
}
# Exit codes that the page does not show.
ANY_CODE = ("explain train", "watch short")
# Roles are kept from view and edit on purpose; this sentence says so.
ONLY_OF_ADMIN = re.compile(
    r"EXEC is not known: you lack the right to read the launcher's Role \(.*\)"
)
PLUGIN = "kubectl mpijob-elastic "
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
WRITES = (
    ("scale train --replicas 2", "patch mpijobs.kubeflow.org"),
    ("scaleout train", "patch mpijobs.kubeflow.org"),
    ("scalein train --count 1", "patch mpijobs.kubeflow.org"),
    ("suspend train", "patch mpijobs.kubeflow.org"),
    ("set bounds train --max 5", "patch mpijobs.kubeflow.org"),
    ("delete train --yes", "delete mpijobs.kubeflow.org"),
    ("submit --name x --image i -- true", "create mpijobs.kubeflow.org"),
)
READS = (
    "get",
    "list -o wide",
    "get train",
    "explain train",
    "logs train",
    "logs train --rank 1",
    "history train",
    "events train",
    "get train -o name",
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
        scalable(own),
        Operator.start(own, qps=0, flags=["--threadiness=8"]),
        Webhook.start(own, installed),
        Controller.start(own, installed),
    ):
        until(lambda: called(own))
        with standing_in(own, ends=("short",)):
            yield own


def account(cluster: Cluster, role: str) -> str:
    """A ServiceAccount with this ClusterRole in namespace ml, and no other right."""
    here, name = ("-n", "ml"), f"user-{role}"
    if cluster.kubectl("get", "serviceaccount", name, "--ignore-not-found", *here):
        return name
    cluster.kubectl("create", "serviceaccount", name, *here)
    who = f"--serviceaccount=ml:{name}"
    cluster.kubectl("create", "rolebinding", name, *here, f"--clusterrole={role}", who)
    may(cluster, name, "list", "mpijobs.kubeflow.org", namespace="ml")
    may(cluster, name, "get", "pods/log", namespace="ml")
    return name


class RoleUser:
    """Somebody with a ClusterRole, who types lines: what a shell or a terminal is needed for in a shell, the rest in this process."""

    def __init__(self, cluster: Cluster, role: str, directory: Path) -> None:
        kubeconfig = cluster.service_account_kubeconfig("ml", account(cluster, role))
        self.kubeconfig = kubeconfig
        self._typed = Typed(kubeconfig, "ml")
        self._shell = Shell(cluster, kubeconfig, directory)
        self._code = 0

    async def type(self, line: str, *answers: str) -> tuple[int, str]:
        """The exit code of a line, and all that it prints."""
        if line == "echo $?":
            return 0, f"{self._code}\n"
        if answers or "|" in line or not line.startswith(PLUGIN):
            self._code, said = self._shell.type(line, answers)
            return self._code, said
        name, words = command(line.removeprefix(PLUGIN).replace("\\\n> ", ""))
        self._code, said = await self._typed.run(name, *words)
        return self._code, said


def command(typed: str) -> tuple[str, list[str]]:
    """The name of a command, and the words behind it."""
    name, *words = shlex.split(typed)
    if name != "set":
        return name, words
    return f"{name} {words[0]}", words[1:]


def node_of(cluster: Cluster, pod: str) -> str:
    return cluster.kubectl("get", "pod", pod, "-nml", "-o", "jsonpath={.spec.nodeName}")


def answers(begins: str, output: str) -> tuple[str, ...]:
    """What to type on a terminal into a command; nothing for a command that asks nothing."""
    if begins.startswith("attach"):
        return "hostname", "exit"
    return ("y",) if "[y/N]" in output else ()


def allowed(cluster: Cluster, who: str, wanted: UserRight, **where: str) -> bool:
    """Whether somebody has a right; the API server answers, as it does for `kubectl auth can-i`."""
    plural, _, subresource = wanted.resource.partition("/")
    asked = {"group": wanted.group, "resource": plural, "subresource": subresource}
    attributes = {**asked, "verb": wanted.verb, "namespace": "ml", **where}
    groups = ["system:serviceaccounts", "system:serviceaccounts:ml", "system:authenticated"]
    spec = {
        "user": f"system:serviceaccount:ml:{who}",
        "groups": groups,
        "resourceAttributes": attributes,
    }
    with cluster.api() as api:
        answer = api.create(REVIEWS, {"kind": "SubjectAccessReview", "spec": spec})
    return bool(answer["status"]["allowed"])


EVERY_RIGHT = frozenset().union(*(one.needed | one.useful for one in rights.COMMANDS.values()))
GIVES = {
    "view": rights.given(rights.VIEW),
    rights.VIEW: rights.given(rights.VIEW),
    "edit": rights.given(rights.EDIT),
    rights.EDIT: rights.given(rights.EDIT),
    "admin": rights.given(rights.EDIT) | rights.NOT_GIVEN,
}


@pytest.mark.parametrize("role", GIVES)
def test_each_role_gives_the_rights_of_the_table_and_no_other(cluster: Cluster, role: str) -> None:
    who = account(cluster, role)
    found = {right for right in EVERY_RIGHT if allowed(cluster, who, right)}
    assert found == GIVES[role]
    elsewhere = (
        right for right in EVERY_RIGHT if allowed(cluster, who, right, namespace="default")
    )
    assert not list(elsewhere)


@pytest.mark.usefixtures("cluster")
def test_everybody_may_get_the_lease_and_nothing_else(cluster: Cluster) -> None:
    """A ServiceAccount without a role stands for everybody who may log in."""
    home = {"namespace": names.NAMESPACE}
    lease = UserRight("coordination.k8s.io", "leases", "get")
    assert allowed(cluster, "default", lease, name=names.LEASE, **home)
    for right, name in (
        (lease, ""),
        (lease, "another"),
        (lease._replace(verb="list"), ""),
        (lease._replace(verb="update"), names.LEASE),
        (UserRight("apps", "deployments", "get"), names.CONTROLLER),
        (UserRight("", "secrets", "get"), names.CERTIFICATE_SECRET),
        (UserRight("", "pods/log", "get"), ""),
        (UserRight("", "configmaps", "list"), ""),
    ):
        assert not allowed(cluster, "default", right, name=name, **home), (right, name)
    assert not [right for right in EVERY_RIGHT if allowed(cluster, "default", right)]


@pytest.mark.parametrize("role", ["edit", rights.EDIT])
async def test_with_edit_every_command_of_the_session_can_be_typed(
    cluster: Cluster, role: str, tmp_path: Path
) -> None:
    user = RoleUser(cluster, role, tmp_path)
    may(cluster, account(cluster, role), "create", "pods/exec", namespace="ml")
    for line, output in shown(PAGE.read_text()):
        typed = line
        begins = typed.removeprefix(PLUGIN)
        if "real-0" in line:
            typed = line.replace("real-0", node_of(cluster, "train-worker-0"))
        code, said = await user.type(typed, *answers(begins, output))
        print(f"$ {typed}\n{said}", flush=True)  # noqa: T201 - shown with a failure
        assert not REFUSED.search(ONLY_OF_ADMIN.sub("", said)), (typed, said)
        other = [words for start, words in ELSEWHERE.items() if begins.startswith(start)]
        if other:
            assert re.search(other[0], said), (typed, said)
        elif not begins.startswith(ANY_CODE) and "mpijob-elastic: " not in output:
            assert code == (2 if "Usage:" in output else 0), (typed, code, said)
    code, said = await user.type(f"{PLUGIN}status")
    assert (code, " leads, renewed " in said, "answers for jobs in ml" in said) == (0, True, True)


@pytest.fixture
def train(cluster: Cluster) -> Iterator[None]:
    """A job of three workers, of an administrator."""
    created = ("submit", "--name=train", "--image=i", "--workers=3", "--max-workers=4", "--np=1")
    CommandLine(cluster).done(*created, "-nml", "python train.py")
    yield
    CommandLine(cluster).done("delete", "train", "-nml", "--yes", "--ignore-not-found")
    gone = ("get", "pods", "-nml", "-o", "name")
    until(lambda: not cluster.kubectl(*gone))


@pytest.mark.usefixtures("train")
@pytest.mark.parametrize("role", ["view", rights.VIEW])
async def test_with_view_all_that_reads_can_be_typed_and_what_is_missing_is_said_once(
    cluster: Cluster, role: str, tmp_path: Path
) -> None:
    user = RoleUser(cluster, role, tmp_path)
    until(lambda: published(cluster) == 3)
    for words in READS:
        code, said = await user.type(f"{PLUGIN}{words}")
        print(f"$ {words}\n{said}", flush=True)  # noqa: T201 - shown with a failure
        assert code == 0 or words.startswith("explain"), said
        assert "403" not in said
        assert len(re.findall("your account may not", said)) <= 1, said
    code, said = await user.type(f"{PLUGIN}status")
    assert (code, " leads, renewed " in said) == (Exit.DONE, True)
    code, said = await user.type(f"{PLUGIN}explain train")
    head = said.splitlines()[0]
    assert head.startswith("ml/train: Running, 3 of 3 listed; whether they train is not known")
    for words, verb in WRITES:
        code, said = await user.type(f"{PLUGIN}{words}")
        assert code == 1, (words, said)
        assert said.splitlines()[-1] == (
            f"mpijob-elastic: your account may not {verb} in namespace ml; the ClusterRole "
            "mpijob-elastic-edit gives this right"
        )


def published(cluster: Cluster) -> int:
    text = cluster.kubectl("get", "configmap", "train-config", "-nml", "-o", "jsonpath={.data}")
    return text.count("echo train-worker-")


@pytest.mark.usefixtures("train")
def test_kubectl_does_for_both_roles_what_the_table_says(cluster: Cluster) -> None:
    """Also our program as kubectl starts it."""
    editor, viewer = (
        cluster.service_account_kubeconfig("ml", account(cluster, role))
        for role in ("edit", "view")
    )
    for words in (
        ("get", "mpijob", "train"),
        ("scale", "mpijob/train", "--replicas=2"),
        ("annotate", "mpijob", "train", "team=a"),
    ):
        cluster.kubectl(*words, kubeconfig=editor)
        if words[0] != "get":
            with pytest.raises(LabError, match="orbidden"):
                cluster.kubectl(*words, kubeconfig=viewer)
    assert "train" in cluster.kubectl("get", "mpijobs", kubeconfig=viewer)


COMMANDS = (
    "get",
    "get train",
    "explain train",
    "events train",
    "logs train",
    "logs train --rank 1",
    "logs trian",
    "top train",
    "top",
    "history train",
    "set bounds train --min 1 --max 5",
    "scale train --replicas 4 --timeout 60",
    "scaleout train --to 3 --timeout 60",
    "scalein train --pod 0 --timeout 60",
    "suspend train --timeout 60",
    "resume train --no-wait",
    "delete train --yes",
    "submit --name short --image i --workers 2 --np 2 --wait --timeout 60 -- true",
    "resubmit short --name again --wait --timeout 60",
    "delete again --yes",
    "prune --yes",
)


@pytest.mark.usefixtures("train")
async def test_commands_ask_what_the_table_says(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked(monkeypatch)
    user = Typed(cluster.kubeconfig, "ml")
    for typed in COMMANDS:
        name, words = command(typed)
        code, said = await user.run(name, *words)
        print(f"$ {typed}\n{code} {said}", flush=True)  # noqa: T201 - shown with a failure
        used = rights.COMMANDS[name]
        taken = asked.taken()
        assert taken & used.needed, typed
        more = taken - used.needed - used.useful
        assert not more, (typed, more)
