"""mpijob-elastic as users install it: its image in real pods, two Deployments of two replicas, a real Service.

mpi-operator is installed like that, too. A lab of its own, for what is installed covers the whole
cluster.
"""

import json
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

import pytest

from lab.cluster import Cluster
from lab.errors import LabError
from lab.images import build, delivery, horovod, operator
from lab.images.archive import File, write_layer
from lab.images.oci import read_layers, write_image, write_renamed
from lab.images.product import image
from lab.images.product.python import PACKAGES
from lab.kind import KindCluster
from lab.operator import deployment
from lab.options import Options
from lab.registration import called
from lab.training.job import TrainingJob, load_image
from mpijob_elastic import names
from tests.lab.command_line import CommandLine
from tests.lab.upgrades import whole
from tests.real.mpijob import resize_through
from tests.real.nodes import KIND, NAME
from tests.real.pods import until
from tests.real.policies import allowed, used
from tests.real.resizes import train_through

DEPLOYMENTS = (names.CONTROLLER, names.WEBHOOK)
INSTALLED_NAME = f"{NAME}-installed"
NEXT = f"{image.NAME}:next"
MOVED, OLDER = f"{image.NAME}:moved", "0.3.9"
HOOKS = ("mutatingwebhookconfiguration,validatingwebhookconfiguration", names.WEBHOOK_CONFIGURATION)
CONFINED = """
import os, pathlib
assert (os.getuid(), os.getgid()) == (65532, 65532)
try:
    pathlib.Path("/file").touch()
except OSError as error:
    print(error.strerror)
"""


@pytest.fixture(scope="module")
def cluster(real_node: None) -> Iterator[Cluster]:
    """A lab of two real nodes that know the images; skips the tests where ours cannot be built."""
    if packages := build.lacking(image.NAME):
        pytest.skip(
            f"no image to install: apt-get install --no-install-recommends {' '.join(packages)}"
        )
    options = Options(nodes=0, real_nodes=2)
    with (KindCluster if KIND else Cluster).start(name=INSTALLED_NAME, options=options) as running:
        for name in (delivery.NAME, operator.NAME, image.NAME):
            running.load_image(build.ensure(name, lambda _: None))
        yield running


@pytest.fixture(scope="module")
def training_image(cluster: Cluster) -> None:
    """The image of the example that trains is known on the nodes; skips the test where it cannot be built."""
    if packages := build.lacking(horovod.NAME):
        pytest.skip(
            f"no image to train with: apt-get install --no-install-recommends {' '.join(packages)}"
        )
    load_image(cluster, lambda _: None)


@pytest.fixture(scope="module")
def before(cluster: Cluster) -> dict[str, Any]:
    """What was in the cluster before; mpi-operator was."""
    deployment.install(cluster)
    return whole(cluster)


@pytest.fixture(scope="module")
def deployed(cluster: Cluster, before: dict[str, Any]) -> CommandLine:
    """mpijob-elastic is installed, and ready."""
    line = CommandLine(cluster)
    install(line, image.REFERENCE)
    return line


def install(line: CommandLine, reference: str) -> None:
    """Install or upgrade, and give the webhook longer for an answer, for this machine may be busier than a cluster."""
    code, output = line.run("install", "--image", reference, "--force-conflicts")
    assert code == 0, output
    for kind in ("mutating", "validating"):
        configuration = f"{kind}webhookconfiguration/{names.WEBHOOK_CONFIGURATION}"
        hooks = line.get(configuration)["webhooks"]
        patch = [
            {"op": "replace", "path": f"/webhooks/{at}/timeoutSeconds", "value": 10}
            for at in range(len(hooks))
        ]
        line.cluster.kubectl("patch", configuration, "--type=json", "-p", json.dumps(patch))


def pods(cluster: Cluster, component: str) -> list[dict[str, Any]]:
    """The pods of a Deployment that are not about to end."""
    selector = f"--selector=app.kubernetes.io/component={component.rpartition('-')[2]}"
    found = json.loads(
        cluster.kubectl("get", "pods", "--namespace", names.NAMESPACE, selector, "-o", "json")
    )
    return [pod for pod in found["items"] if "deletionTimestamp" not in pod["metadata"]]


