"""A HorizontalPodAutoscaler on the lab, as a user applies it and looks at it."""

import asyncio
import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from lab.cluster import Cluster
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.job import Job
from tests.lab.waiting import seen

Object = dict[str, Any]
# For `applied`: what would the API server take, and what would it say?
STRICT = ("--dry-run=server", "--validate=strict")
# Acts on what it sees at once. Kubernetes would wait for five minutes before it makes anything
# smaller.
AT_ONCE: Object = {"scaleDown": {"stabilizationWindowSeconds": 0}}
# A worker for each that waits. Unless told otherwise a HPA adds up to four in 15 s, or doubles.
QUEUE: Object = {
    "type": "External",
    "external": {
        "metric": {"name": "queue"},
        "target": {"type": "AverageValue", "averageValue": "1"},
    },
}


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A HPA's status: conditions by type as (status, reason, message), how many workers it wants, what it measured."""

    conditions: dict[str, tuple[str, str, str]]
    desired: int
    metrics: list[Object]

    def says(self, kind: str, status: str, reason: str, text: str = "") -> bool:
        """Tell whether the condition of that type says so."""
        found = self.conditions.get(kind, ("", "", ""))
        return found[:2] == (status, reason) and text in found[2]


@dataclass(frozen=True, kw_only=True)
class Autoscaler:
    """A HPA for a job; it need not exist yet."""

    cluster: Cluster
    client: ApiWriter
    job: Job
    name: str = "train"

    async def apply(
        self, least: int, most: int, *, metric: Object = QUEUE, behavior: Object = AT_ONCE
    ) -> str:
        """Create or change it with kubectl; returns the warnings."""
        target = {"apiVersion": "kubeflow.org/v1", "kind": "MPIJob", "name": self.job.name}
        spec = {"scaleTargetRef": target, "minReplicas": least, "maxReplicas": most}
        spec |= {"metrics": [metric], "behavior": behavior}
        metadata = {"name": self.name, "namespace": self.job.namespace}
        body = {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": metadata,
            "spec": spec,
        }
        return await asyncio.to_thread(applied, self.cluster, json.dumps(body))

    async def seen(self) -> Seen:
        """Its status."""
        path = f"/apis/autoscaling/v2/namespaces/{self.job.namespace}/horizontalpodautoscalers/{self.name}"
        status = msgspec.json.decode(await self.client.get(path)).get("status", {})
        found = {
            one["type"]: (one["status"], one["reason"], one["message"])
            for one in status.get("conditions") or ()
        }
        metrics = status.get("currentMetrics") or []
        return Seen(conditions=found, desired=status.get("desiredReplicas", 0), metrics=metrics)

    async def until(self, holds: Callable[[Seen], bool]) -> Seen:
        """Wait until its status is so."""
        return await seen(self.seen, holds, f"status of HPA {self.name}")


def applied(cluster: Cluster, text: str, *options: str) -> str:
    """Run `kubectl apply`, which must succeed; return its stderr."""
    command = [
        str(cluster.binaries.kubectl),
        "--kubeconfig",
        str(cluster.kubeconfig),
        "apply",
        "-f",
        "-",
        *options,
    ]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr
