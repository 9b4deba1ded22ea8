"""The measured jobs: elastic MPIJobs as a user writes them, and their objects in the cluster."""

import asyncio
import re
from dataclasses import dataclass
from typing import Any

import msgspec

from mpijob_elastic import names
from mpijob_elastic.kube import resources
from mpijob_elastic.kube.writer import MERGE_PATCH, ApiWriter

# Marks our requests in the audit log.
AGENT = "mpijob-elastic-bench"
JOB = "train"
AT_ONCE = "0s"

_HOST = re.compile(r"^echo (\S+):[1-9]\d*$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Found:
    """The objects of a job: workers in its Role, pods in discover_hosts.sh, phases of its worker pods by name."""

    role: frozenset[str]
    hosts: frozenset[str]
    workers: dict[str, str]

    def lacks(self, job: str, replicas: int) -> str:
        """Return in words what is wrong for so many workers; "" if all is right."""
        wanted = {names.worker(job, index) for index in range(replicas)}
        if self.workers.keys() != wanted or set(self.workers.values()) - {"Running"}:
            return f"worker pods are {self.workers}, not {replicas} running pods"
        if not self.role >= wanted:
            return f"the Role names {sorted(self.role)}, not {replicas} workers"
        return (
            ""
            if self.hosts == wanted
            else f"discover_hosts.sh names {sorted(self.hosts)}, not {replicas} workers"
        )


def manifest(name: str, *, replicas: int, drain_timeout: str) -> dict[str, Any]:
    """Return an elastic MPIJob."""
    command = [
        "horovodrun",
        "-np",
        "1",
        "--host-discovery-script",
        names.DISCOVER_HOSTS_PATH,
        "python",
        "train.py",
    ]
    return {
        "apiVersion": resources.MPI_JOBS.api_version,
        "kind": resources.MPI_JOBS.kind,
        "metadata": {"name": name, "annotations": {names.DRAIN_TIMEOUT: drain_timeout}},
        "spec": {
            "slotsPerWorker": 1,
            "cleanPodPolicy": "Running",
            "mpiReplicaSpecs": {
                "Launcher": {"replicas": 1, "template": _template("launcher", command)},
                "Worker": {"replicas": replicas, "template": _template("worker")},
            },
        },
    }


def _template(name: str, command: list[str] | None = None) -> dict[str, Any]:
    limits = {} if command else {"resources": {"limits": {"nvidia.com/gpu": 1}}}
    return {
        "spec": {
            "containers": [{"name": name, "image": "example/train:1", "command": command, **limits}]
        }
    }


async def create(client: ApiWriter, namespace: str, job: dict[str, Any]) -> bytes:
    """Create an MPIJob and return it. Raises as `ApiReader` does."""
    return await client.create_object(resources.MPI_JOBS.path(namespace), body=job)


async def resize(client: ApiWriter, namespace: str, job: str, *, replicas: int) -> None:
    """Edit the number of workers. Raises as `ApiReader` does."""
    patch = {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": replicas}}}}
    path = resources.MPI_JOBS.path(namespace, job)
    await client.patch_object(path, body=patch, content_type=MERGE_PATCH)


async def look(client: ApiWriter, namespace: str, job: str) -> Found:
    """Read the job's objects. Raises as `ApiReader` does."""
    selector = {
        "labelSelector": f"{names.LABEL_JOB_NAME}={job},{names.LABEL_JOB_ROLE}={names.ROLE_WORKER}"
    }
    role, config, pods = await asyncio.gather(
        client.get(resources.ROLES.path(namespace, names.launcher(job))),
        client.get(resources.CONFIG_MAPS.path(namespace, names.config_map(job))),
        client.get(resources.PODS.path(namespace), query=selector),
    )
    return found(msgspec.json.decode(role), msgspec.json.decode(config), msgspec.json.decode(pods))


def found(role: dict[str, Any], config: dict[str, Any], pods: dict[str, Any]) -> Found:
    """Return the objects from a job's Role, ConfigMap and list of worker pods."""
    executed = [rule for rule in role.get("rules") or () if rule.get("resources") == ["pods/exec"]]
    script = (config.get("data") or {}).get(names.KEY_DISCOVER_HOSTS, "")
    return Found(
        role=frozenset(name for rule in executed for name in rule.get("resourceNames") or ()),
        hosts=frozenset(map(names.pod_of, hosts(script))),
        workers={pod["metadata"]["name"]: pod["status"].get("phase", "") for pod in pods["items"]},
    )


def hosts(script: str) -> tuple[str, ...]:
    """Return the hosts that a discover_hosts.sh prints, without slots."""
    return tuple(_HOST.findall(script))