def within(cluster: Cluster, name: str, *arguments: str) -> str:
    return cluster.kubectl(
        "exec", "--namespace", names.NAMESPACE, f"deployment/{name}", "--", *arguments
    )


@contextmanager
def beside(work: Callable[[], object]) -> Iterator[None]:
    """Do something while the block runs; it must succeed."""
    with ThreadPoolExecutor() as pool:
        done = pool.submit(work)
        yield
        done.result()


@contextmanager
def always_asked(cluster: Cluster) -> Iterator[None]:
    """Fail if meanwhile the API server once gets no answer from the webhook, which it then goes on without."""
    ended = threading.Event()
    answers: list[bool] = []

    def ask() -> None:
        while not ended.is_set():
            answers.append(called(cluster))

    with beside(ask):
        try:
            yield
        finally:
            ended.set()
    assert answers
    assert all(answers), f"{answers.count(False)} of {len(answers)} requests were not reviewed"


@pytest.mark.usefixtures("deployed")
def test_each_deployment_has_two_pods_that_are_confined(cluster: Cluster) -> None:
    labels = json.loads(cluster.kubectl("get", "namespace", names.NAMESPACE, "-o", "json"))[
        "metadata"
    ]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    for name in DEPLOYMENTS:
        running = pods(cluster, name)
        assert [pod["status"]["phase"] for pod in running] == ["Running"] * 2
        assert len({pod["spec"]["nodeName"] for pod in running}) == 2
        assert within(cluster, name, "python3.11", "-c", CONFINED) == "Read-only file system\n"
        with pytest.raises(LabError, match=r"\"sh\": executable file not found"):
            within(cluster, name, "sh")


@pytest.mark.usefixtures("deployed")
def test_the_network_policies_allow_every_connection(cluster: Cluster) -> None:
    for name in DEPLOYMENTS:
        for pod in pods(cluster, name):
            has, may = used(cluster, pod), allowed(cluster, pod)
            assert has.into
            assert has.out
            assert has.into <= may.into
            assert has.out <= may.out


@pytest.mark.usefixtures("deployed")
def test_a_job_follows_its_edits(cluster: Cluster, namespace: str) -> None:
    assert called(cluster), "the API server reaches the webhook by its Service"
    resize_through(cluster, namespace)


@pytest.mark.timeout(1200)
@pytest.mark.usefixtures("deployed", "training_image")
def test_training_goes_on_through_every_change_of_size(cluster: Cluster, namespace: str) -> None:
    job = TrainingJob(cluster=cluster, namespace=namespace)
    train_through(job, (job.edit, 3), (job.scale, 1), (job.edit, 3), steps=250)


def test_an_upgrade_misses_neither_an_admission_nor_an_edit(
    cluster: Cluster, namespace: str, deployed: CommandLine, tmp_path: Path
) -> None:
    write_renamed(tmp_path / "next.tar", build.ensure(image.NAME, lambda _: None), reference=NEXT)
    cluster.load_image(tmp_path / "next.tar")
    first = _all_pods(cluster)
    with always_asked(cluster), beside(lambda: resize_through(cluster, namespace)):
        install(deployed, NEXT)
        until("the earlier pods are gone", lambda: not first & _all_pods(cluster) or None)
    running = [pod for name in DEPLOYMENTS for pod in pods(cluster, name)]
    assert [pod["spec"]["containers"][0]["image"] for pod in running] == [NEXT] * 4


def test_an_older_image_that_the_nodes_keep_under_a_moved_tag_is_seen(
    cluster: Cluster, deployed: CommandLine, tmp_path: Path
) -> None:
    write_older(tmp_path / "older.tar", build.ensure(image.NAME, lambda _: None))
    cluster.load_image(tmp_path / "older.tar")
    before = deployed.get(*HOOKS)["items"]
    code, output = deployed.run("install", "--image", MOVED, "--force-conflicts")
    assert code == 1, output
    running = [pod for name in DEPLOYMENTS for pod in pods(cluster, name)]
    assert len(running) == 4
    for pod in running:
        where = f"pod {pod['metadata']['name']} on {pod['spec']['nodeName']} {OLDER}"
        assert where in output
    assert f"(image {MOVED})" in output
    assert deployed.get(*HOOKS)["items"] == before
    install(deployed, image.REFERENCE)


