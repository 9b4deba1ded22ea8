"""A namespace for each measurement."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager

from lab.cluster import Cluster

PATIENCE = "--timeout=60s"


def create(cluster: Cluster, purpose: str) -> str:
    """A new namespace in which pods can be created, named after its purpose; it stays. Raises LabError."""
    name = f"{purpose}-{secrets.token_hex(3)}"
    cluster.kubectl("create", "namespace", name)
    # Admission refuses pods until the controller manager has made the namespace's ServiceAccount.
    cluster.kubectl("wait", "serviceaccount/default", "--for=create", "--namespace", name, PATIENCE)
    return name


@contextmanager
def passing(cluster: Cluster, purpose: str) -> Iterator[str]:
    """A new namespace whose jobs go at the end, with all that belongs to them, before the next one begins.

    Raises LabError.
    """
    name = create(cluster, purpose)
    try:
        yield name
    finally:
        cluster.kubectl("delete", "mpijobs", "--all", "--cascade=foreground", "--namespace", name, PATIENCE)
