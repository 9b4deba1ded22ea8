"""What et-operator does to a TrainingJob as far as Arena sees it: pods come and go, and a phase is said.

It stands in for the operator, whose Go module cannot be had from the module proxy. The labels,
names and phases are from its source (https://github.com/AliyunContainerService/et-operator,
pkg/controllers).
"""

import json
from dataclasses import dataclass
from typing import Any

from lab.cluster import Cluster
from mpijob_elastic.capabilities.et_operator.facts import TRAINING_JOBS
from mpijob_elastic.kube.resources import Resource

Object = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class TrainingJob:
    """A job by name."""

    cluster: Cluster
    namespace: str
    name: str

    def kubectl(self, *words: str, body: Object | None = None) -> str:
        """Run kubectl in its namespace; body: what it reads."""
        return self.cluster.kubectl(
            *words, f"--namespace={self.namespace}", stdin=json.dumps(body) if body else None
        )

    def read(self) -> Object:
        """Return the object."""
        found: Object = json.loads(
            self.kubectl("get", TRAINING_JOBS.plural, self.name, "-o", "json")
        )
        return found

    def start(self) -> None:
        """Create its pods, and say that it runs."""
        worker = self.read()["spec"]["etReplicaSpecs"]["worker"]
        self.create("launcher", f"{self.name}-launcher")
        for index in range(worker["replicas"]):
            self.create("worker", f"{self.name}-worker-{index}")
        self.say("Running")

    def create(self, role: str, pod: str) -> None:
        """Create a pod of the template, and wait until it runs."""
        job = self.read()
        template = job["spec"]["etReplicaSpecs"][role]["template"]
        ours = {
            "group-name": "kai.alibabacloud.com",
            "training-job-name": self.name,
            "training-job-role": role,
        }
        metadata = {
            **template["metadata"],
            "name": pod,
            "labels": {**template["metadata"]["labels"], **ours},
        }
        owner = {key: job[key] for key in ("apiVersion", "kind")} | {
            key: job["metadata"][key] for key in ("name", "uid")
        }
        metadata["ownerReferences"] = [{**owner, "controller": True}]
        spec = {**template["spec"], "restartPolicy": "Never"}
        self.kubectl(
            "create",
            "-f",
            "-",
            body={"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec},
        )
        self.kubectl("wait", "--for=condition=Ready", "--timeout=60s", f"pod/{pod}")

    def say(self, phase: str) -> None:
        """Say its phase."""
        patch = {
            "status": {"phase": phase, "conditions": [], "replicaStatuses": {}, "restartCount": 0}
        }
        self.kubectl(
            "patch",
            TRAINING_JOBS.plural,
            self.name,
            "--subresource=status",
            "--type=merge",
            f"--patch={json.dumps(patch)}",
        )

    def asked(self, resource: Resource) -> Object:
        """Return the spec of the only request of that kind."""
        [request] = json.loads(self.kubectl("get", resource.plural, "-o", "json"))["items"]
        found: Object = request["spec"]
        return found
