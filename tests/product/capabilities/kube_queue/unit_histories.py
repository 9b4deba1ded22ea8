"""Random histories of jobs that wait in KubeQueue: those of `queued_histories`, with another queue.

A QueueUnit asks for the whole job. Once that is released, nothing holds back workers that are
added, so pods are not counted.
"""

from collections.abc import Iterator
from typing import ClassVar

from mpijob_elastic.capabilities.kube_queue.facts import (
    KUBEQUEUE_SUSPEND,
    QUEUE_UNITS,
    UNIT_WORKERS,
)
from mpijob_elastic.kube.resources import MPI_JOBS, PODS
from mpijob_elastic.names import SUSPEND
from tests.doubles.api import Object
from tests.queued_cluster import Cluster, gated, parked, pods_of, pods_wanted, running, uid_of_owner
from tests.queued_histories import History, may_run, misplaced

HAS_QUOTA = ("Dequeued", "Running", "Preempted")


class Units(Cluster):
    """A cluster with KubeQueue instead of Kueue."""

    ASKS = QUEUE_UNITS

    def grant(self) -> None:
        """Act as KubeQueue: the oldest that fits."""
        units = self.all(QUEUE_UNITS)
        free = self.quota - sum(asked(one) for one in units if phase(one) in HAS_QUOTA)
        waiting = [one for one in units if phase(one) not in HAS_QUOTA]
        for one in sorted(waiting, key=lambda one: str(one["metadata"]["creationTimestamp"])):
            if asked(one) > free:
                continue
            free -= asked(one)
            self.change(QUEUE_UNITS, one, status={"phase": "Dequeued"})


def asked(unit: Object) -> int:
    """Return for how many pods a QueueUnit asks."""
    return 1 + int(unit["metadata"]["annotations"][UNIT_WORKERS])


def phase(unit: Object) -> str:
    """Return its phase."""
    return str(unit.get("status", {}).get("phase", ""))


def held(job: Object) -> bool:
    """Tell whether KubeQueue's annotation holds a job."""
    return bool(job["metadata"]["annotations"].get(KUBEQUEUE_SUSPEND) == "true")


class UnitHistory(History):
    """A history as it goes on."""

    KIND = Units
    LABELS: ClassVar = {}
    NOTES: ClassVar = {KUBEQUEUE_SUSPEND: "true"}

    def __post_init__(self) -> None:
        super().__post_init__()
        self.loose: set[str] = set()  # jobs that their users started past KubeQueue

    def _step(self, kind: str, name: str, number: int) -> None:
        cluster = self.cluster
        job = cluster.get(MPI_JOBS, name)
        if kind == "preempt":
            found = [one for one in cluster.all(QUEUE_UNITS) if phase(one) == "Running"]
            if found:
                cluster.change(
                    QUEUE_UNITS, found[number % len(found)], status={"phase": "Preempted"}
                )
        elif kind == "queue" and job:
            to = (None, "true")[number % 2]
            cluster.edit(job, metadata={"annotations": {KUBEQUEUE_SUSPEND: to}})
            if to is None and held(job):
                self.loose.add(name)  # it starts at once, whatever KubeQueue says
        else:
            if kind == "forge" and job and job["status"].get("completionTime"):
                self.loose.add(
                    name
                )  # an end that is taken back: who does that may as well take the annotation away
            super()._step(kind, name, number)

    def _watch_quota(self) -> None:
        for job in self.cluster.all(MPI_JOBS):
            if held(job):
                self.loose.discard(job["metadata"]["name"])
        for name in self.loose:
            self._set_free(name)
        granted = {
            uid_of_owner(one) for one in self.cluster.all(QUEUE_UNITS) if phase(one) in HAS_QUOTA
        }
        for pod in self.cluster.all(PODS):
            is_free = pod["metadata"]["uid"] in self.free or uid_of_owner(pod) in granted
            if may_run(pod) and not is_free and not self.wrong:
                self.wrong.append(f"{pod['metadata']['name']} may run without quota")

    def _at_rest(self) -> Iterator[str]:
        yield from self._left_over()
        units = {uid_of_owner(one): one for one in self.cluster.all(QUEUE_UNITS)}
        free = self.quota - sum(asked(one) for one in units.values() if phase(one) in HAS_QUOTA)
        for job in self.cluster.all(MPI_JOBS):
            yield from self._of(job, units.get(job["metadata"]["uid"]), free)

    def _of(self, job: Object, unit: Object | None, free: int) -> Iterator[str]:
        name = job["metadata"]["name"]
        pods = {pod["metadata"]["name"]: pod for pod in pods_of(self.cluster, name)}
        if unit and phase(unit) == "Preempted":
            yield f"quota of {name} is not given back"
        if job["status"].get("completionTime"):
            yield from (
                [f"{name} has ended, and has quota"]
                if unit and not any(map(may_run, pods.values()))
                else ()
            )
        elif job["metadata"]["annotations"].get(SUSPEND):
            yield from (
                f"{pod} runs while suspended" for pod, item in pods.items() if not gated(item)
            )
        elif not held(job):
            yield from (
                f"{pod} does not run"
                for pod in pods_wanted(job) - parked(job)
                if not running(pods.get(pod))
            )
            yield from misplaced(job, pods)
            yield from self._unlisted(job, pods)
        elif unit is None:
            yield f"{name} asks for no quota"
        elif asked(unit) <= free:
            yield f"{name} waits beside free quota: {free} of {self.quota}"
