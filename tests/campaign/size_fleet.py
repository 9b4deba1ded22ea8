"""Size: a fleet of jobs, and an API server over TLS that keeps it and plays the kubelet.

Each object is a real one (samples/elastic-job.json, read from an API server beside mpi-operator
v0.2.3 and our webhook) with the names, uids and versions of its job. Only these are kept in memory;
its JSON is made when it is asked for.
"""

import asyncio
import json
import ssl
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Self
from uuid import UUID

from lab.kubeconfig import Server, write_token_kubeconfig
from lab.pki import LOOPBACK, Authority
from mpijob_elastic import names
from mpijob_elastic.kube import resources
from tests.doubles.api import Object, Text, TinyApi, refused
from tests.doubles.direct import Sent
from tests.doubles.shells import STATUS, STDOUT, SUCCESS, Asked, Message, Shells

SAMPLE = Path(__file__).parent / "samples" / "elastic-job.json"
JOB, NAMESPACE, NODE = "sample-job", "sample-namespace", "lab-0"
WORKERS = 20
# Jobs of a namespace, and workers of a node.
JOBS_A_NAMESPACE, WORKERS_A_NODE = 50, 8

# An object's path, its resourceVersion, and what makes its JSON.
Made = tuple[str, int, Callable[[], bytes]]


