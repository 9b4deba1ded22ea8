"""Size: a fleet of jobs as an API server stores it, rendered when it is asked for.

Each object is a real one (samples/elastic-job.json, read from an API server beside mpi-operator v0.2.3 and our webhook)
with the names, uids and versions of its job. Only these are kept in memory.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from mpijob_elastic import names
from mpijob_elastic.kube import resources
from mpijob_elastic.kube.resources import Resource

Object = dict[str, Any]
SAMPLE = Path(__file__).parent / "samples" / "elastic-job.json"
JOB, NAMESPACE = "sample-job", "sample-namespace"
NODE = "lab-0"
WORKERS = 20
# Jobs of a namespace, and workers of a node.
JOBS_A_NAMESPACE, WORKERS_A_NODE = 50, 8


@dataclass(frozen=True, slots=True)
class Made:
    """An object of a fleet. template: its JSON with places for what follows; version: its resourceVersion."""

    template: bytes
    namespace: str
    job: str
    job_uid: str
    name: str
    uid: str
    node: str
    version: int

    def text(self) -> bytes:
        """Return its JSON."""
        return self.template % {
            b"namespace": self.namespace.encode(),
            b"job": self.job.encode(),
            b"job_uid": self.job_uid.encode(),
            b"name": self.name.encode(),
            b"uid": self.uid.encode(),
            b"node": self.node.encode(),
            b"version": b"%d" % self.version,
        }


class Fleet:
    """Makes jobs of `workers` workers each, numbered; `first`: the latest resourceVersion so far."""

    def __init__(self, *, workers: int = WORKERS, first: int) -> None:
        self.version = first
        self._workers = workers
        sample = json.loads(SAMPLE.read_text())
        uid = sample["mpijobs"]["metadata"]["uid"]
        hosts = [names.worker(JOB, index) for index in range(workers)]
        sample["mpijobs"]["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = workers
        sample["mpijobs"]["status"]["replicaStatuses"]["Worker"]["active"] = workers
        sample["roles"]["rules"][1]["resourceNames"] = hosts
        self._templates = {key: _template(sample[key], uid) for key in sample}

    def job(self, number: int) -> Iterator[tuple[Resource, Made]]:
        """Yield the objects of the job with this number, at new versions."""
        namespace, job = place(number)
        job_uid = _uid(number, 0)

        def made(key: str, name: str, part: int, node: int = 0) -> Made:
            self.version += 1
            uid = _uid(number, part)
            return Made(self._templates[key], namespace, job, job_uid, name, uid, f"node-{node}", self.version)

        yield resources.MPI_JOBS, made("mpijobs", job, 0)
        yield resources.CONFIG_MAPS, made("configmaps", names.config_map(job), 1)
        yield resources.ROLES, made("roles", names.launcher(job), 2)
        first = number * self._workers
        yield resources.PODS, made("launcher", names.launcher(job), 3, first // WORKERS_A_NODE)
        for index in range(self._workers):
            pod = names.worker(job, index)
            yield resources.PODS, made("worker", pod, 4 + index, (first + index) // WORKERS_A_NODE)

    def nodes(self, jobs: int) -> Iterator[tuple[Resource, Made]]:
        """Yield the nodes of so many jobs."""
        for number in range(jobs * self._workers // WORKERS_A_NODE + 1):
            self.version += 1
            name = f"node-{number}"
            yield resources.NODES, Made(self._templates["nodes"], "", "", "", name, _uid(number, 0), name, self.version)


def place(number: int) -> tuple[str, str]:
    """Return the namespace and the name of a job."""
    return f"tenant-{number // JOBS_A_NAMESPACE}", f"training-{number}"


def _template(sample: Object, job_uid: str) -> bytes:
    metadata = sample["metadata"]
    text = json.dumps({**sample, "metadata": {**metadata, "resourceVersion": "%(version)s"}}, separators=(",", ":"))
    text = text.replace("%", "%%").replace("%%(version)s", "%(version)s")
    own = {f'"name":"{metadata["name"]}"': '"name":"%(name)s"'} if metadata["name"] != JOB else {}
    known = {job_uid: "%(job_uid)s", metadata["uid"]: "%(uid)s", NODE: "%(node)s", JOB: "%(job)s"}
    for word, place in {**own, **known, NAMESPACE: "%(namespace)s"}.items():
        text = text.replace(word, place)
    return text.encode()


def _uid(number: int, part: int) -> str:
    return str(UUID(int=((number + 1) << 64) + part))
