"""Random sequences: a namespace with a controller of its own, in which sequences are played one after the other.

The controller is in this process, so that a step can move its clock and end it as a node that fails
does: its connections are cut first, so it neither finishes a write nor releases its Lease. It has
the rights of the installed controller, and its Lease is in the namespace.
"""

import asyncio
import contextlib
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from lab.install import Installed
from mpijob_elastic import names
from mpijob_elastic.capabilities.disruption.signs import NodeSigns
from mpijob_elastic.controller.process import Controller
from mpijob_elastic.kube import errors, resources
from mpijob_elastic.kube.access import Access
from mpijob_elastic.kube.client import found_access
from mpijob_elastic.kube.lease import LeaseTimes
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model.sizes import parse
from tests.campaign.sequence_rules import Version, record
from tests.lab.controllers import settings_for
from tests.lab.job import Job, Object, State

AGENT = "mpijob-elastic-campaign"
# Long enough that a busy machine seldom costs a leader its Lease, seldom enough that many leaders
# are a small load.
TIMES = LeaseTimes(duration=15.0, renew_deadline=12.0, retry=4.0, attempt=5.0, look=1.0)
# Seconds until a sequence has converged. The operator puts a job off by 5 ms * 2^n where n events
# came before a sync succeeds ([operator] AddRateLimited at each event), which was 655 s twice;
# client-go puts off by 1,000 s at most.
PATIENCE = 1100.0
# Notices that a job which is as it should be may have.
EXPECTED = ("HostListContested", "Parked", "SizeNotAllowed")
LOOK = 1.0  # seconds between two looks at a job that changes

# Returns what is not as it should be, "" if nothing.
Look = Callable[[State], Awaitable[str]]


# The most writes of one kind to one object within so many seconds: one a second, for a minute. A
# sequence has ten steps at most, and what repeats without a back-off is written many times a second.
MOST_WRITES, WINDOW = 60, 60.0


class Written(NamedTuple):
    """A write that the controller asked for: when (monotonic seconds), and its method and path."""

    at: float
    what: str


def hot_loops(written: Sequence[Written]) -> Iterator[str]:
    """Yield each write that is made more often than MOST_WRITES times within WINDOW."""
    times: dict[str, list[float]] = defaultdict(list)
    for one in written:
        times[one.what].append(one.at)
    for what, at in times.items():
        shortest = min(
            (last - first for first, last in zip(at, at[MOST_WRITES:], strict=False)),
            default=WINDOW,
        )
        if shortest < WINDOW:
            yield f"hot loop: {what} {MOST_WRITES + 1} times within {shortest:.1f} s"