def write_older(target: Path, archive: Path) -> None:
    """Write the image of an archive as that of an older version, under the tag that is moved."""
    layers = []
    for number, layer in enumerate(read_layers(archive)):
        content = cast("BinaryIO", layer.fileobj)
        content.seek(0)
        layers.append(target.with_name(f"layer-{number}"))
        with layers[-1].open("wb") as plain:
            shutil.copyfileobj(content, plain)
    package = f"{PACKAGES}/mpijob_elastic"
    older = target.with_name("layer-older")
    source = File(content=f'__version__ = "{OLDER}"\n'.encode())
    # Takes what was compiled away, which nobody compares with its source.
    gone = File(content=b"")
    compiled = f"{package}/__pycache__/.wh.__init__.cpython-311.pyc"
    write_layer(older, {f"{package}/__init__.py": source, compiled: gone})
    write_image(target, reference=MOVED, layers=[*layers, older], settings=image.SETTINGS)


@pytest.mark.usefixtures("deployed")
def test_programs_and_pods_run_as_any_user(cluster: Cluster, namespace: str) -> None:
    """OpenShift gives each namespace a range of user ids that no image knows, and the group 0."""
    nobodys = {"runAsUser": 1000650000, "runAsGroup": 0}
    here = ("--namespace", names.NAMESPACE)
    patch = {"spec": {"template": {"spec": {"securityContext": nobodys}}}}
    for name in DEPLOYMENTS:
        cluster.kubectl("patch", f"deployment/{name}", *here, "-p", json.dumps(patch))
    for name in DEPLOYMENTS:
        cluster.kubectl("rollout", "status", f"deployment/{name}", "--timeout=180s", *here)
        user = within(cluster, name, "python3.11", "-c", "import os; print(os.getuid())")
        assert user.strip() == str(nobodys["runAsUser"])
    assert called(cluster)
    resize_through(cluster, namespace, securityContext=nobodys)


@pytest.mark.usefixtures("deployed")
def test_the_replicas_of_a_drained_node_are_replaced(cluster: Cluster, namespace: str) -> None:
    node = leaders_node(cluster)
    assert all(node in _nodes(cluster, name) for name in DEPLOYMENTS)
    drain = ("drain", node, "--ignore-daemonsets", "--timeout=180s")
    try:
        with always_asked(cluster), beside(lambda: resize_through(cluster, namespace)):
            cluster.kubectl(*drain, f"--pod-selector=app.kubernetes.io/name={names.NAMESPACE}")
            for name in DEPLOYMENTS:
                status = ("rollout", "status", f"deployment/{name}", "--timeout=180s")
                cluster.kubectl(*status, "--namespace", names.NAMESPACE)
                assert node not in _nodes(cluster, name)
    finally:
        cluster.kubectl("uncordon", node)


def test_nothing_is_left_of_it(
    cluster: Cluster, before: dict[str, Any], deployed: CommandLine
) -> None:
    code, output = deployed.run("uninstall", "--yes")
    assert code == 0, output
    until("the cluster is as before", lambda: _changed(cluster, before) == set() or None)


def leaders_node(cluster: Cluster) -> str:
    """Return the node of the controller that leads."""
    lease = (
        "get",
        "lease",
        names.LEASE,
        "--namespace",
        names.NAMESPACE,
        "-o",
        "jsonpath={.spec.holderIdentity}",
    )
    leader = cluster.kubectl(*lease).rpartition("_")[0]
    [found] = (pod for pod in pods(cluster, names.CONTROLLER) if pod["metadata"]["name"] == leader)
    return str(found["spec"]["nodeName"])


def _nodes(cluster: Cluster, component: str) -> set[str]:
    return {pod["spec"]["nodeName"] for pod in pods(cluster, component)}


def _changed(cluster: Cluster, before: dict[str, Any]) -> set[str]:
    """Return what came, went or changed since, apart from the namespaces of these tests and what they hold."""
    after = whole(cluster)
    return {
        key for key in {*before, *after} if before.get(key) != after.get(key) and "test-" not in key
    }


def _all_pods(cluster: Cluster) -> set[str]:
    found = cluster.kubectl("get", "pods", "--namespace", names.NAMESPACE, "-o", "name")
    return {line.removeprefix("pod/") for line in found.split()}
