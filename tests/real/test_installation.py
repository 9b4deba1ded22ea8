"""mpijob-elastic as users install it: its image in real pods, two Deployments of two replicas, a real Service.

A lab of its own, for what is installed covers the whole cluster.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from lab.cluster import Cluster
from lab.errors import LabError
from lab.images import build, delivery
from lab.images.product import image
from lab.kindcluster import KindCluster
from lab.operator.process import Operator
from lab.options import Options
from lab.registration import called
from mpijob_elastic import names
from tests.lab.command_line import CommandLine
from tests.lab.upgrades import whole
from tests.real.mpijob import resize_through
from tests.real.two_nodes import KIND, NAME
from tests.real.waiting import until

DEPLOYMENTS = (names.CONTROLLER, names.WEBHOOK)
INSTALLED_NAME = f"{NAME}-installed"
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
        pytest.skip(f"no image to install: apt-get install --no-install-recommends {' '.join(packages)}")
    options = Options(nodes=0, real_nodes=2)
    with (KindCluster if KIND else Cluster).start(name=INSTALLED_NAME, options=options) as running:
        for name in (delivery.NAME, image.NAME):
            running.load_image(build.ensure(name, lambda _: None))
        yield running


@pytest.fixture(scope="module")
def before(cluster: Cluster) -> set[str]:
    """What was in the cluster before."""
    return set(whole(cluster))


@pytest.fixture(scope="module")
def deployed(cluster: Cluster, before: set[str]) -> CommandLine:
    """mpijob-elastic is installed, and ready."""
    line = CommandLine(cluster)
    code, output = line.run("install", "--image", image.REFERENCE)
    assert code == 0, output
    for kind in ("mutating", "validating"):
        be_patient(line, f"{kind}webhookconfiguration/{names.WEBHOOK_CONFIGURATION}")
    return line


def be_patient(line: CommandLine, configuration: str) -> None:
    """Give the webhook longer for an answer, for this machine may be busier than a cluster."""
    hooks = line.get(configuration)["webhooks"]
    patch = [{"op": "replace", "path": f"/webhooks/{at}/timeoutSeconds", "value": 10} for at in range(len(hooks))]
    line.cluster.kubectl("patch", configuration, "--type=json", "-p", json.dumps(patch))


def pods(cluster: Cluster, component: str) -> list[dict[str, Any]]:
    """The pods of a Deployment that are not about to end."""
    selector = f"--selector=app.kubernetes.io/component={component.rpartition('-')[2]}"
    found = json.loads(cluster.kubectl("get", "pods", "--namespace", names.NAMESPACE, selector, "-o", "json"))
    return [pod for pod in found["items"] if "deletionTimestamp" not in pod["metadata"]]


def within(cluster: Cluster, deployment: str, *arguments: str) -> str:
    return cluster.kubectl("exec", "--namespace", names.NAMESPACE, f"deployment/{deployment}", "--", *arguments)


@contextmanager
def always_asked(cluster: Cluster) -> Iterator[None]:
    """Fail if meanwhile the API server once gets no answer from the webhook, which it then goes on without."""
    ended = threading.Event()
    answers: list[bool] = []

    def ask() -> None:
        while not ended.is_set():
            answers.append(called(cluster))

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield
    finally:
        ended.set()
        asking.join()
    assert answers
    assert all(answers), f"{answers.count(False)} of {len(answers)} requests were not reviewed"


@pytest.mark.usefixtures("deployed")
def test_each_deployment_has_two_pods_that_are_confined(cluster: Cluster) -> None:
    labels = json.loads(cluster.kubectl("get", "namespace", names.NAMESPACE, "-o", "json"))["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    for deployment in DEPLOYMENTS:
        running = pods(cluster, deployment)
        assert [pod["status"]["phase"] for pod in running] == ["Running"] * 2
        assert len({pod["spec"]["nodeName"] for pod in running}) == 2
        assert within(cluster, deployment, "python3.11", "-c", CONFINED) == "Read-only file system\n"
        with pytest.raises(LabError, match=r"\"sh\": executable file not found"):
            within(cluster, deployment, "sh")


@pytest.mark.usefixtures("deployed")
def test_a_job_follows_its_edits(cluster: Cluster, namespace: str, operator: Operator) -> None:
    assert called(cluster), "the API server reaches the webhook by its Service"
    resize_through(cluster, namespace)


@pytest.mark.usefixtures("deployed")
def test_a_rolling_update_misses_neither_an_admission_nor_an_edit(
    cluster: Cluster, namespace: str, operator: Operator
) -> None:
    first = {pod["metadata"]["name"] for name in DEPLOYMENTS for pod in pods(cluster, name)}
    with always_asked(cluster):
        for deployment in DEPLOYMENTS:
            cluster.kubectl("rollout", "restart", f"deployment/{deployment}", "--namespace", names.NAMESPACE)
        resize_through(cluster, namespace)
        for deployment in DEPLOYMENTS:
            status = ("rollout", "status", f"deployment/{deployment}", "--timeout=180s")
            cluster.kubectl(*status, "--namespace", names.NAMESPACE)
        until("the earlier pods are gone", lambda: not first & _all_pods(cluster) or None)


@pytest.mark.usefixtures("deployed")
def test_the_replicas_of_a_drained_node_are_replaced(cluster: Cluster) -> None:
    node = pods(cluster, names.WEBHOOK)[0]["spec"]["nodeName"]
    drain = ("drain", node, "--ignore-daemonsets", "--timeout=180s")
    try:
        with always_asked(cluster):
            cluster.kubectl(*drain, f"--pod-selector=app.kubernetes.io/name={names.NAMESPACE}")
        for deployment in DEPLOYMENTS:
            status = ("rollout", "status", f"deployment/{deployment}", "--timeout=180s")
            cluster.kubectl(*status, "--namespace", names.NAMESPACE)
            assert node not in {pod["spec"]["nodeName"] for pod in pods(cluster, deployment)}
    finally:
        cluster.kubectl("uncordon", node)


def test_nothing_is_left_of_it(cluster: Cluster, before: set[str], deployed: CommandLine) -> None:
    code, output = deployed.run("uninstall", "--yes")
    assert code == 0, output
    until("the rest is gone", lambda: _ours(cluster, before) == set() or None)


def _ours(cluster: Cluster, before: set[str]) -> set[str]:
    """Return what came since, apart from the namespaces of these tests and what they hold."""
    return {key for key in set(whole(cluster)) - before if "test-" not in key and "mpi-operator" not in key}


def _all_pods(cluster: Cluster) -> set[str]:
    found = cluster.kubectl("get", "pods", "--namespace", names.NAMESPACE, "-o", "name")
    return {line.removeprefix("pod/") for line in found.split()}
