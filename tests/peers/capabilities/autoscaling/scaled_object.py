"""The ScaledObject of docs/examples/hpa in the namespace of a test's job, with the HPA that KEDA makes of it."""

import asyncio
import json
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import yaml

from lab.cluster import Cluster
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.hpa import AT_ONCE, Autoscaler, applied
from tests.lab.job import Job
from tests.lab.waiting import seen
from tests.peers.capabilities.autoscaling.metrics_pipeline import EXAMPLES

Object = dict[str, Any]
NAME = "train"
# As hasty as a test: the example waits for minutes.
HASTY: Object = {
    "pollingInterval": 1,
    "cooldownPeriod": 1,
    "advanced": {"horizontalPodAutoscalerConfig": {"behavior": AT_ONCE}},
}


@dataclass(frozen=True, kw_only=True)
class ScaledObject:
    """A ScaledObject; it need not exist yet."""

    cluster: Cluster
    client: ApiWriter
    job: Job
    prometheus: str

    @property
    def hpa(self) -> Autoscaler:
        """The HPA that KEDA makes."""
        return Autoscaler(
            cluster=self.cluster, client=self.client, job=self.job, name=f"keda-hpa-{NAME}"
        )

    def at(self, url: str) -> "ScaledObject":
        """The same with another address of Prometheus."""
        return replace(self, prometheus=url)

    async def apply(self, **changes: Any) -> None:
        """Create it as the example is, but hasty and with changes of the spec; None removes a field."""
        found = yaml.safe_load((EXAMPLES / "keda.yaml").read_text())
        found["metadata"]["namespace"] = self.job.namespace
        [trigger] = found["spec"]["triggers"]
        query = trigger["metadata"]["query"].replace('"default"', f'"{self.job.namespace}"')
        trigger["metadata"] |= {"serverAddress": self.prometheus, "query": query}
        found["spec"] = {
            key: value
            for key, value in (found["spec"] | HASTY | changes).items()
            if value is not None
        }
        await asyncio.to_thread(applied, self.cluster, json.dumps(found), "--validate=strict")

    async def says(self, kind: str, status: str, text: str = "") -> None:
        """Wait until a condition says so."""

        async def conditions() -> list[Object]:
            found: Object = msgspec.json.decode(await self.client.get(self._path))
            return list(found.get("status", {}).get("conditions") or ())

        def told(found: list[Object]) -> bool:
            return any(
                (one["type"], one["status"]) == (kind, status) and text in one.get("message", "")
                for one in found
            )

        await seen(conditions, told, f"{kind} {status} {text!r} of the ScaledObject")

    async def warned(self, reason: str) -> str:
        """Wait for an Event on it with that reason; return what it says."""

        async def notes() -> list[str]:
            path = f"/apis/events.k8s.io/v1/namespaces/{self.job.namespace}/events"
            found = msgspec.json.decode(await self.client.get(path))["items"]
            return [
                one["note"]
                for one in found
                if one["reason"] == reason and one["regarding"]["name"] == NAME
            ]

        return (await seen(notes, bool, f"Event {reason} of the ScaledObject"))[0]

    @property
    def _path(self) -> str:
        return f"/apis/keda.sh/v1alpha1/namespaces/{self.job.namespace}/scaledobjects/{NAME}"
