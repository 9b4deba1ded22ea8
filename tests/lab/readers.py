"""A user who may read some kinds of objects and change nothing."""

from pathlib import Path

from lab.cluster import Cluster
from tests.lab.waiting import may


def readers_kubeconfig(cluster: Cluster, namespace: str, *resources: str) -> Path:
    """The kubeconfig of a ServiceAccount that may read these and nothing else, in its namespace."""
    account = ("serviceaccount", "reader", "-n", namespace)
    cluster.kubectl("create", *account)
    verbs = ("--verb=get,list,watch", f"--resource={','.join(resources)}")
    cluster.kubectl("create", "role", "reader", "-n", namespace, *verbs)
    binding = ("--role=reader", f"--serviceaccount={namespace}:reader")
    cluster.kubectl("create", "rolebinding", "reader", "-n", namespace, *binding)
    for resource in resources:
        may(cluster, "reader", "list", resource, namespace=namespace)
    return cluster.service_account_kubeconfig(namespace, "reader")
