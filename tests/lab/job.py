"""One MPIJob on the lab, as a test creates, edits and looks at it."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from mpijob_elastic import names
from mpijob_elastic.kube import errors, resources
from mpijob_elastic.kube.writer import MERGE_PATCH, ApiWriter
from tests.lab.waiting import LIMITS, PATIENCE, seen

Object = dict[str, Any]
QUIET = 1.0
REST = 3.0
# A pod of the lab with this annotation stays Pending (lab/manifests/kwok-stages.yaml).
HOLD = "lab.mpijob-elastic/hold"
# And with this it stays when it is deleted.
LINGERS = "lab.mpijob-elastic/lingers"
HOROVODRUN = [
    "horovodrun",
    "-np",
    "1",
    "--host-discovery-script",
    "/etc/mpi/discover_hosts.sh",
    "python",
    "train.py",
]
MPIRUN = ["mpirun", "-np", "2", "python", "train.py"]


@dataclass(frozen=True, kw_only=True)
class State:
    """The objects of one job on the API server at one moment; pods by name. parked, sizes: its annotations."""

    hosts: list[str]
    hostfile: list[str]
    exec_names: list[str]
    workers: dict[str, Object]
    launcher: Object | None
    notices: str
    phase: str
    memory: str
    replicas: int
    conditions: list[str]
    parked: str
    sizes: str

    @property
    def running(self) -> list[str]:
        """Workers that are not on their way out."""
        return [
            name for name, pod in self.workers.items() if "deletionTimestamp" not in pod["metadata"]
        ]

    @property
    def launcher_runs(self) -> bool:
        """True if its main container runs."""
        return bool((self.launcher or {}).get("status", {}).get("phase") == "Running")

    @property
    def refreshed(self) -> str | None:
        """The launcher's annotation."""
        annotations = (self.launcher or {}).get("metadata", {}).get("annotations", {})
        value: str | None = annotations.get("mpijob-elastic/refreshed")
        return value


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job by name; it need not exist yet."""

    client: ApiWriter
    namespace: str
    name: str = "train"

    def workers(self, *indices: int) -> list[str]:
        """Names of workers."""
        return [f"{self.name}-worker-{index}" for index in indices]

    async def create(
        self,
        *,
        replicas: int,
        command: list[str] = HOROVODRUN,
        annotations: dict[str, str] | None = None,
        clean_pod_policy: str = "Running",
        slots: int = 1,
        launcher_annotations: dict[str, str] | None = None,
        worker_annotations: dict[str, str] | None = None,
        worker_spec: Object | None = None,
        launcher_spec: Object | None = None,
        labels: dict[str, str] | None = None,
        run_policy: Object | None = None,
        job_labels: dict[str, str] | None = None,
    ) -> None:
        """Create it as a user would; `labels` are of both templates."""
        spec: Object = {
            "slotsPerWorker": slots,
            "cleanPodPolicy": clean_pod_policy,
            "mpiReplicaSpecs": {
                "Launcher": {
                    "replicas": 1,
                    "template": _pod("launcher", command, launcher_annotations, launcher_spec),
                },
                "Worker": {
                    "replicas": replicas,
                    "template": _pod("worker", None, worker_annotations, worker_spec),
                },
            },
        }
        if run_policy is not None:
            spec["runPolicy"] = run_policy
        for replica in spec["mpiReplicaSpecs"].values():
            replica["template"]["metadata"]["labels"] = labels or {}
        metadata: Object = {
            "name": self.name,
            "namespace": self.namespace,
            "annotations": annotations or {},
        }
        metadata["labels"] = job_labels or {}
        body = {
            "apiVersion": "kubeflow.org/v1",
            "kind": "MPIJob",
            "metadata": metadata,
            "spec": spec,
        }
        await self.client.create_object(
            resources.MPI_JOBS.path(self.namespace), body=body, limits=LIMITS
        )

    async def scale(self, replicas: int) -> None:
        """Edit the number of workers."""
        await self.patch({"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": replicas}}}})

    async def annotate(self, **annotations: str | None) -> None:
        """Set annotations of ours; underscores stand for dashes."""
        ours = {
            f"mpijob-elastic/{key.replace('_', '-')}": value for key, value in annotations.items()
        }
        await self.patch({"metadata": {"annotations": ours}})

    async def patch(self, patch: Object) -> None:
        """Change the MPIJob."""
        path = resources.MPI_JOBS.path(self.namespace, self.name)
        await self.client.patch_object(path, body=patch, content_type=MERGE_PATCH, limits=LIMITS)

    async def delete(self) -> None:
        """Delete the MPIJob; what it owns follows."""
        await self.client.delete_object(
            resources.MPI_JOBS.path(self.namespace, self.name), limits=LIMITS
        )

    async def limit(self, pods: int) -> None:
        """Let its namespace hold so many pods."""
        body = {"metadata": {"name": "team"}, "spec": {"hard": {"pods": str(pods)}}}
        await self.client.create_object(
            resources.RESOURCE_QUOTAS.path(self.namespace), body=body, limits=LIMITS
        )

        async def quota() -> Object:
            return await self._get(resources.RESOURCE_QUOTAS, "team")

        await seen(quota, lambda found: "used" in found.get("status", {}), "a quota that counts")

    async def set_status(self, pod: str, status: Object) -> None:
        """Say of a pod what its kubelet would say."""
        path = resources.PODS.path(self.namespace, pod, "status")
        await self.client.patch_object(
            path, body={"status": status}, content_type=MERGE_PATCH, limits=LIMITS
        )

    async def annotate_pod(self, pod: str, annotations: dict[str, str | None]) -> None:
        """Change annotations of a pod."""
        path = resources.PODS.path(self.namespace, pod)
        body = {"metadata": {"annotations": annotations}}
        await self.client.patch_object(path, body=body, content_type=MERGE_PATCH, limits=LIMITS)

    async def state(self) -> State:
        """Look at everything."""
        config = await self._get(resources.CONFIG_MAPS, f"{self.name}-config")
        role = await self._get(resources.ROLES, f"{self.name}-launcher")
        job = await self._get(resources.MPI_JOBS, self.name)
        pods = await self._list(resources.PODS, f"mpi-job-name={self.name}")
        data = config.get("data", {})
        lines = data.get("discover_hosts.sh", "").splitlines()
        # Of a list for elastic.sh without the comments.
        script = [line.partition(" #")[0] for line in lines if line.startswith("echo ")]
        annotations = job.get("metadata", {}).get("annotations", {})
        owned = [pod for pod in pods if pod["metadata"].get("ownerReferences")]
        specs = job.get("spec", {}).get("mpiReplicaSpecs", {})
        return State(
            # A line without slots only reminds a driver of the list.
            hosts=[line.removeprefix("echo ") for line in script if not line.endswith(":0")],
            hostfile=data.get("hostfile", "").splitlines(),
            exec_names=[
                name for rule in role.get("rules", []) for name in rule.get("resourceNames", [])
            ],
            workers={_name(pod): pod for pod in owned if _role(pod) == "worker"},
            launcher=next((pod for pod in owned if _role(pod) == "launcher"), None),
            notices=annotations.get("mpijob-elastic/status", ""),
            phase=annotations.get("mpijob-elastic/phase", ""),
            memory=config.get("metadata", {})
            .get("annotations", {})
            .get("mpijob-elastic/memory", ""),
            replicas=specs.get("Worker", {}).get("replicas", 0),
            conditions=[
                one["type"]
                for one in job.get("status", {}).get("conditions") or ()
                if one["status"] == "True"
            ],
            parked=annotations.get("mpijob-elastic/parked", ""),
            sizes=annotations.get("mpijob-elastic/sizes", ""),
        )

    async def until(
        self, holds: Callable[[State], bool], what: str, *, patience: float = PATIENCE
    ) -> State:
        """Wait until something holds, for so many seconds; fails with the state that was last seen."""
        return await seen(
            self.state, holds, f"{self.name} with {what}", patience=patience, show=_short
        )

    async def replaced(self, before: State, *workers: str) -> State:
        """Wait until other pods have the names of those workers."""

        def holds(state: State) -> bool:
            new = {name: pod["metadata"]["uid"] for name, pod in state.workers.items()}
            return all(new.get(name, old) != old for name, old in olds.items())

        olds = {name: before.workers[name]["metadata"]["uid"] for name in workers}
        return await self.until(holds, f"other pods for {', '.join(workers)}")

    async def settled(self, replicas: int, *, slots: int = 1) -> State:
        """Wait until the job is whole at that size: workers, Role, host list, hostfile, touched launcher, status.

        Whose rank may have been cut has a number in its host name.
        """
        pods = self.workers(*range(replicas))
        return await self.until(
            lambda state: (
                sorted(state.workers) == sorted(pods)
                and {*pods} <= {*state.exec_names}
                and [_pod_and_slots(host) for host in state.hosts]
                == [(pod, str(slots)) for pod in pods]
                and state.hostfile == [f"{pod} slots={slots}" for pod in pods]
                and state.refreshed is not None
                and state.launcher_runs
                and "Running" in state.conditions
            ),
            f"{replicas} workers, all true",
        )

    async def at_rest(self) -> State:
        """Wait until nobody changes anything any more: what follows the last change that a test waits for is over."""
        deadline = time.monotonic() + PATIENCE
        before = await self.state()
        while True:
            await asyncio.sleep(REST)
            after = await self.state()
            if after == before:
                return after
            assert time.monotonic() < deadline, (
                f"{self.name} never came to rest; last: {_short(after)}"
            )
            before = after

    async def events(self) -> list[tuple[str, str]]:
        """(reason, message) of the Events of ours on the job, once no more come: they are sent beside the work."""
        before = await self._events()
        while True:
            await asyncio.sleep(QUIET)
            after = await self._events()
            if len(after) == len(before):
                return after
            before = after

    async def told(self, reason: str, text: str = "", *, times: int = 1) -> None:
        """Wait for so many Events of ours on the job with that reason and that text in their messages."""

        def enough(events: list[tuple[str, str]]) -> bool:
            return sum(each == reason and text in message for each, message in events) >= times

        await seen(self._events, enough, f"Event {reason} of {self.name} with {text!r}")

    async def _events(self) -> list[tuple[str, str]]:
        items = await self._list(resources.EVENTS, None)
        ours = [item for item in items if item["source"].get("component") == "mpijob-elastic"]
        mine = [item for item in ours if item["involvedObject"]["name"] == self.name]
        return [(item["reason"], item["message"]) for item in mine]

    async def _get(self, resource: resources.Resource, name: str) -> Object:
        try:
            raw = await self.client.get(resource.path(self.namespace, name), limits=LIMITS)
        except errors.NotFound:
            return {}
        found: Object = msgspec.json.decode(raw)
        return found

    async def _list(self, resource: resources.Resource, selector: str | None) -> list[Object]:
        query = {"labelSelector": selector} if selector else {}
        raw = await self.client.get(resource.path(self.namespace), query=query, limits=LIMITS)
        items: list[Object] = msgspec.json.decode(raw)["items"]
        return items


def _pod(
    name: str,
    command: list[str] | None,
    annotations: dict[str, str] | None,
    spec: Object | None = None,
) -> Object:
    container: Object = {"name": name, "image": "horovod:test"}
    if command:
        container["command"] = command
    return {
        "metadata": {"annotations": annotations or {}},
        "spec": {"containers": [container], **(spec or {})},
    }


def _pod_and_slots(host: str) -> tuple[str, str]:
    name, _, slots = host.partition(":")
    return names.pod_of(name), slots


def _name(pod: Object) -> str:
    name: str = pod["metadata"]["name"]
    return name


def _role(pod: Object) -> str | None:
    role: str | None = pod["metadata"]["labels"].get("mpi-job-role")
    return role


def _short(state: State) -> str:
    pods = {name: pod["status"].get("phase") for name, pod in state.workers.items()}
    return (
        f"replicas {state.replicas}, hosts {state.hosts}, hostfile {state.hostfile}, exec {state.exec_names}, "
        f"workers {pods}, launcher runs {state.launcher_runs}, conditions {state.conditions}, "
        f"refreshed {state.refreshed}, notices {state.notices!r}, memory {state.memory}"
    )
