"""The answers of the API server to a write of the controller: what is taken in, remembered, or an error."""

import contextlib
import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry

from mpijob_elastic.act.gate import Altered, Gate
from mpijob_elastic.act.writer import Outdated, Writer
from mpijob_elastic.decide import decide
from mpijob_elastic.decide.actions import (
    DeleteJob,
    DeleteLauncher,
    DeleteWorkers,
    Fill,
    LowerPodGroup,
    RefreshLauncher,
    Removal,
    RollBack,
    TunePodGroup,
)
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import MPI_JOBS, PODS
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model.gang import Gang
from mpijob_elastic.model.job import JobView
from mpijob_elastic.telemetry.metrics import Metrics
from tests.builders import NOW, config, job, launcher, pods, ref, worker
from tests.doubles.api import Object, TinyApi
from tests.faults.faults import Answer, writes
from tests.faults.proxy import FaultProxy
from tests.product.act.writes import NOTE, Answered, Everything, Taken, is_there, writer_of

ENDS_LATER = {"kind": "Pod", "metadata": {"name": "j-launcher", "resourceVersion": "8"}}
ENDED = {"kind": "Status", "status": "Success"}


@pytest.mark.parametrize(
    ("answer", "versions", "gone"),
    [
        pytest.param(ENDS_LATER, [8], [], id="it ends later"),
        # Seen of a real API server where a kubelet's deletion of the same pod came between.
        pytest.param({"kind": "Pod", "metadata": {"name": "j-launcher"}}, [], ["j-launcher"], id="it ended meanwhile"),
        pytest.param(ENDED, [], ["j-launcher"], id="it ended at once"),
    ],
)
async def test_a_deletion_is_taken_in_however_it_is_answered(
    proxy: FaultProxy, writer: Writer, taken: Taken, answer: Object, versions: list[int], gone: list[str]
) -> None:
    with proxy.inject(Answered(body=answer), on=writes):
        await writer.perform(job(2), DeleteLauncher(launcher=launcher(), note=NOTE))
    assert (taken.versions(), taken.gone) == (versions, gone)


@pytest.mark.parametrize("grace", [1, None])
async def test_a_worker_is_given_the_time_that_was_decided_on(
    api: TinyApi, client: ApiWriter, taken: Taken, grace: int | None
) -> None:
    is_there(api, PODS.path("default", "j-worker-1"))
    removal = Removal(worker=worker(1), outcome="drained", note=NOTE, grace=grace)
    await writer_of(client, taken, Everything()).perform(job(1), DeleteWorkers(removals=(removal,)))
    [options] = api.deletions
    assert options.get("gracePeriodSeconds") == grace
    assert options["preconditions"] == {"uid": "uid-of-j-worker-1", "resourceVersion": "7"}


@pytest.mark.parametrize("finalized", [False, True])
async def test_an_expired_job_is_deleted_as_it_was_decided_on(
    api: TinyApi, proxy: FaultProxy, writer: Writer, taken: Taken, finalized: bool
) -> None:
    expired = DeleteJob(ref=job(1).ref, due_at=NOW, note=NOTE)
    held = {"kind": "MPIJob", "metadata": {"name": "j", "resourceVersion": "8"}}
    with proxy.inject(Answered(body=held if finalized else ENDED), on=writes):
        await writer.perform(job(1), expired)
    assert (taken.versions(), taken.gone) == (([8], []) if finalized else ([], ["j"]))
    [sent] = proxy.requests
    assert (sent.method, sent.path) == ("DELETE", MPI_JOBS.path("default", "j"))
    is_there(api, MPI_JOBS.path("default", "j"))
    await writer.perform(job(1), expired)
    assert api.deletions[0]["preconditions"] == {"uid": "uid-of-j", "resourceVersion": "7"}


async def test_a_job_that_has_not_expired_by_the_servers_clock_stays(api: TinyApi, writer: Writer) -> None:
    early = DeleteJob(ref=job(1).ref, due_at=NOW + 0.1, note=NOTE)
    with pytest.raises(Outdated, match="not expired by the clock of the API server"):
        await writer.perform(job(1), early)
    assert api.deletions == []


@pytest.mark.parametrize("suspends", [False, True])
async def test_a_launcher_goes_at_once_or_the_operator_would_see_it_end_and_fail_the_job(
    api: TinyApi, client: ApiWriter, taken: Taken, suspends: bool
) -> None:
    is_there(api, PODS.path("default", "j-launcher"))
    action = DeleteLauncher(launcher=launcher(), note=NOTE, suspends=suspends)
    await writer_of(client, taken, Everything()).perform(job(1), action)
    [options] = api.deletions
    assert options["gracePeriodSeconds"] == 0
    assert options["preconditions"] == {"uid": "uid-of-j-launcher", "resourceVersion": "7"}


async def test_the_launcher_of_a_job_that_is_no_longer_suspended_stays(api: TinyApi, writer: Writer) -> None:
    is_there(api, PODS.path("default", "j-launcher"))
    with pytest.raises(Outdated):
        await writer.perform(job(1), DeleteLauncher(launcher=launcher(), note=NOTE, suspends=True))
    assert not api.deletions


