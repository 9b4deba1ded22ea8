"""Waits for what `kubectl wait --for=create` waits for, which kubectl has from 1.31 on."""

from __future__ import annotations

import time

from lab.cluster import Cluster
from lab.errors import LabError

PATIENCE = 240.0  # seconds


def has_account(cluster: Cluster, namespace: str) -> None:
    """Wait until pods can be created in a namespace: admission refuses them before it has its ServiceAccount."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            cluster.kubectl("get", "serviceaccount/default", "--namespace", namespace)
        except LabError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return
