"""API groups that a program of this machine serves, behind the API server's aggregation layer as in a cluster.

An APIService names a Service, here of type ExternalName, because no other leads to loopback.
"""

import base64
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from lab.cluster import Cluster

Object = dict[str, Any]
SERVICE = {"name": "aggregated", "namespace": "default"}
# The name that the API server expects in the certificate.
HOST = "aggregated.default.svc"


@contextmanager
def aggregated(
    cluster: Cluster, groups: Iterable[str], *, port: int, authority: bytes
) -> Iterator[None]:
    """Have the API server forward these groups ("v1beta1.metrics.k8s.io") to a port as long as the block lasts.

    They are available when the block begins. `authority` has signed the certificate of who listens
    there.
    """
    groups = list(groups)
    objects = json.dumps(_registration(groups, port, authority))
    cluster.kubectl("apply", "-f", "-", stdin=objects)
    names = [f"apiservice/{group}" for group in groups]
    cluster.kubectl("wait", "--for=condition=Available", "--timeout=240s", *names)
    yield
    cluster.kubectl("delete", "-f", "-", stdin=objects)


def _registration(groups: Iterable[str], port: int, authority: bytes) -> Object:
    service = {"type": "ExternalName", "externalName": "localhost"}
    items: list[Object] = [
        {"apiVersion": "v1", "kind": "Service", "metadata": SERVICE, "spec": service}
    ]
    for name in groups:
        version, _, group = name.partition(".")
        spec = {
            "group": group,
            "version": version,
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
        }
        spec |= {
            "service": {**SERVICE, "port": port},
            "caBundle": base64.b64encode(authority).decode(),
        }
        kind = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService"}
        items.append({**kind, "metadata": {"name": name}, "spec": spec})
    return {"apiVersion": "v1", "kind": "List", "items": items}
