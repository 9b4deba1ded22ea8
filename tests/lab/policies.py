"""The two accounts and an administrator, who send requests that an admission policy judges."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from lab.cluster import Cluster
from lab.install import Installed
from lab.operator import objects
from lab.operator.objects import UID, Object
from mpijob_elastic import names
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.resources import MPI_JOBS, PODS, Resource
from mpijob_elastic.kube.writer import JSON_PATCH, MERGE_PATCH, ApiWriter
from tests.lab.waiting import PATIENCE

JOB = "train"
LAUNCHER, WORKER, GATED = names.launcher(JOB), names.worker(JOB, 0), names.worker(JOB, 1)
CONFIG = names.config_map(JOB)
DRY_RUN = {"dryRun": "All"}
THEIRS, OTHERS, OURS = (
    {"name": gate} for gate in ("x.example/theirs", "mpijob-elastic/other", names.GATE_SUSPENDED)
)


@dataclass(frozen=True, kw_only=True)
class Sent:
    """A request of an account, `ok` if it goes through; UID in its body stands for that of the job."""

    ok: bool
    by: str
    method: str
    resource: Resource
    name: str = ""
    part: str | None = None
    body: Any = None
    query: dict[str, str] | None = None


@dataclass(frozen=True, kw_only=True)
class Accounts:
    """Controller, webhook and administrator, and what they send to a namespace with one job's objects."""

    clients: dict[str, ApiWriter]
    namespace: str
    uid: str

    async def goes_through(self, sent: Sent, policy: str) -> bool:
        """Tell whether it does; raise what is no refusal of that policy."""
        client, body = (
            self.clients[sent.by],
            json.loads(json.dumps(sent.body).replace(UID, self.uid)),
        )
        path = sent.resource.path(self.namespace, sent.name, sent.part)
        try:
            if sent.method == "create":
                await client.create_object(path, body=body, query=sent.query)
            elif sent.method == "delete":
                # A request with a body has its options there, and the server looks for them nowhere
                # else.
                await client.delete_object(
                    path, options={"dryRun": ["All"]} if sent.query else None
                )
            else:
                form = JSON_PATCH if isinstance(body, list) else MERGE_PATCH
                await client.patch_object(path, body=body, content_type=form, query=sent.query)
        except errors.Forbidden as error:
            if f"ValidatingAdmissionPolicy '{policy}' with binding" not in str(error):
                raise
            return False
        return True

    async def expect(self, policy: str, *requests: Sent) -> None:
        """Send these in order, and hold the answers against what is expected."""
        assert [
            sent for sent in requests if await self.goes_through(sent, policy) is not sent.ok
        ] == []


def typed(resource: Resource) -> Object:
    return {"apiVersion": resource.api_version, "kind": resource.kind}


def patched(
    ok: bool,
    resource: Resource,
    name: str,
    *bodies: Any,
    by: str = "controller",
    part: str | None = None,
) -> list[Sent]:
    return [
        Sent(ok=ok, by=by, method="patch", resource=resource, name=name, part=part, body=body)
        for body in bodies
    ]


def created(ok: bool, resource: Resource, *bodies: Any, by: str = "controller") -> list[Sent]:
    return [
        Sent(ok=ok, by=by, method="create", resource=resource, body=typed(resource) | body)
        for body in bodies
    ]


def deleted(ok: bool, resource: Resource, name: str) -> Sent:
    return Sent(ok=ok, by="controller", method="delete", resource=resource, name=name)


def by_administrator(body: Any, part: str | None = None) -> Sent:
    """A change of the job, after which something else holds."""
    [change] = patched(True, MPI_JOBS, JOB, body, by="administrator", part=part)
    return change


@pytest.fixture
async def accounts(
    cluster: Cluster, client: ApiWriter, installed: Installed, namespace: str
) -> AsyncIterator[Accounts]:
    create(cluster, namespace, [mpi_job(namespace)])
    uid = cluster.kubectl("get", "mpijob", JOB, "-n", namespace, "-o", "jsonpath={.metadata.uid}")
    create(
        cluster,
        namespace,
        json.loads(
            json.dumps([*jobs_objects(namespace), *foreign_objects(namespace)]).replace(UID, uid)
        ),
    )
    async with AsyncExitStack() as stack:
        kubeconfigs = {
            "controller": installed.controller_kubeconfig,
            "webhook": installed.webhook_kubeconfig,
        }
        clients = {
            account: await stack.enter_async_context(
                await connect(user_agent="test", kubeconfig=kubeconfig)
            )
            for account, kubeconfig in kubeconfigs.items()
        }
        found = Accounts(clients={**clients, "administrator": client}, namespace=namespace, uid=uid)
        await policies_act(found)
        yield found


