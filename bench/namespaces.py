"""Create a namespace for each measurement."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager

from lab.cluster import Cluster

TIMEOUT = "--timeout=240s"


def create(cluster: Cluster, purpose: str) -> str:
    """Create a namespace for pods, named after its purpose. It stays. Raises LabError."""
    name = f"{purpose}-{secrets.token_hex(3)}"
    cluster.kubectl("create", "namespace", name)
    # Admission refuses pods until the controller manager has created the namespace's
    # ServiceAccount.
    cluster.kubectl("wait", "serviceaccount/default", "--for=create", "--namespace", name, TIMEOUT)
    return name


@contextmanager
def passing(cluster: Cluster, purpose: str) -> Iterator[str]:
    """Create a namespace; at the end delete its jobs with their objects, and wait for that.

    Raises LabError.
    """
    name = create(cluster, purpose)
    try:
        yield name
    finally:
        empty(cluster, name)


def empty(cluster: Cluster, name: str) -> None:
    """Delete the jobs of a namespace with their objects, and wait for that. Raises LabError."""
    cluster.kubectl(
        "delete", "mpijobs", "--all", "--cascade=foreground", "--namespace", name, TIMEOUT
    )
