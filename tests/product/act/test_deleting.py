"""The answers of the API server to the deletion of a pod, and what the caches take in."""

import math
from dataclasses import dataclass, field
from random import Random

import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry

from mpijob_elastic.act.events import Events
from mpijob_elastic.act.gate import Gate
from mpijob_elastic.act.launcher_execs import End
from mpijob_elastic.act.writer import Outdated, Writer
from mpijob_elastic.decide.actions import DeleteJob, DeleteLauncher, DeleteWorkers, EndExecs, Note, Removal
from mpijob_elastic.kube import resources
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model.execs import Exec
from mpijob_elastic.model.job import JobView, Ref
from mpijob_elastic.observe import facts_pod
from mpijob_elastic.telemetry.metrics import Metrics
from tests.builders import NOW, job, launcher, worker
from tests.faults.faults import Fault, Request, writes
from tests.faults.proxy import FaultProxy
from tests.faults.tiny_api import TinyApi

NOTE = Note(reason="LauncherRecreated", message="it waits for workers that went away")


@dataclass(frozen=True, kw_only=True)
class Answered(Fault):
    """Answers in place of the server."""

    body: dict[str, object]

    async def asked(self, request: Request) -> web.Response:
        return web.json_response(self.body)


@dataclass
class Taken:
    """Takes in answers, and reads a pod as the caches do."""

    versions: list[int] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)

    def see(self, resource: resources.Resource, raw: bytes) -> None:
        self.versions.append(int(facts_pod.read(raw).metadata.resource_version))

    def see_gone(self, resource: resources.Resource, namespace: str, ref: Ref) -> None:
        self.gone.append(ref.name)


def ends_nothing(_view: JobView, _action: EndExecs, _end: End) -> None:
    """No exec is to be ended."""


class Nothing:
    """Nothing holds live."""

    async def suspended(self, view: JobView) -> bool:
        return False

    async def removals(self, view: JobView, action: DeleteWorkers) -> list[Removal]:
        return []

    async def has_passed(self, at: float) -> bool:
        return at <= NOW

    async def execs(self, view: JobView, action: EndExecs) -> list[Exec]:
        return []


class Everything(Nothing):
    """All that was decided holds live."""

    async def suspended(self, view: JobView) -> bool:
        return True

    async def removals(self, view: JobView, action: DeleteWorkers) -> list[Removal]:
        return list(action.removals)


@pytest.mark.parametrize(
    ("answer", "versions", "gone"),
    [
        ({"kind": "Pod", "metadata": {"name": "j-launcher", "resourceVersion": "8"}}, [8], []),
        # Seen of a real API server where a kubelet's deletion of the same pod came between.
        ({"kind": "Pod", "metadata": {"name": "j-launcher"}}, [], ["j-launcher"]),
        ({"kind": "Status", "status": "Success"}, [], ["j-launcher"]),
    ],
    ids=["ends later", "ended meanwhile", "ended at once"],
)
async def test_a_deletion_is_taken_in_however_it_is_answered(
    proxy: FaultProxy, client: ApiWriter, answer: dict[str, object], versions: list[int], gone: list[str]
) -> None:
    taken = Taken()
    with proxy.inject(Answered(body=answer), on=writes):
        await writer(client, taken, Nothing()).perform(job(2), DeleteLauncher(launcher=launcher(), note=NOTE))
    assert (taken.versions, taken.gone) == (versions, gone)


@pytest.mark.parametrize("grace", [1, None])
async def test_a_worker_is_given_the_time_that_was_decided_on(
    api: TinyApi, client: ApiWriter, grace: int | None
) -> None:
    await api.create(resources.PODS.path("default"), "j-worker-1")
    removal = Removal(worker=worker(1), outcome="drained", note=NOTE, grace=grace)
    await writer(client, Taken(), Everything()).perform(job(1), DeleteWorkers(removals=(removal,)))
    (options,) = api.deletions
    assert options.get("gracePeriodSeconds") == grace
    assert options["preconditions"] == {"uid": "uid-of-j-worker-1", "resourceVersion": "7"}


@pytest.mark.parametrize("finalized", [False, True])
async def test_an_expired_job_is_deleted_as_it_was_decided_on(
    api: TinyApi, proxy: FaultProxy, client: ApiWriter, finalized: bool
) -> None:
    expired = DeleteJob(ref=job(1).ref, due_at=NOW, note=NOTE)
    held: dict[str, object] = {"kind": "MPIJob", "metadata": {"name": "j", "resourceVersion": "8"}}
    status: dict[str, object] = {"kind": "Status", "status": "Success"}
    taken = Taken()
    with proxy.inject(Answered(body=held if finalized else status), on=writes):
        await writer(client, taken, Nothing()).perform(job(1), expired)
    assert (taken.versions, taken.gone) == (([8], []) if finalized else ([], ["j"]))
    [sent] = proxy.requests
    assert (sent.method, sent.path) == ("DELETE", resources.MPI_JOBS.path("default", "j"))

    await api.create(resources.MPI_JOBS.path("default"), "j")
    await writer(client, Taken(), Nothing()).perform(job(1), expired)
    [options] = api.deletions
    assert options["preconditions"] == {"uid": "uid-of-j", "resourceVersion": "7"}


async def test_a_job_that_has_not_expired_by_the_servers_clock_stays(api: TinyApi, client: ApiWriter) -> None:
    early = DeleteJob(ref=job(1).ref, due_at=NOW + 0.1, note=NOTE)
    with pytest.raises(Outdated, match="not expired by the clock of the API server"):
        await writer(client, Taken(), Nothing()).perform(job(1), early)
    assert api.deletions == []


async def test_a_launcher_goes_at_once_or_the_operator_would_see_it_end_and_fail_the_job(
    api: TinyApi, client: ApiWriter
) -> None:
    await api.create(resources.PODS.path("default"), "j-launcher")
    await writer(client, Taken(), Nothing()).perform(job(1), DeleteLauncher(launcher=launcher(), note=NOTE))
    (options,) = api.deletions
    assert options["gracePeriodSeconds"] == 0


@pytest.mark.parametrize("suspended", [True, False])
async def test_the_launcher_of_a_job_goes_only_if_it_is_suspended_still(
    api: TinyApi, client: ApiWriter, suspended: bool
) -> None:
    await api.create(resources.PODS.path("default"), "j-launcher")
    action = DeleteLauncher(launcher=launcher(), note=NOTE, suspends=True)
    performing = writer(client, Taken(), Everything() if suspended else Nothing()).perform(job(1), action)
    if not suspended:
        with pytest.raises(Outdated):
            await performing
        assert not api.deletions
        return
    await performing
    (options,) = api.deletions
    assert options["gracePeriodSeconds"] == 0
    assert options["preconditions"] == {"uid": "uid-of-j-launcher", "resourceVersion": "7"}


def writer(client: ApiWriter, taken: Taken, recheck: Nothing) -> Writer:
    metrics = Metrics(CollectorRegistry())
    gate = Gate(client, time_left=lambda: math.inf, metrics=metrics)
    events = Events(gate, metrics=metrics, instance="test", now=lambda: NOW, random=Random(1))
    return Writer(gate, taken, recheck=recheck, begin_to_end=ends_nothing, events=events, metrics=metrics)