async def policies_act(accounts: Accounts) -> None:
    """A new policy takes a moment."""
    tried = Sent(
        ok=False, by="controller", method="delete", resource=PODS, name="foreign", query=DRY_RUN
    )
    async with asyncio.timeout(PATIENCE):
        while await accounts.goes_through(tried, "mpijob-elastic-pods"):
            await asyncio.sleep(0.05)


def annotations(values: dict[str, str | None]) -> Object:
    return {"metadata": {"annotations": values}}


def added(path: str, value: Any, *, instead: bool = False) -> Object:
    return {"op": "replace" if instead else "add", "path": path, "value": value}


def removed(path: str) -> Object:
    return {"op": "remove", "path": path}


def size(replicas: int) -> Object:
    return {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": replicas}}}}


TOUCHED = annotations({names.REFRESHED: "one"})
UNOWNED: Object = {"metadata": {"ownerReferences": None}}
HELD: Object = {"metadata": {"finalizers": ["x.example/y"]}}
# Other admission plugins run before the policies, so to these it looks as if we had sent it.
MARKS = {"policy.example.com/checked": "yes"}
MARKED: Object = {"metadata": {"annotations": MARKS, "labels": MARKS}}
UNLABELLED: Object = {"metadata": {"labels": {"app": None}}}
EVIL_IMAGE = [added("/spec/containers/0/image", "evil", instead=True)]


def in_role(role: str | None) -> Object:
    return {"metadata": {"labels": {names.LABEL_JOB_ROLE: role}}}


def owned(name: str, **metadata: Any) -> Object:
    reference = {**typed(MPI_JOBS), "name": JOB, "uid": UID, "controller": True}
    return {"metadata": {"name": name, "ownerReferences": [reference], **metadata}}


def create(cluster: Cluster, namespace: str, bodies: list[Object]) -> None:
    stdin = json.dumps({"apiVersion": "v1", "kind": "List", "items": bodies})
    cluster.kubectl("create", "-n", namespace, "-f", "-", stdin=stdin)


def mpi_job(namespace: str, **facts: Any) -> Object:
    job = objects.mpi_job(
        name=JOB,
        namespace=namespace,
        **{"replicas": 1, "annotations": {"kept": "yes"}, "uid": UID, **facts},
    )
    job["metadata"]["labels"] = {names.LABEL_APP: JOB}
    return job


def pod(name: str, role: str = "", **spec: Any) -> Object:
    labels = {
        names.LABEL_GROUP_NAME: names.GROUP,
        names.LABEL_JOB_NAME: JOB,
        **({names.LABEL_JOB_ROLE: role} if role else {}),
    }
    metadata = {
        **(owned(name) if role else {"metadata": {"name": name}})["metadata"],
        "labels": labels,
    }
    containers = [{"name": "main", "image": "none"}]
    return typed(PODS) | {
        "metadata": metadata | {"annotations": {"kept": "yes"}},
        "spec": {"containers": containers, **spec},
    }


def jobs_objects(namespace: str) -> list[Object]:
    """What the operator makes of the job, with pods that need nothing else, and a hostfile as of 1,000 workers."""
    made = [
        objects.config_map(mpi_job(namespace, replicas=1000, slots=8)),
        objects.role(mpi_job(namespace)),
    ]
    pods = [pod(LAUNCHER, names.ROLE_LAUNCHER), pod(WORKER, names.ROLE_WORKER)]
    return [*made, *pods, pod(GATED, names.ROLE_WORKER, schedulingGates=[THEIRS, OTHERS, OURS])]


def foreign_objects(namespace: str) -> list[Object]:
    return [
        pod("foreign"),
        *({**one, "metadata": {"name": "foreign"}} for one in jobs_objects(namespace)[:2]),
    ]