class _Writer(ApiWriter):
    """A client that remembers its writes, and the uids of what it may have deleted: kwok, too, deletes pods."""

    def __init__(self, access: Access, deleted: set[str], written: list[Written]) -> None:
        super().__init__(access, user_agent=AGENT)
        self._deleted, self._written = deleted, written

    async def create_object(self, path: str, *, body: object, **others: Any) -> bytes:
        self._note(path, f"POST {_name(body)}")
        return await super().create_object(path, body=body, **others)

    async def patch_object(self, path: str, **others: Any) -> bytes:
        self._note(path, "PATCH")
        return await super().patch_object(path, **others)

    def _note(self, path: str, what: str) -> None:
        # Events and the Lease have a pace of their own.
        if not ("/events" in path or "/leases" in path):
            self._written.append(Written(at=time.monotonic(), what=f"{what} {path}"))

    async def delete_object(self, path: str, *, uid: str | None = None, **others: Any) -> bytes:
        assert uid, f"{path} is deleted whatever its uid is"
        self._note(path, "DELETE")
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

    ahead: seconds by which the controller's clock is ahead. taken: steps that found what they act
    on. edits: (kind, name, resourceVersion) of foreign edits. deleted: uids of pods that users
    deleted; deleted_by_us: of those that the controller did. written: what it wrote. signs: as `Settings` has them.
    """

    namespace: str
    client: ApiWriter
    kubeconfig: Path
    signs: NodeSigns | None = None
    ahead: float = 0.0
    taken: int = 0
    edits: set[tuple[str, str, str]] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    deleted_by_us: set[str] = field(default_factory=set)
    written: list[Written] = field(default_factory=list)
    _connection: AsyncExitStack = field(default_factory=AsyncExitStack)
    _task: asyncio.Task[None] | None = None
    _stop: asyncio.Event = field(default_factory=asyncio.Event)

    async def lead(self) -> None:
        """Start a controller."""
        self._stop = asyncio.Event()
        settings = settings_for(self.namespace, times=TIMES, signs=self.signs)
        access = await found_access(kubeconfig=self.kubeconfig)
        client = await self._connection.enter_async_context(
            _Writer(access, self.deleted_by_us, self.written)
        )
        controller = Controller(client, settings, now=lambda: time.time() + self.ahead)
        self._task = asyncio.create_task(controller.run(self._stop))

    async def kill(self) -> None:
        """End it as a node that fails does."""
        await self._connection.aclose()
        if self._task:
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
        if self._task is None or not self._task.done() or self._task.cancelled():
            return ""
        return f"the controller ended: {self._task.exception()!r}"


def _name(body: object) -> str:
    metadata = body.get("metadata", {}) if isinstance(body, Mapping) else {}
    return str(metadata.get("name", ""))


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
    rule = {
        "apiGroups": ["coordination.k8s.io"],
        "resources": ["leases"],
        "verbs": ["get", "patch", "create"],
    }
    who = {"kind": "ServiceAccount", "name": names.CONTROLLER, "namespace": names.NAMESPACE}
    role = {"apiVersion": f"{api}/v1", "kind": "Role", "metadata": metadata, "rules": [rule]}
    reference = {"apiGroup": api, "kind": "Role", "name": AGENT}
    binding = {"apiVersion": f"{api}/v1", "kind": "RoleBinding", "metadata": metadata}
    await client.create_object(resources.ROLES.path(namespace), body=role)
    body = {**binding, "roleRef": reference, "subjects": [who]}
    await client.create_object(f"/apis/{api}/v1/namespaces/{namespace}/rolebindings", body=body)


@asynccontextmanager
async def watched(job: Job, versions: list[Version]) -> AsyncIterator[str]:
    """Record what is written in the job's namespace, beside a stranger; yield the stranger's path.

    That is a pod which looks like a worker of the job, and which no job owns.
    """
    name = f"{job.name}-worker-9"
    group = {names.LABEL_GROUP_NAME: names.GROUP, names.LABEL_JOB_NAME: job.name}
    labels = {**group, names.LABEL_JOB_ROLE: names.ROLE_WORKER}
    spec = {
        "containers": [{"name": "worker", "image": "horovod:test"}],
        "terminationGracePeriodSeconds": 1,
    }
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
    }
    watching = asyncio.create_task(record(job.client, job.namespace, versions))
    try:
        await job.client.create_object(resources.PODS.path(job.namespace), body=body)
        yield resources.PODS.path(job.namespace, name)
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        with contextlib.suppress(errors.KubeError):
            await job.client.delete_object(resources.PODS.path(job.namespace, name))


async def come_true(
    job: Job, look: Look, versions: list[Version], *, quiet: float, patience: float
) -> str:
    """Wait until all is as it should be and nothing is written for so many seconds; return what is wrong at last.

    versions: what was written in the namespace; it grows.
    """
    deadline = time.monotonic() + patience
    while True:
        written, state = len(versions), await job.state()
        if not (wrong := await look(state)):
            await asyncio.sleep(quiet)
            if not quiet or len(versions) == written:
                return ""
            wrong = "something still changes"
        # Looks of many places would be most of what the API server does.
        while len(versions) == written and time.monotonic() < deadline:
            await asyncio.sleep(LOOK)
        if time.monotonic() >= deadline:
            pods = {name: pod["status"].get("phase") for name, pod in state.workers.items()}
            files = f"{state.hosts=} {state.hostfile=} {state.exec_names=}"
            return f"{wrong} after {patience:.0f} s: {state.replicas=} {files} {pods=} {state.notices=}"


def mounts(state: State) -> bool:
    """Return whether the launcher mounts discover_hosts.sh."""
    volumes = state.launcher["spec"]["volumes"] if state.launcher else []
    items = [item for volume in volumes for item in volume.get("configMap", {}).get("items", [])]
    return any(item["key"] == names.KEY_DISCOVER_HOSTS for item in items)


def unlike(job: Job, state: State) -> str:
    """Return what a whole job has and this does not, "" if nothing."""
    every, pods = job.workers(*range(state.replicas)), trainable(job, state)
    allowed = parse(state.sizes)
    sizes = [size for size in allowed.sizes if size <= len(pods)] if allowed else []
    hosts = pods[: max(sizes)] if sizes else pods
    wanted = {
        "the workers": sorted(state.workers) == sorted(every) == sorted(state.running),
        "the placeholders": all(
            holds_place(pod) == (name not in pods) for name, pod in state.workers.items()
        ),
        "the hosts": listed(state) == hosts,
        "the hostfile": state.hostfile == [f"{pod} slots=1" for pod in hosts],
        "the Role": {*pods} <= {*state.exec_names},
        "the launcher": state.launcher_runs and mounts(state),
        "the notices": not state.notices or state.notices.startswith(EXPECTED),
    }
    return ", ".join(what for what, holds in wanted.items() if not holds)


def trainable(job: Job, state: State) -> list[str]:
    """Return the workers of the size that are not parked."""
    parked = {int(index) for index in state.parked.split(",") if index}
    return job.workers(*(index for index in range(state.replicas) if index not in parked))


def holds_place(pod: Object) -> bool:
    """Return whether a pod is a placeholder, which waits for good."""
    return {"name": names.GATE_PARKED} in pod["spec"].get(
        "schedulingGates", ()
    ) and "nodeName" not in pod["spec"]


def listed(state: State) -> list[str]:
    """Return the pods that the host list names."""
    return [names.pod_of(host.rpartition(":")[0]) for host in state.hosts]
