"""Create a namespace for each measurement."""

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager

from lab.cluster import Cluster
from lab.errors import LabError

PATIENCE = 60.0  # seconds
POLL = 0.05  # seconds


def create(cluster: Cluster, purpose: str) -> str:
    """Create a namespace for pods, named after its purpose. It stays. Raises LabError."""
    name = f"{purpose}-{secrets.token_hex(3)}"
    cluster.kubectl("create", "namespace", name)
    # Admission refuses pods until the controller manager has created the namespace's ServiceAccount.
    account = ("get", "serviceaccount/default", "--ignore-not-found", "--output=name", "--namespace", name)
    deadline = time.monotonic() + PATIENCE
    while not cluster.kubectl(*account):
        if time.monotonic() > deadline:
            raise LabError(f"namespace {name} has no ServiceAccount after {PATIENCE:.0f} s; see the lab's logs.")
        time.sleep(POLL)
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
    timeout = f"--timeout={PATIENCE:.0f}s"
    cluster.kubectl("delete", "mpijobs", "--all", "--cascade=foreground", "--namespace", name, timeout)
