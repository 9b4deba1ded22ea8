"""Random sequences: a namespace with a controller of its own, in which sequences are played one after the other.

The controller is in this process, so that a step can move its clock and end it as a node that fails does: its
connections are cut first, so it neither finishes a write nor releases its Lease. It has the rights of the installed
controller, and its Lease is in the namespace.
"""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kubernetes.aio import config
from kubernetes.aio.client import Configuration

from lab.install import Installed
from mpijob_elastic import names
from mpijob_elastic.controller.process import Controller
from mpijob_elastic.controller.settings import Settings
from mpijob_elastic.kube import errors, resources
from mpijob_elastic.kube.lease import LeaseTimes
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model.disruption_signs import Signs

AGENT = "mpijob-elastic-campaign"
# Long enough that a busy machine seldom costs a leader its Lease, seldom enough that many leaders are a small load.
TIMES = LeaseTimes(duration=15.0, renew_deadline=12.0, retry=4.0, attempt=5.0, look=1.0)


class _Writer(ApiWriter):
    """A client that remembers the uids of what it deleted, or may have deleted: kwok, too, deletes pods."""

    def __init__(self, configuration: Configuration, deleted: set[str]) -> None:
        super().__init__(configuration, user_agent=AGENT)
        self._deleted = deleted

    async def delete_object(self, path: str, *, uid: str | None = None, **others: Any) -> bytes:
        assert uid, f"{path} is deleted whatever its uid is"
        try:
            answer = await super().delete_object(path, uid=uid, **others)
        except (errors.NotFound, errors.Conflict, errors.Forbidden):
            raise
        except BaseException:
            self._deleted.add(uid)  # nobody knows
            raise
        self._deleted.add(uid)
        return answer


@dataclass(kw_only=True)
class Place:
    """A namespace, the controller of its own, and what was done to the present job.

    ahead: seconds by which the controller's clock is ahead. taken: steps that found what they act on.
    edits: (kind, name, resourceVersion) of foreign edits. deleted: uids of pods that users deleted; deleted_by_us: of
    those that the controller did. signs: as `Settings` has them.
    """

    namespace: str
    client: ApiWriter
    kubeconfig: Path
    signs: Signs | None = None
    ahead: float = 0.0
    taken: int = 0
    edits: set[tuple[str, str, str]] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    deleted_by_us: set[str] = field(default_factory=set)
    _connection: AsyncExitStack = field(default_factory=AsyncExitStack)
    _task: asyncio.Task[None] | None = None
    _stop: asyncio.Event = field(default_factory=asyncio.Event)

    async def lead(self) -> None:
        """Start a controller."""
        self._stop = asyncio.Event()
        settings = Settings(
            identity=secrets.token_hex(4),
            jobs_namespaces=(self.namespace,),
            lease_namespace=self.namespace,
            health_host="127.0.0.1",
            health_port=0,
            signs=self.signs,
            lease_times=TIMES,
        )
        configuration = Configuration()
        await config.load_kube_config(config_file=str(self.kubeconfig), client_configuration=configuration)
        client = await self._connection.enter_async_context(_Writer(configuration, self.deleted_by_us))
        controller = Controller(client, settings, now=lambda: time.time() + self.ahead)
        self._task = asyncio.create_task(controller.run(self._stop))

    async def kill(self) -> None:
        """End it as a node that fails does."""
        if self._task:
            await self._connection.aclose()
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def end(self) -> None:
        """End it cleanly."""
        self._stop.set()
        if self._task:
            await asyncio.gather(self._task, return_exceptions=True)
        await self._connection.aclose()

    def failed(self) -> str:
        """Return why the controller ended though nobody ended it, "" if it works."""
        is_over = self._task is not None and self._task.done() and not self._task.cancelled()
        return f"the controller ended: {self._task.exception()!r}" if is_over and self._task else ""


@asynccontextmanager
async def placed(client: ApiWriter, installed: Installed, namespace: str) -> AsyncIterator[Place]:
    """Yield a place whose controller works; its namespace exists."""
    await grant_lease(client, namespace)
    place = Place(namespace=namespace, client=client, kubeconfig=installed.controller_kubeconfig)
    await place.lead()
    try:
        yield place
    finally:
        await place.end()


async def grant_lease(client: ApiWriter, namespace: str) -> None:
    """Let the installed controller have its Lease here too, with the verbs that it has in its own namespace."""
    metadata, api = {"name": AGENT}, "rbac.authorization.k8s.io"
    rule = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "patch", "create"]}
    who = {"kind": "ServiceAccount", "name": names.CONTROLLER, "namespace": names.NAMESPACE}
    role = {"apiVersion": f"{api}/v1", "kind": "Role", "metadata": metadata, "rules": [rule]}
    reference = {"apiGroup": api, "kind": "Role", "name": AGENT}
    binding = {**role, "kind": "RoleBinding", "roleRef": reference, "subjects": [who]}
    del binding["rules"]
    await client.create_object(resources.ROLES.path(namespace), body=role)
    await client.create_object(f"/apis/{api}/v1/namespaces/{namespace}/rolebindings", body=binding)
