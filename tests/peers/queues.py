"""The queue of docs/examples/kueue in a namespace of a lab."""

import json
from pathlib import Path
from typing import Any

import yaml

from lab.cluster import Cluster
from lab.kueue import queue
from tests.lab.waiting import PATIENCE, kubectl_until_done
from tests.peers.kueue import API

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "kueue"


def example(file: str) -> dict[str, Any]:
    """Return the objects of an example in the documentation by kind."""
    items = yaml.safe_load_all((EXAMPLES / f"{file}.yaml").read_text())
    return {item["kind"]: item for item in items}


def flavor_and_class(cluster: Cluster) -> None:
    """Make what all queues share: the flavor of the example, and a class of priority called high."""
    high = {"kind": "WorkloadPriorityClass", "metadata": {"name": "high"}, "value": 1000}
    for item in (example("queues")["ResourceFlavor"], high):
        item["apiVersion"] = API
        # Kueue's webhooks may not answer yet.
        kubectl_until_done(cluster, "apply", "-f", "-", stdin=json.dumps(item), patience=PATIENCE)


def queue_of_four(cluster: Cluster, namespace: str, name: str = "team") -> str:
    """Make the example's queue with its four GPUs, of this namespace alone; return the value of the label, `name`."""
    for item in queue(namespace, name=name, shared=namespace):
        # Kueue's webhooks may not answer yet.
        kubectl_until_done(cluster, "apply", "-f", "-", stdin=json.dumps(item), patience=PATIENCE)
    return name
