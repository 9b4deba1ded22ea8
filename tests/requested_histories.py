"""Random histories with ScaleIns and ScaleOuts of et-operator: those of `free_histories`, with requests.

A request may be for a job that does not exist, or exists later. Each is answered once.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import ClassVar

from mpijob_elastic.capabilities.et_operator.facts import (
    FAILED,
    SCALE_INS,
    SCALE_OUTS,
    SUCCEEDED,
)
from mpijob_elastic.capabilities.et_operator.live import OPTION
from mpijob_elastic.kube.resources import MPI_JOBS
from mpijob_elastic.names import SUSPEND
from tests.doubles.api import Object
from tests.free_histories import FreeHistory
from tests.queued_cluster import NAMESPACE, Cluster

REQUESTS = (SCALE_INS, SCALE_OUTS)
# Seconds; longer than a start takes, and shorter than what counts as rest.
TIMEOUT = 30
# The job that never exists.
NOBODY = "nobody"
# The most writes to one request: its owner, and the status when it waits, scales, is put back by a
# suspension, scales again, and ends.
MOST_ANSWERS = 8


class Requests(Cluster):
    """A cluster in which the requests are served, and et-operator's own jobs are not."""

    OPTIONS = (OPTION,)

    def __init__(self, quota: int) -> None:
        super().__init__(quota)
        self.watched = (*self.watched, *REQUESTS)

    def _collect(self) -> None:
        super()._collect()
        jobs = {job["metadata"]["uid"] for job in self.all(MPI_JOBS)}
        for resource in REQUESTS:
            for one in self.all(resource):
                owners = {owner["uid"] for owner in one["metadata"].get("ownerReferences", ())}
                if owners and not owners & jobs:
                    self.remove(resource.path(NAMESPACE, one["metadata"]["name"]))


class RequestHistory(FreeHistory):
    """A history as it goes on."""

    KIND = Requests
    KINDS: ClassVar[Sequence[str]] = (
        *("out", "in", "jobless") * 4,
        *("size", "park", "scale", "sizes", "least", "suspend", "fail", "lose", "relaunch"),
        *("crash", "lag", "pass", "finish", "delete", "forge", "hang", "slow"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.requests = 0

    def _step(self, kind: str, name: str, number: int) -> None:
        if kind == "out":
            self._ask(name, number, {"toAdd": {"count": number % 3}, "timeout": TIMEOUT})
        elif kind == "in":
            self._ask(name, number, {"toDelete": {"count": number % 3}})
        elif kind == "jobless":
            self._ask(NOBODY, number, {"toAdd": {"count": 1}})
        else:
            super()._step(kind, name, number)

    def _ask(self, job: str, number: int, asked: Object) -> None:
        self.requests += 1
        resource = REQUESTS["toAdd" in asked]
        name = f"r{self.requests}"
        spec = {"selector": {"name": job}, **asked}
        if number % 7 == 0:
            spec["script"] = "echo"
        self.cluster.put(resource.path(NAMESPACE, name), {"metadata": {"name": name}, "spec": spec})

    def _at_rest(self) -> Iterator[str]:
        yield from super()._at_rest()
        suspended = {
            job["metadata"]["name"]
            for job in self.cluster.all(MPI_JOBS)
            if job["metadata"]["annotations"].get(SUSPEND)
        }
        for resource in REQUESTS:
            for one in self.cluster.all(resource):
                phase = one.get("status", {}).get("phase", "")
                job = one["spec"]["selector"]["name"]
                if phase not in (SUCCEEDED, FAILED) and job not in suspended:
                    yield f"{one['metadata']['name']} for {job} is not answered: {phase}"
        answers: Counter[str] = Counter()
        for (_, path), count in self.cluster.written(since=0.0).items():
            if any(path.startswith(resource.path(NAMESPACE)) for resource in REQUESTS):
                answers[path.removesuffix("/status")] += count
        for path, count in answers.items():
            if count > MOST_ANSWERS:
                yield f"{path} was written {count} times"