class Fleet:
    """Makes jobs of `workers` workers each, numbered; `first`: the latest resourceVersion so far."""

    def __init__(self, *, workers: int = WORKERS, first: int) -> None:
        self.version = first
        self._workers = workers
        sample = json.loads(SAMPLE.read_text())
        job, role = sample["mpijobs"], sample["roles"]
        job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = workers
        job["status"]["replicaStatuses"]["Worker"]["active"] = workers
        role["rules"][1]["resourceNames"] = [names.worker(JOB, index) for index in range(workers)]
        self._templates = {key: _template(sample[key], job["metadata"]["uid"]) for key in sample}

    def job(self, number: int) -> Iterator[Made]:
        """Yield the objects of the job with this number, at new versions."""
        namespace, job = place(number)
        first = number * self._workers
        pods = resources.PODS.path(namespace)
        yield self._made("mpijobs", resources.MPI_JOBS.path(namespace), job, number)
        yield self._made(
            "configmaps", resources.CONFIG_MAPS.path(namespace), names.config_map(job), number, 1
        )
        yield self._made("roles", resources.ROLES.path(namespace), names.launcher(job), number, 2)
        yield self._made(
            "launcher", pods, names.launcher(job), number, 3, node=first // WORKERS_A_NODE
        )
        for index in range(self._workers):
            node = (first + index) // WORKERS_A_NODE
            yield self._made("worker", pods, names.worker(job, index), number, 4 + index, node=node)

    def nodes(self, jobs: int) -> Iterator[Made]:
        """Yield the nodes of so many jobs."""
        for number in range(jobs * self._workers // WORKERS_A_NODE + 1):
            yield self._made("nodes", resources.NODES.path(), f"node-{number}", number, node=number)

    def _made(
        self, key: str, collection: str, name: str, number: int, part: int = 0, *, node: int = 0
    ) -> Made:
        self.version += 1
        make = partial(_text, self._templates[key], name, number, part, node, self.version)
        return f"{collection}/{name}", self.version, make


class FleetApi(TinyApi):
    """It takes in a fleet; a worker above its job's size is idle, any other busy; a pod goes after its grace."""

    def __init__(self) -> None:
        super().__init__(bookmark_every=50.0)
        self.hook = self._answer
        self.streams["/exec"] = Shells(self._look).serve
        self.put(resources.LEASES.path(names.NAMESPACE, names.LEASE), {})
        # As v0.2.3 installs it, without the subresource scale.
        definition = f"{resources.MPI_JOBS.plural}.{resources.MPI_JOBS.group}"
        self.put(resources.CUSTOM_RESOURCE_DEFINITIONS.path(None, definition), {"spec": {}})

    async def __aenter__(self) -> Self:
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        authority = Authority(folder, "ca", now=datetime.now(UTC))
        pair = authority.issue("server", user="server", hosts=(LOOPBACK,))
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(pair.certificate, pair.key)
        url = f"https://{LOOPBACK}:{await self.listen(tls)}"
        self.kubeconfig = folder / "kubeconfig"
        server = Server(url=url, ca=authority.certificate.read_bytes())
        write_token_kubeconfig(
            self.kubeconfig, server, user="controller", token="t", namespace=names.NAMESPACE
        )
        return self

    def store(self, fleet: Iterable[Made]) -> None:
        """Take in objects before anybody watches."""
        for path, self.revision, make in fleet:
            self.objects.texts[path] = make

    def written(self) -> list[str]:
        """Return the paths of all writes but the Lease's; Events are not stored."""
        return [path for _, path in self.writes if "/leases/" not in path]

    def pods(self, namespace: str, job: str) -> list[str]:
        """Return the paths of a job's pods."""
        return [
            path
            for path in self.objects
            if path.startswith(resources.PODS.path(namespace, f"{job}-"))
        ]

    def _answer(self, sent: Sent) -> object | None:
        if sent.method == "POST" and sent.path.endswith("/events"):
            return {}
        if sent.method == "DELETE":
            return self._end(sent)
        return None

    def _collection(self, sent: Sent) -> list[Text]:
        namespace, _, plural = sent.path.partition("/namespaces/")[2].partition("/")
        if plural != resources.PODS.plural:
            return super()._collection(sent)
        selector = dict(
            term.split("=") for term in sent.query["labelSelector"].split(",") if "=" in term
        )
        return [
            self.objects.texts[path]
            for path in self.pods(namespace, selector[names.LABEL_JOB_NAME])
        ]

    def _end(self, sent: Sent) -> Object:
        pod = self.objects[sent.path]
        if any(
            pod["metadata"][key] != value
            for key, value in sent.body.get("preconditions", {}).items()
        ):
            raise refused(409, "Conflict")
        self.writes.append((sent.method, sent.path))
        grace = sent.body.get("gracePeriodSeconds", 30)
        if "deletionTimestamp" not in pod["metadata"]:
            going = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            pod["metadata"] |= {"deletionTimestamp": going, "deletionGracePeriodSeconds": grace}
            asyncio.get_running_loop().call_later(grace, self.remove, sent.path)
        return self.put(sent.path, pod)

    async def _look(self, asked: Asked) -> AsyncIterator[Message]:
        job, _, index = asked.pod.rpartition("-worker-")
        if job:
            spec = self.objects[resources.MPI_JOBS.path(asked.namespace, job)]["spec"]
            surplus = int(index) >= spec["mpiReplicaSpecs"]["Worker"]["replicas"]
            yield STDOUT, "idle\n" if surplus else "busy\n"
        yield STATUS, SUCCESS


def place(number: int) -> tuple[str, str]:
    """Return the namespace and the name of a job."""
    return f"tenant-{number // JOBS_A_NAMESPACE}", f"training-{number}"


def _text(template: str, name: str, number: int, part: int, node: int, version: int) -> bytes:
    namespace, job = place(number)
    own = {"name": name, "uid": _uid(number, part), "node": f"node-{node}", "version": version}
    return (
        template % {"namespace": namespace, "job": job, "job_uid": _uid(number, 0), **own}
    ).encode()


def _template(sample: dict[str, Any], job_uid: str) -> str:
    """Return the JSON of a sample with places for what is its own."""
    metadata = sample["metadata"]
    text = json.dumps(
        {**sample, "metadata": {**metadata, "resourceVersion": "%(version)s"}},
        separators=(",", ":"),
    )
    text = text.replace("%", "%%").replace("%%(version)s", "%(version)s")
    own = {f'"name":"{metadata["name"]}"': '"name":"%(name)s"'} if metadata["name"] != JOB else {}
    known = {job_uid: "%(job_uid)s", metadata["uid"]: "%(uid)s", NODE: "%(node)s", JOB: "%(job)s"}
    for word, there in {**own, **known, NAMESPACE: "%(namespace)s"}.items():
        text = text.replace(word, there)
    return text


def _uid(number: int, part: int) -> str:
    return str(UUID(int=((number + 1) << 64) + part))
