"""`mpijob-elastic install` and `uninstall` on a lab of their own, where kwok pretends that the pods run."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import yaml

from lab.cluster import Cluster
from lab.components import MANIFESTS
from lab.errors import LabError
from lab.install import Installed
from lab.ports import free_ports
from lab.replicas import Webhook
from mpijob_elastic import names
from tests.lab.command_line import IMAGE, UNINSTALL, CommandLine
from tests.lab.upgrades import CRD, established, gone
from tests.lab.versions import EVERYTHING, needs, serves
from tests.lab.waiting import PATIENCE, kubectl_until_done, until

pytestmark = [pytest.mark.lab, pytest.mark.thorough]
# What is said of objects that this API server is too old for.
OLD = set() if EVERYTHING else {"skipped"}
HOOKS = ("mutatingwebhookconfiguration,validatingwebhookconfiguration", names.WEBHOOK_CONFIGURATION)


@pytest.fixture
def clean(lab: CommandLine) -> CommandLine:
    """Nothing of ours is there."""
    lab.done(*UNINSTALL)
    return lab


@pytest.fixture
def there(lab: CommandLine) -> CommandLine:
    """The default is installed."""
    lab.install("--force-conflicts")
    return lab


def outcomes(output: str) -> set[str]:
    """Return what is said of each object, not what sentences or the diff of the definition say."""
    return {
        line.split()[0]
        for line in output.splitlines()
        if " mpijob-elastic" in line and line[:1].islower()
    }


def test_without_mpi_operator_nothing_is_written(clean: CommandLine) -> None:
    gone(clean.cluster, CRD)
    try:
        before = clean.world()
        code, output = clean.run("install", f"--image={IMAGE}")
        assert clean.world() == before
    finally:
        clean.cluster.kubectl("create", "-f", str(MANIFESTS / "mpijob-crd.yaml"))
        established(clean.cluster, CRD)
    assert code == 1
    assert "install mpi-operator v0.2.3 with its CustomResourceDefinition first" in output


def test_the_image_that_runs_stays(there: CommandLine) -> None:
    ours = "registry.example/ours@sha256:" + "0" * 64
    there.install(f"--image={ours}")
    for more in (["--dry-run"], ["--no-wait"], ["--no-wait", "--jobs-namespace=jobs", "--uncover"]):
        code, output = there.run("install", *more)
        assert (code, "image:" in output) == (0, False)
    assert images(there) == {names.CONTROLLER: ours, names.WEBHOOK: ours}
    there.cluster.kubectl(
        "set", "image", "-n", names.NAMESPACE, f"deployment/{names.WEBHOOK}", "webhook=other:2"
    )
    said = there.refused("install", "--no-wait", "--force-conflicts")
    assert f"the images other:2, {ours} run, so name the one to run" in said
    there.install("--force-conflicts")


def test_pods_are_admitted_at_the_level_restricted(there: CommandLine) -> None:
    template = there.get("deployment", "-n", names.NAMESPACE)["items"]
    for deployment in template:
        pod = {"apiVersion": "v1", "kind": "Pod", **deployment["spec"]["template"]}
        pod["metadata"]["name"] = "copy"
        command = ("create", "-n", names.NAMESPACE, "--dry-run=server", "-f", "-")
        there.cluster.kubectl(*command, "--warnings-as-errors", stdin=json.dumps(pod))
        pod["spec"]["containers"][0]["securityContext"]["readOnlyRootFilesystem"] = False
        pod["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True
        with pytest.raises(LabError, match="violates PodSecurity"):
            there.cluster.kubectl(*command, stdin=json.dumps(pod))


def test_replicas_are_apart_though_one_node_has_the_most_room(clean: CommandLine) -> None:
    pods = [filler(node) for node in ("lab-1", "lab-2")]
    clean.cluster.kubectl("create", "-n", "jobs", "-f", "-", stdin=yaml.safe_dump_all(pods))
    assert "kubectl api-resources > /dev/null" in clean.install()
    for name in (names.CONTROLLER, names.WEBHOOK):
        clean.cluster.kubectl(
            "rollout", "status", "-n", names.NAMESPACE, f"deployment/{name}", "--timeout=240s"
        )
        component = f"app.kubernetes.io/component={name.rpartition('-')[2]}"
        found = clean.get("pods", "-n", names.NAMESPACE, f"--selector={component}")["items"]
        assert len({pod["spec"]["nodeName"] for pod in found}) == 2
    clean.cluster.kubectl("delete", "pod", "-n", "jobs", *(pod["metadata"]["name"] for pod in pods))


def filler(node: str) -> dict[str, Any]:
    """A pod that takes half of a node."""
    container = {
        "name": "main",
        "image": "none",
        "resources": {"requests": {"cpu": "5000", "memory": "50Ti"}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"filler-{node}"},
        "spec": {"nodeName": node, "containers": [container]},
    }


@needs("ValidatingAdmissionPolicy")
def test_policies_compile(there: CommandLine) -> None:
    until(lambda: all("typeChecking" in one.get("status", {}) for one in policies(there)))
    for policy in policies(there):
        assert "expressionWarnings" not in policy["status"]["typeChecking"], policy


@needs("FlowSchema")
def test_the_flow_schema_is_used(there: CommandLine) -> None:
    schema = "flowschema/mpijob-elastic-leader-election"
    until(lambda: conditions(there.get(schema)) == [("Dangling", "False")])


def test_what_an_older_api_server_does_not_serve_is_said_at_the_end(there: CommandLine) -> None:
    output = there.install("--dry-run")
    assert ("Left out: v1." in output, "skipped" in output) == (not EVERYTHING, not EVERYTHING)
    if not EVERYTHING:
        assert (
            "no ValidatingAdmissionPolicy, so only RBAC limits what our accounts may do"
            in output.splitlines()[-2]
        )


def test_what_others_changed_is_not_overruled_unasked(there: CommandLine) -> None:
    deployment = f"deployment/{names.WEBHOOK}"
    there.cluster.kubectl("scale", "-n", names.NAMESPACE, deployment, "--replicas=3")
    said = there.refused("install", "--no-wait")
    assert ".spec.replicas" in said
    assert "--force-conflicts" in said
    said = there.done("install", "--force-conflicts", "--dry-run")
    assert "-  replicas: 3" in said
    assert "+  replicas: 2" in said
    there.install("--force-conflicts")
    assert there.get(deployment, "-n", names.NAMESPACE)["spec"]["replicas"] == 2


def test_another_overlay_takes_its_rights_along(there: CommandLine) -> None:
    before = there.world().keys()
    there.install("--jobs-namespace=jobs", "--uncover")
    narrow = there.world().keys()
    guarded = ("mpijob-elastic-evictions",) if serves("ValidatingAdmissionPolicy") else ()
    gone = (names.CONTROLLER, "mpijob-elastic-nodes", *guarded)
    assert before - narrow == {
        f"{kind} /{name}" for kind in ("ClusterRole", "ClusterRoleBinding") for name in gone
    }
    new = (names.CONTROLLER, names.WEBHOOK, *guarded)
    assert narrow - before == {
        f"{kind} jobs/{name}" for kind in ("Role", "RoleBinding") for name in new
    }
    there.install()
    assert there.world().keys() == before


def test_the_roles_of_users_go_only_if_that_is_asked_for(clean: CommandLine) -> None:
    clean.install("--overlay=user-roles", "--lease-readers=ml")
    before = clean.world()
    for command in (["install"], ["install", "--dry-run"]):
        said = clean.refused(*command)
        assert "--overlay user-roles --lease-readers ml is missing: " in said
    assert "--lease-readers ml is missing: " in clean.refused("install", "--overlay=user-roles")
    assert clean.world() == before
    binding = ("ann", "--namespace=jobs", "--clusterrole=mpijob-elastic-edit", "--user=ann")
    clean.cluster.kubectl("create", "rolebinding", *binding)
    stays = (
        "ClusterRole mpijob-elastic-edit stay, and give no right without it: RoleBinding jobs/ann"
    )
    assert stays in " ".join(clean.done("uninstall", "--dry-run").split())
    clean.install("--remove-overlay=user-roles")
    assert before.keys() - clean.world().keys() >= {"ClusterRole /mpijob-elastic-edit"}
    clean.cluster.kubectl("delete", "rolebinding", "ann", "--namespace=jobs")
    clean.install()


def test_a_second_team_takes_nothing_away_from_the_first(clean: CommandLine) -> None:
    clean.install("--jobs-namespace=jobs")
    with job_in(clean, "jobs"), job_in(clean, "others"):
        before = clean.world()
        for command in (["install"], ["install", "--dry-run"]):
            code, output = clean.run(*command, "--jobs-namespace=others")
            said = "namespace jobs would not be covered any more, with these MPIJobs: jobs/train."
            assert (code, said in output, "--uncover" in output) == (1, True, True), output
        assert said in clean.refused("upgrade", "preflight", "--jobs-namespace=others")
        assert clean.world() == before
        clean.install("--jobs-namespace=others", "--jobs-namespace=jobs")
        assert covered(clean) == {"jobs", "others"}
        code, output = clean.run(
            "install", "--no-wait", "--jobs-namespace=others", "--uncover", "--dry-run"
        )
        assert (code, "deleted     RoleBinding jobs/mpijob-elastic-controller" in output) == (
            0,
            True,
        ), output
        clean.install("--jobs-namespace=others", "--uncover")
        assert covered(clean) == {"others"}
        assert not {
            one
            for one in clean.world()
            if one.startswith(("Role jobs/mpi", "RoleBinding jobs/mpi"))
        }
        clean.install()
        said = clean.refused("install", "--jobs-namespace=others")
        assert "all other namespaces would not be covered any more" in said
        assert "MPIJobs: jobs/train." in said


def test_pods_at_a_gate_are_not_left_alone_whatever_is_said(clean: CommandLine) -> None:
    clean.install("--jobs-namespace=jobs", "--jobs-namespace=others")
    with pod_at_gate(clean, names.GATE_QUEUED):
        said = clean.refused("install", "--jobs-namespace=others")
        assert (
            "these MPIJobs: none today, and with pods that would wait at a gate of ours for ever"
            in said
        )
        assert "for ever: jobs/filler-lab-1." in said
        said = clean.refused("install", "--jobs-namespace=others", "--uncover")
        assert "nobody else takes off: jobs/filler-lab-1. For each" in said
        assert covered(clean) == {"jobs", "others"}
        clean.install("--jobs-namespace=jobs", "--uncover")


def test_uninstall_takes_no_jobs_along(there: CommandLine) -> None:
    with job_in(there, names.NAMESPACE):
        assert "holds MPIJobs that would go with it: train" in there.refused("uninstall", "--yes")
        assert there.get(*HOOKS)["items"]


@pytest.mark.parametrize("gate", sorted(names.GATES))
def test_uninstall_leaves_no_pod_at_a_gate(there: CommandLine, gate: str) -> None:
    with pod_at_gate(there, gate):
        for command in (("uninstall", "--yes"), ("uninstall", "--dry-run")):
            said = there.refused(*command)
            assert "gate of ours that nobody else takes off: jobs/filler-lab-1." in said
        assert there.get(*HOOKS)["items"]


def test_waits_until_webhooks_are_trusted_and_leaves_the_bundle_alone(clean: CommandLine) -> None:
    clean.install()
    for name in (names.CONTROLLER, names.WEBHOOK):
        clean.cluster.kubectl(
            "rollout", "status", "-n", names.NAMESPACE, f"deployment/{name}", "--timeout=240s"
        )
    code, output = clean.run("install", "--timeout=1")
    assert code == 4
    assert "not trusted after 1 s" in output
    with Webhook.start(clean.cluster, accounts(clean.cluster)):
        code, output = clean.run("install", "--timeout=240")
        assert (code, outcomes(output)) == (0, {"unchanged"} | OLD)
        # kwok's pods have no program.
        assert output.count("The versions of these pods are not known: mpijob-elastic-") == 1
        hooks = clean.get(*HOOKS)["items"]
        assert all(hook["clientConfig"]["caBundle"] for one in hooks for hook in one["webhooks"])
        clean.install("--jobs-namespace=jobs", "--uncover")
        assert bundles(clean.get(*HOOKS)["items"]) == bundles(hooks)


def test_no_webhook_is_registered_before_the_pods_are_ready(clean: CommandLine) -> None:
    clean.cluster.kubectl("cordon", "-l", "kubernetes.io/os=linux")
    try:
        assert clean.run("install", "--timeout=1", f"--image={IMAGE}")[0] == 4
        pods = ("-n", names.NAMESPACE, "pod", "--all")
        kubectl_until_done(
            clean.cluster, "wait", *pods, "--for=condition=PodScheduled=false", patience=PATIENCE
        )
        code, output = clean.run("install", "--timeout=1")
    finally:
        clean.cluster.kubectl("uncordon", "-l", "kubernetes.io/os=linux")
    assert code == 4
    assert "not ready after 1 s" in output
    assert "Unschedulable" in output
    with pytest.raises(LabError, match="not found"):
        clean.get(*HOOKS)


def test_a_canary_that_the_webhook_is_not_called_for_is_told_and_removed(
    there: CommandLine,
) -> None:
    before = there.world()
    code, output = there.run("install", "--no-wait", "--canary=new", "--timeout=1")
    assert (code, "canary: the webhook was not called for a new job" in output) == (4, True), output
    there.cluster.kubectl("wait", "--for=delete", "namespace", "new", "--timeout=240s")
    assert there.world() == before


def test_can_be_interrupted_and_finished(clean: CommandLine) -> None:
    command = [sys.executable, "-m", "mpijob_elastic", "install", f"--image={IMAGE}"]
    command += [f"--kubeconfig={clean.cluster.kubeconfig}"]
    # No pod gets ready, so however late the signal comes, the webhooks are still to be registered.
    clean.cluster.kubectl("cordon", "-l", "kubernetes.io/os=linux")
    try:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert process.stdout is not None
        for line in process.stdout:
            if "ClusterRole " in line:
                break
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=120)
    finally:
        clean.cluster.kubectl("uncordon", "-l", "kubernetes.io/os=linux")
    assert process.returncode == 130
    assert "Run the same command again" in output
    assert outcomes(clean.install()) == {"created", "unchanged"} | OLD


def accounts(cluster: Cluster) -> Installed:
    return Installed(
        controller_kubeconfig=cluster.service_account_kubeconfig(names.NAMESPACE, names.CONTROLLER),
        webhook_kubeconfig=cluster.service_account_kubeconfig(names.NAMESPACE, names.WEBHOOK),
        webhook_port=free_ports(1)[0],
    )


@contextmanager
def job_in(lab: CommandLine, namespace: str) -> Iterator[None]:
    """A job that nothing works on."""
    job = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MPIJob",
        "metadata": {"name": "train"},
        "spec": {},
    }
    lab.cluster.kubectl("create", "-n", namespace, "-f", "-", stdin=json.dumps(job))
    try:
        yield
    finally:
        lab.cluster.kubectl("delete", "-n", namespace, "mpijob/train")


@contextmanager
def pod_at_gate(lab: CommandLine, gate: str) -> Iterator[None]:
    """A pod of a job that waits at that gate of ours."""
    pod = filler("lab-1")
    pod["metadata"]["labels"] = {names.LABEL_GROUP_NAME: names.GROUP}
    pod["spec"] = {"containers": pod["spec"]["containers"], "schedulingGates": [{"name": gate}]}
    lab.cluster.kubectl("create", "-n", "jobs", "-f", "-", stdin=json.dumps(pod))
    try:
        yield
    finally:
        lab.cluster.kubectl("delete", "pod", "-n", "jobs", "filler-lab-1")


def covered(lab: CommandLine) -> set[str]:
    """The namespaces that the webhooks are asked about, that both programs look at, and in which they have rights."""
    hooks = [hook for one in lab.get(*HOOKS)["items"] for hook in one["webhooks"]]
    asked = {tuple(hook["namespaceSelector"]["matchExpressions"][0]["values"]) for hook in hooks}
    pods = [
        one["spec"]["template"]["spec"]
        for one in lab.get("deployment", "-n", names.NAMESPACE)["items"]
    ]
    watched = {pod["containers"][0]["env"][0]["value"] for pod in pods}
    bindings = lab.get("rolebinding", "-A", f"--selector=app.kubernetes.io/name={names.PROGRAM}")[
        "items"
    ]
    rights = {one["metadata"]["namespace"] for one in bindings} - {names.NAMESPACE}
    [found] = asked
    assert {" ".join(found)} == watched
    assert rights == set(found)
    return rights


def images(lab: CommandLine) -> dict[str, str]:
    """The image of each Deployment."""
    found = lab.get("deployment", "-n", names.NAMESPACE)["items"]
    return {
        one["metadata"]["name"]: one["spec"]["template"]["spec"]["containers"][0]["image"]
        for one in found
    }


def bundles(configurations: list[dict[str, Any]]) -> list[str]:
    return [hook["clientConfig"]["caBundle"] for one in configurations for hook in one["webhooks"]]


def policies(lab: CommandLine) -> list[dict[str, Any]]:
    """Their types are checked by the controller manager a moment after they were made."""
    found: list[dict[str, Any]] = lab.get("validatingadmissionpolicy")["items"]
    return found


def conditions(one: dict[str, Any]) -> list[tuple[str, str]]:
    found = one.get("status", {}).get("conditions") or []
    return [(each["type"], each["status"]) for each in found]
