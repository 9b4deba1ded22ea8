"""The answers of the API server to a write of the controller: what is taken in, remembered, or an error."""

import contextlib
import math

import pytest
from prometheus_client import CollectorRegistry

from mpijob_elastic.act.gate import Altered, Gate
from mpijob_elastic.act.writer import Outdated, Writer
from mpijob_elastic.capabilities.gangs.facts import Gang
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
from mpijob_elastic.model.job import JobView
from mpijob_elastic.telemetry.metrics import Metrics
from tests.builders import NOW, but, config, job, launcher, pods, ref, worker
from tests.doubles.api import Object, TinyApi
from tests.faults.faults import Answer, writes
from tests.faults.proxy import FaultProxy
from tests.product.act.writes import NOTE, Answered, Everything, Taken, is_there, writer_of

ENDED: Object = {"kind": "Status", "status": "Success"}
LAUNCHER = DeleteLauncher(launcher=launcher(), note=NOTE)
EXPIRED = DeleteJob(ref=job(1).ref, note=NOTE)


def changed(version: str = "8", kind: str = "Pod", **content: object) -> Object:
    return {"kind": kind, "metadata": {"resourceVersion": version}, **content}


@pytest.mark.parametrize(
    ("action", "answer", "versions", "gone"),
    [
        pytest.param(LAUNCHER, changed(), [8], [], id="it ends later"),
        # Seen of a real API server where a kubelet's deletion of the same pod came between.
        pytest.param(
            LAUNCHER, {"kind": "Pod", "metadata": {"name": "j-launcher"}}, [], ["j-launcher"], id="it ended meanwhile"
        ),
        pytest.param(LAUNCHER, ENDED, [], ["j-launcher"], id="it ended at once"),
        pytest.param(EXPIRED, changed(kind="MPIJob"), [8], [], id="a job with a finalizer"),
        pytest.param(EXPIRED, ENDED, [], ["j"], id="a job without one"),
    ],
)
async def test_a_deletion_is_taken_in_however_it_is_answered(
    proxy: FaultProxy,
    writer: Writer,
    taken: Taken,
    action: DeleteLauncher | DeleteJob,
    answer: Object,
    versions: list[int],
    gone: list[str],
) -> None:
    with proxy.inject(Answered(body=answer), on=writes):
        await writer.perform(job(2), action)
    assert (taken.versions(), taken.gone) == (versions, gone)


def leaves(grace: int | None) -> DeleteWorkers:
    return DeleteWorkers(removals=(Removal(worker=worker(1), outcome="drained", note=NOTE, grace=grace),))


@pytest.mark.parametrize(
    ("action", "path", "grace"),
    [
        pytest.param(leaves(1), PODS.path("default", "j-worker-1"), 1, id="a worker has the time of the plan"),
        pytest.param(leaves(None), PODS.path("default", "j-worker-1"), None, id="or its own"),
        # At once, or the operator would see it end and fail the job.
        pytest.param(LAUNCHER, PODS.path("default", "j-launcher"), 0, id="a launcher goes at once"),
        pytest.param(
            but(LAUNCHER, suspends=True), PODS.path("default", "j-launcher"), 0, id="that of a suspended job too"
        ),
        pytest.param(EXPIRED, MPI_JOBS.path("default", "j"), None, id="an expired job"),
    ],
)
async def test_what_is_deleted_is_as_it_was_decided_on(
    api: TinyApi,
    client: ApiWriter,
    taken: Taken,
    action: DeleteWorkers | DeleteLauncher | DeleteJob,
    path: str,
    grace: int | None,
) -> None:
    is_there(api, path)
    await writer_of(client, taken, Everything()).perform(job(1), action)
    [options] = api.deletions
    assert options.get("gracePeriodSeconds") == grace
    assert options["preconditions"] == {"uid": f"uid-of-{path.rpartition('/')[2]}", "resourceVersion": "7"}
    assert path not in api.objects


async def test_the_launcher_of_a_job_that_is_no_longer_suspended_stays(api: TinyApi, writer: Writer) -> None:
    is_there(api, PODS.path("default", "j-launcher"))
    with pytest.raises(Outdated, match="not suspended any more"):
        await writer.perform(job(1), but(LAUNCHER, suspends=True))
    assert not api.deletions


def sized(replicas: int) -> Object:
    return changed(spec={"mpiReplicaSpecs": {"Worker": {"replicas": replicas}}})


@pytest.mark.parametrize(
    ("action", "kept", "altered"),
    [
        (Fill(ref=ref("j"), before=3, after=4, note=NOTE), sized(4), sized(3)),
        (RollBack(ref=ref("j"), before=3, after=4, note=NOTE), sized(4), sized(3)),
        (TunePodGroup(ref=ref("j"), queue="team", annotations={}, note=NOTE), changed("8"), changed("7")),
        (LowerPodGroup(ref=ref("j"), before=5, after=3, note=NOTE), changed("8"), changed("7")),
    ],
)
async def test_what_admission_changes_back_is_an_error_and_so_not_written_again_at_once(
    proxy: FaultProxy,
    writer: Writer,
    taken: Taken,
    action: Fill | RollBack | TunePodGroup | LowerPodGroup,
    kept: Object,
    altered: Object,
) -> None:
    view = job(3, gang=Gang(scheduler="volcano"))
    with proxy.inject(Answered(body=kept), on=writes):
        await writer.perform(view, action)
    with proxy.inject(Answered(body=altered), on=writes), pytest.raises(Altered):
        await writer.perform(view, action)
    assert taken.versions() == [8] * (1 + isinstance(action, Fill | RollBack))


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
    with proxy.inject(Answered(body=changed()), on=writes):
        await writer.perform(view, touch(view, at=NOW + 3 * LATER))
    assert writer.informed(VIEW) == VIEW


async def test_a_refusal_is_of_one_launcher_and_one_change_of_the_list_and_ends_with_its_job(
    proxy: FaultProxy, writer: Writer
) -> None:
    with proxy.inject(Answer(status=403), on=writes):
        await writer.perform(VIEW, touch(VIEW))
    successor = but(VIEW, launcher=but(launcher(), ref=ref("j-launcher", uid="another")))
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
