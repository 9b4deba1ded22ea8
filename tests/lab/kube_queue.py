"""A double of KubeQueue, whose controllers are neither here nor handle MPIJobs of kubeflow.org/v1.

It does what its extensions for other jobs do, read in kube-queue/pytorch-operator-extension
(pkg/pytorch-operator/contorller/pytorchjob.go): once a QueueUnit is Dequeued, the annotation goes from the job, by an
update of the whole object; once the job is over or gone, the QueueUnit goes. Whoever submits the job makes the
QueueUnit, as Arena does. The phase, which KubeQueue's scheduler writes, is for the test to set.
"""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager

from lab.cluster import Cluster
from mpijob_elastic import names
from tests.lab.job import Job, Object
from tests.lab.upgrades import established

API = "scheduling.x-k8s.io/v1alpha1"
NAME = "queueunits.scheduling.x-k8s.io"
_ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": NAME, "annotations": {"api-approved.kubernetes.io": "unapproved, a test double"}},
    "spec": {
        "group": "scheduling.x-k8s.io",
        "names": {"kind": "QueueUnit", "plural": "queueunits"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "properties": {"spec": _ANYTHING, "status": _ANYTHING}}
                },
                "subresources": {"status": {}},
            }
        ],
    },
}


@contextmanager
def served(cluster: Cluster) -> Iterator[None]:
    """Have the API server serve QueueUnits as long as the block lasts."""
    cluster.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(_DEFINITION))
    established(cluster, f"crd/{NAME}")
    yield
    cluster.kubectl("delete", "crd", NAME)


class Extension:
    """The extension, for one job."""

    def __init__(self, cluster: Cluster, job: Job) -> None:
        self._cluster = cluster
        self._job = job

    async def submit(self, *, workers: int) -> None:
        """Create the QueueUnit and the job, which waits."""
        consumer = {"apiVersion": "kubeflow.org/v1", "kind": "MPIJob", "name": self._job.name}
        spec = {"consumerRef": consumer | {"namespace": self._job.namespace}, "resource": {"cpu": str(workers + 1)}}
        unit = {"apiVersion": API, "kind": "QueueUnit", "metadata": {"name": self._job.name}, "spec": spec}
        await self._kubectl("create", "-f", "-", stdin=json.dumps(unit))
        await self.say("Enqueued")
        await self._job.create(replicas=workers, annotations={names.KUBEQUEUE_SUSPEND: "true"})

    async def say(self, phase: str) -> None:
        """Write the phase of the QueueUnit."""
        patch = json.dumps({"status": {"phase": phase}})
        await self._kubectl("patch", NAME, self._job.name, "--subresource=status", "--type=merge", f"--patch={patch}")

    async def sync(self) -> None:
        """Look at the QueueUnit and its job once."""
        unit = await self._get(NAME)
        found = await self._get("mpijob")
        if not unit:
            return
        conditions = found.get("status", {}).get("conditions") or [{"type": ""}]
        if not found or conditions[-1]["type"] in ("Failed", "Succeeded"):
            await self._kubectl("delete", NAME, self._job.name)
        elif unit["status"]["phase"] == "Dequeued":
            found["metadata"]["annotations"].pop(names.KUBEQUEUE_SUSPEND, None)
            await self._kubectl("replace", "-f", "-", stdin=json.dumps(found))

    async def waits(self) -> bool:
        """Tell whether the QueueUnit is there."""
        return bool(await self._get(NAME))

    async def _get(self, kind: str) -> Object:
        text = await self._kubectl("get", kind, self._job.name, "--ignore-not-found", "-o", "json")
        found: Object = json.loads(text or "{}")
        return found

    async def _kubectl(self, *words: str, stdin: str | None = None) -> str:
        return await asyncio.to_thread(self._cluster.kubectl, "-n", self._job.namespace, *words, stdin=stdin)
