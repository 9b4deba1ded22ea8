"""Pods of the real node are real: they run, can be looked into, reach each other and the API server, and end."""

from lab.cluster import Cluster
from lab.node import addresses
from tests.real.pods import await_phase, create, manifest
from tests.real.two_nodes import FIRST


def test_a_pod_runs_and_tells(cluster: Cluster, namespace: str) -> None:
    create(cluster, namespace, manifest("one", "echo out; echo err >&2; exit 3"))
    await_phase(cluster, namespace, "one", "Failed")
    # The two come through two pipes, in either order.
    assert set(cluster.kubectl("logs", "one", "--namespace", namespace).splitlines()) == {"out", "err"}
    code = "jsonpath={.status.containerStatuses[0].state.terminated.exitCode} {.spec.nodeName}"
    assert cluster.kubectl("get", "pod", "one", "--namespace", namespace, "-o", code) == f"3 {FIRST}"


def test_exec_runs_in_the_pod(cluster: Cluster, namespace: str) -> None:
    create(cluster, namespace, manifest("one", "echo here > /told; sleep 3600"))
    await_phase(cluster, namespace, "one", "Running")
    into = ("exec", "one", "--namespace", namespace, "--")
    assert cluster.kubectl(*into, "cat", "/told") == "here\n"
    assert cluster.kubectl("exec", "-i", "one", "--namespace", namespace, "--", "cat", stdin="through\n") == "through\n"


def test_a_pod_reaches_the_api_server_as_its_service_account(cluster: Cluster, namespace: str) -> None:
    cluster.kubectl("create", "role", "reader", "--verb=get", "--resource=pods", "--namespace", namespace)
    binding = ("create", "rolebinding", "reader", "--role=reader", f"--serviceaccount={namespace}:default")
    cluster.kubectl(*binding, "--namespace", namespace)
    script = "echo $KUBERNETES_SERVICE_HOST; kubectl get pod one -o name; kubectl get secrets"
    create(cluster, namespace, manifest("one", script))
    await_phase(cluster, namespace, "one", "Failed")
    address, pod, refusal = cluster.kubectl("logs", "one", "--namespace", namespace).splitlines()
    assert (address, pod) == (addresses.SERVICE_ADDRESS, "pod/one")
    assert f'User "system:serviceaccount:{namespace}:default" cannot list resource "secrets"' in refusal


def test_a_pod_sees_a_change_of_its_config_map_once_it_is_touched(cluster: Cluster, namespace: str) -> None:
    cluster.kubectl("create", "configmap", "hosts", "--from-literal=hosts=before", "--namespace", namespace)
    volumes = [{"name": "config", "configMap": {"name": "hosts"}}]
    pod = manifest("one", "until grep after /config/hosts; do sleep 0.1; done", volumes=volumes)
    pod["spec"]["containers"][0]["volumeMounts"] = [{"name": "config", "mountPath": "/config"}]
    create(cluster, namespace, pod)
    await_phase(cluster, namespace, "one", "Running")
    cluster.kubectl("patch", "configmap", "hosts", "--namespace", namespace, "-p", '{"data": {"hosts": "after"}}')
    cluster.kubectl("annotate", "pod", "one", "touched=1", "--namespace", namespace)
    await_phase(cluster, namespace, "one", "Succeeded")
