"""The chart on a lab's API server: install, upgrade, rollback, uninstall, and adoption there and back.

By each major version of helm: 4 applies on the server, so it does not overwrite what another field
manager has set otherwise, unless told to.

kwok pretends the pods. The Jobs of helm's hooks run here: the program with the arguments of the pod
and the token of its account, and what came of it becomes the status of the pod.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.chart import CHART
from lab.cluster import Cluster
from lab.render import OVERLAYS
from mpijob_elastic import names
from tests.lab.command_line import IMAGE, UNINSTALL, CommandLine
from tests.lab.versions import EVERYTHING, serves
from tests.lab.waiting import until
from tests.peers import chart
from tests.peers.background import repeated
from tests.peers.built import peer
from upgrade import record

pytestmark = [pytest.mark.lab, pytest.mark.peers]
RELEASE = "elastic"
ACCOUNT = f"{names.PROGRAM}-scale"
HOOKS = f"app.kubernetes.io/component=scale,app.kubernetes.io/name={names.PROGRAM}"
CONFIGURATION = f"mutatingwebhookconfiguration/{names.WEBHOOK_CONFIGURATION}"
POLL = 0.5  # seconds


class Lab(CommandLine):
    """A lab, helm and what runs the Jobs of its hooks."""

    def __init__(self, cluster: Cluster, helm: Path) -> None:
        super().__init__(cluster)
        self._helm = helm
        self.jobs: list[tuple[int, str]] = []
        applies = chart.run(helm, "version", "--short").stdout.startswith("v4.")
        #: What overwrites the fields of another manager; helm 3 always does.
        self.overwrites = ("--force-conflicts",) if applies else ()

    def helm(self, *arguments: str, values: dict[str, Any] | None = None) -> str:
        code, output = self.try_helm(*arguments, values=values)
        assert code == 0, f"{output}\n{self.jobs}"
        return output

    def try_helm(self, *arguments: str, values: dict[str, Any] | None = None) -> tuple[int, str]:
        with repeated(self._run_jobs, every=POLL):
            flags = [f"--kubeconfig={self.cluster.kubeconfig}", f"--namespace={names.NAMESPACE}"]
            done = chart.run(self._helm, *arguments, *flags, values=values)
        return done.returncode, done.stdout + done.stderr

    def replicas(self) -> int:
        found = self.get("deployment", "-n", names.NAMESPACE, names.CONTROLLER)
        return int(found["spec"]["replicas"])

    def _run_jobs(self) -> None:
        for pod in self.get("pods", "-n", names.NAMESPACE, "-l", HOOKS)["items"]:
            if (
                pod["status"].get("phase") == "Running"
                and "deletionTimestamp" not in pod["metadata"]
            ):
                self._run_job(pod)

    def _run_job(self, pod: dict[str, Any]) -> None:
        kubeconfig = self.cluster.service_account_kubeconfig(
            names.NAMESPACE, pod["spec"]["serviceAccountName"]
        )
        self.jobs.append(self.run(*pod["spec"]["containers"][0]["args"], kubeconfig=kubeconfig))
        status = {"status": {"phase": "Failed" if self.jobs[-1][0] else "Succeeded"}}
        patch = ("--subresource=status", "--type=merge", "-p", json.dumps(status))
        self.cluster.kubectl("patch", "-n", names.NAMESPACE, "pod", pod["metadata"]["name"], *patch)


@pytest.fixture(scope="module")
def lab(lab: CommandLine, helm: Path) -> Lab:
    return Lab(lab.cluster, helm)


@pytest.fixture
def empty(lab: Lab) -> Iterator[Lab]:
    """Nothing of ours is there, and nothing is left."""
    before = lab.world()
    yield lab
    lab.cluster.kubectl("delete", "namespace", "--ignore-not-found", names.NAMESPACE)
    assert lab.world() == before


def install(lab: Lab, *flags: str, **values: Any) -> str:
    return lab.helm(
        "upgrade", "--install", RELEASE, str(CHART), "--create-namespace", *flags, values=values
    )


def test_install_upgrade_rollback_uninstall(empty: Lab) -> None:
    said = install(empty)
    assert "kubectl scale mpijob/JOB" in said
    assert ("is older than 1.30" in said) == (not serves("ValidatingAdmissionPolicy"))
    assert ("is older than 1.29" in said) == (not serves("FlowSchema"))
    assert empty.is_scalable()
    put_bundle(empty, "Y2E=")
    install(empty, controller={"replicas": 3})
    assert empty.replicas() == 3
    assert bundles(empty) == {"Y2E="}
    empty.helm("rollback", RELEASE, "1")
    assert empty.replicas() == 2
    assert bundles(empty) == {"Y2E="}
    empty.helm("uninstall", RELEASE)
    assert not empty.is_scalable()
    until(lambda: left(empty) == {"ConfigMap kube-root-ca.crt", "ServiceAccount default"})


def test_what_is_left_out_is_said_with_the_command_to_type(empty: Lab) -> None:
    said = install(empty, scaleSubresource={"enabled": False}, guard={"enabled": False})
    assert "mpijob-elastic upgrade scale" in said
    assert "guard.enabled is false" in said
    assert not empty.is_scalable()
    empty.helm("uninstall", RELEASE)


def test_the_namespace_can_be_part_of_the_release(empty: Lab) -> None:
    empty.cluster.kubectl("create", "namespace", names.NAMESPACE)
    values = {"namespace": {"create": True}}
    empty.helm("install", RELEASE, str(CHART), "--take-ownership", values=values)
    labels = empty.get("namespace", names.NAMESPACE)["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    empty.helm("uninstall", RELEASE)
    empty.cluster.kubectl("wait", "--for=delete", "namespace", names.NAMESPACE, "--timeout=240s")


@pytest.mark.parametrize("way", ["command", "kustomize"])
def test_adoption_and_back(empty: Lab, way: str) -> None:
    apply(empty, way)
    before = empty.world()
    code, output = empty.try_helm("install", RELEASE, str(CHART))
    assert (code, "--take-ownership" in output or "invalid ownership metadata" in output) == (
        1,
        True,
    ), output
    install(empty, "--take-ownership")
    assert empty.is_scalable()
    assert templates(empty.world()) == templates(before)
    apply(empty, way)
    empty.cluster.kubectl(
        "delete", "secret", "-n", names.NAMESPACE, "-l", f"owner=helm,name={RELEASE}"
    )
    if way == "command":
        other = ("install", "--no-wait", f"--image={IMAGE}-next")
        if empty.overwrites:
            # Helm 3 has set nothing, as nothing differed; helm 4 has applied every field.
            assert 'conflict with "helm"' in empty.refused(*other)
        empty.done(*other, *empty.overwrites)
        empty.done("install", "--no-wait", f"--image={IMAGE}-last")
    empty.done(*UNINSTALL)


def test_a_release_that_was_adopted_gets_other_values(empty: Lab) -> None:
    """Both are managers of each field, so helm 4 needs its option until it alone has set a field."""
    empty.install()
    way = ("--install", "--take-ownership")
    if empty.overwrites:
        assert f'conflict with "{names.PROGRAM}": .spec.replicas' in refused(empty, 3, way)
        assert empty.replicas() == 2
    upgrade(empty, 3, (*way, *empty.overwrites))
    assert empty.replicas() == 3
    upgrade(empty, 1, ())
    assert empty.replicas() == 1
    if empty.overwrites:
        assert f'conflict with "{names.PROGRAM}"' in refused(empty, 1, (), tag="next")
    upgrade(empty, 1, empty.overwrites, tag="next")
    upgrade(empty, 1, (), tag="last")
    empty.helm("uninstall", RELEASE)


def test_a_release_of_helm_3_is_upgraded_by_helm_4(empty: Lab) -> None:
    """By the same way as before; if told to apply on the server, it takes over what helm 3 has set."""
    if not empty.overwrites:
        pytest.skip("the test of helm 4 needs both")
    install(Lab(empty.cluster, peer("helm")))
    put_bundle(empty, "Y2E=")
    upgrade(empty, 3, ())
    upgrade(empty, 1, ("--server-side=true",))
    assert (empty.replicas(), bundles(empty)) == (1, {"Y2E="})
    scale = ("scale", "deployment", names.CONTROLLER, "-n", names.NAMESPACE, "--replicas=2")
    empty.cluster.kubectl(*scale)
    assert 'conflict with "kubectl" with subresource "scale"' in refused(empty, 3, ())
    upgrade(empty, 3, empty.overwrites)
    assert empty.replicas() == 3
    empty.helm("uninstall", RELEASE)


def refused(lab: Lab, replicas: int, flags: tuple[str, ...], *, tag: str = "") -> str:
    """Say why an upgrade to these values fails."""
    code, output = lab.try_helm("upgrade", RELEASE, str(CHART), *flags, values=of(replicas, tag))
    assert code == 1, output
    return output


def upgrade(lab: Lab, replicas: int, flags: tuple[str, ...], *, tag: str = "") -> None:
    lab.helm("upgrade", RELEASE, str(CHART), *flags, values=of(replicas, tag))


def of(replicas: int, tag: str) -> dict[str, Any]:
    """Values of that number of controllers and that tag."""
    return {"controller": {"replicas": replicas}, "image": {"tag": tag}}


def left(lab: Lab) -> set[str]:
    """What is in our namespace."""
    found = lab.get(
        "all,secrets,configmaps,serviceaccounts,roles,rolebindings,leases", "-n", names.NAMESPACE
    )
    return {f"{one['kind']} {one['metadata']['name']}" for one in found["items"]}


def apply(lab: Lab, way: str) -> None:
    if way == "command":
        lab.install("--force-conflicts")
        return
    wanted = OVERLAYS / "default" if EVERYTHING else OVERLAYS.parent / "base"
    lab.cluster.kubectl("apply", "--server-side", "--force-conflicts", "-k", str(wanted))


def templates(world: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The pods of the Deployments: who changes them restarts them."""
    return {
        key: one["spec"]["template"] for key, one in world.items() if one["kind"] == "Deployment"
    }


def put_bundle(lab: Lab, bundle: str) -> None:
    hooks = lab.get(CONFIGURATION)["webhooks"]
    patch = [
        {"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": bundle}
        for index in range(len(hooks))
    ]
    lab.cluster.kubectl("patch", CONFIGURATION, "--type=json", "-p", json.dumps(patch))


def bundles(lab: Lab) -> set[str]:
    return {hook["clientConfig"].get("caBundle") for hook in lab.get(CONFIGURATION)["webhooks"]}


def test_the_account_of_the_hooks_goes_with_them(empty: Lab) -> None:
    install(empty)
    assert empty.jobs[-1][0] == 0
    accounts = empty.cluster.kubectl("get", "serviceaccounts,clusterroles", "-A", "-o", "name")
    assert ACCOUNT not in accounts
    assert empty.cluster.kubectl("get", "secret", "-n", names.NAMESPACE, record.NAME, "-o", "name")
    empty.helm("uninstall", RELEASE)