@pytest.mark.parametrize("change", [Fill, RollBack])
@pytest.mark.parametrize(("answered", "outcome"), [(4, nullcontext()), (3, pytest.raises(Altered))])
async def test_a_size_that_admission_changes_is_an_error_and_so_not_written_again_at_once(
    proxy: FaultProxy,
    writer: Writer,
    taken: Taken,
    change: Callable[..., Fill | RollBack],
    answered: int,
    outcome: AbstractContextManager[object],
) -> None:
    spec = {"mpiReplicaSpecs": {"Worker": {"replicas": answered}}}
    answer = Answered(body={"metadata": {"name": "j", "resourceVersion": "8"}, "spec": spec})
    with proxy.inject(answer, on=writes), outcome:
        await writer.perform(job(3), change(ref=ref("j"), before=3, after=4, note=NOTE))
    assert taken.versions() == [8]


@pytest.mark.parametrize(
    "change",
    [
        TunePodGroup(ref=ref("j"), queue="team", annotations={}, note=NOTE),
        LowerPodGroup(ref=ref("j"), before=5, after=3, note=NOTE),
    ],
)
@pytest.mark.parametrize(("version", "outcome"), [("8", nullcontext()), ("7", pytest.raises(Altered))])
async def test_a_pod_group_that_admission_changes_back_is_not_written_again_at_once(
    proxy: FaultProxy,
    writer: Writer,
    change: TunePodGroup | LowerPodGroup,
    version: str,
    outcome: AbstractContextManager[object],
) -> None:
    answer = Answered(body={"metadata": {"name": "j", "resourceVersion": version}})
    with proxy.inject(answer, on=writes), outcome:
        await writer.perform(job(3, gang=Gang(scheduler="volcano")), change)


VIEW = job(known=False)
LATER = 120.0  # seconds; longer than any wait between two tries


def touch(view: JobView, *, at: float = NOW) -> RefreshLauncher:
    [found] = [action for action in decide(view, now=at).actions if isinstance(action, RefreshLauncher)]
    return found


@pytest.mark.parametrize("status", [400, 403, 422, 500])
async def test_refused_touches_in_a_row_are_counted_and_forgotten_with_the_first_success(
    proxy: FaultProxy, writer: Writer, status: int
) -> None:
    view: JobView = VIEW
    for count in (1, 2):
        with proxy.inject(Answer(status=status, reason="a policy says no"), on=writes):
            await writer.perform(view, touch(view, at=NOW + LATER * count))
        view = writer.informed(VIEW)
        assert view.launcher.refused.tries.count == count
    with proxy.inject(Answered(body=ENDS_LATER), on=writes):
        await writer.perform(view, touch(view, at=NOW + 3 * LATER))
    assert writer.informed(VIEW) == VIEW


async def test_a_refusal_is_of_one_launcher_and_one_change_of_the_list_and_ends_with_its_job(
    proxy: FaultProxy, writer: Writer
) -> None:
    with proxy.inject(Answer(status=403), on=writes):
        await writer.perform(VIEW, touch(VIEW))
    successor = replace(VIEW, launcher=replace(launcher(), ref=ref("j-launcher", uid="another")))
    assert writer.informed(successor) == successor
    # Else the next change would be said to be refused before it was tried.
    after = job(known=False, config=config(pods(0, 1)))
    assert writer.informed(after) == after
    assert writer.informed(VIEW) != VIEW
    writer.forget(VIEW.namespace, VIEW.name)
    assert writer.informed(VIEW) == VIEW


@pytest.mark.parametrize(("status", "error"), [(404, errors.NotFound), (409, errors.Conflict), (429, errors.Throttled)])
async def test_what_passes_by_itself_is_no_refusal(
    proxy: FaultProxy, writer: Writer, status: int, error: type[errors.ApiError]
) -> None:
    with proxy.inject(Answer(status=status), on=writes), pytest.raises(error):
        await writer.perform(VIEW, touch(VIEW))
    assert writer.informed(VIEW) == VIEW


@pytest.mark.parametrize(
    ("status", "outcome"), [(403, "Forbidden"), (409, "Conflict"), (422, "Invalid"), (500, "500"), (405, "405")]
)
async def test_the_text_of_a_refusal_makes_no_series(
    proxy: FaultProxy, client: ApiWriter, status: int, outcome: str
) -> None:
    """An admission webhook may name the object in its reason."""
    metrics = Metrics(CollectorRegistry())
    gate = Gate(client, time_left=lambda: math.inf, metrics=metrics)
    for number in range(3):
        refusal = Answer(status=status, reason=f"policy says no to train-{number}")
        with proxy.inject(refusal, on=writes), contextlib.suppress(errors.ApiError):
            await gate.patch_object(PODS, namespace="n", name=f"train-{number}", body={})
    [family] = metrics.writes.collect()
    counted = {sample.labels["outcome"]: sample.value for sample in family.samples if sample.name.endswith("_total")}
    assert counted == {outcome: 3}
