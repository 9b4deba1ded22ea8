"""A namespace for each measurement, and nothing left that the next one could notice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lab.cluster import Cluster

PATIENCE = "--timeout=60s"


@contextmanager
def namespace(cluster: Cluster, name: str) -> Iterator[str]:
    """A new namespace in which pods can be created; at the end its jobs go, with all that belongs to them.

    The namespace itself stays, empty, until the lab ends: its deletion takes the cluster seconds. Raises LabError.
    """
    cluster.kubectl("create", "namespace", name)
    # Admission refuses pods until the controller manager has made the namespace's ServiceAccount.
    cluster.kubectl("wait", "serviceaccount/default", "--for=create", "--namespace", name, PATIENCE)
    yield name
    cluster.kubectl("delete", "mpijobs", "--all", "--cascade=foreground", "--namespace", name, PATIENCE)
