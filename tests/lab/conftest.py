"""One lab for the whole session; a namespace of its own for each test."""

import os
import secrets
from collections.abc import Iterator

import pytest

from lab.cluster import Cluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A ready lab, which ends with the session even if this process is killed."""
    with Cluster.start(name=f"pytest-{os.getpid()}") as running:
        yield running


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """Name of a fresh namespace in which pods can be created."""
    name = f"test-{secrets.token_hex(4)}"
    cluster.kubectl("create", "namespace", name)
    # Admission refuses pods until the controller manager has made the namespace's ServiceAccount.
    cluster.kubectl("wait", "serviceaccount/default", "--for=create", "--namespace", name, "--timeout=60s")
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")
