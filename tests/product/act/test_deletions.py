"""The controller counts its deletions of pods: each that it sends, while the MPIJob asks for the same."""

import msgspec
import pytest

from lab.operator import objects
from mpijob_elastic import capabilities, names
from mpijob_elastic.act.deletions import Deletions
from mpijob_elastic.act.writer import Writer
from mpijob_elastic.capabilities.run_policy import DeleteJob
from mpijob_elastic.decide.actions import Action, DeleteLauncher, DeleteWorkers, Removal
from mpijob_elastic.decide.parking import DeletePlaceholder
from mpijob_elastic.decide.state import FORGIVEN_AFTER
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import MPI_JOBS, PODS
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model.job import Deleted, JobView
from tests.builders import but, job, launcher, ref, worker
from tests.doubles.api import Object, TinyApi
from tests.faults.faults import Answer, writes
from tests.faults.proxy import FaultProxy
from tests.product.act.writes import NOTE, Everything, Taken, is_there, writer_of

VIEW = job(2)
LEAVES = DeleteWorkers(removals=(Removal(worker=worker(1), outcome="drained", note=NOTE),))


def counted(writer: Writer) -> dict[str, int]:
    return {pod: last.count for pod, last in writer.informed(VIEW).deleted.items()}


@pytest.mark.parametrize(
    ("action", "pod"),
    [
        pytest.param(LEAVES, "j-worker-1", id="a worker"),
        pytest.param(
            DeletePlaceholder(ref=ref("j-worker-1"), note=NOTE), "j-worker-1", id="a placeholder"
        ),
        pytest.param(DeleteLauncher(launcher=launcher(), note=NOTE), "j-launcher", id="a launcher"),
    ],
)
async def test_each_deletion_of_a_pod_is_counted(
    api: TinyApi, client: ApiWriter, taken: Taken, action: Action, pod: str
) -> None:
    writer = writer_of(client, taken, Everything())
    for times in (1, 2):
        is_there(api, PODS.path("default", pod))
        await writer.perform(VIEW, action)
        assert counted(writer) == {pod: times}
    writer.forget(("default", "j"))
    assert counted(writer) == {}


async def test_the_deletion_of_another_object_is_not(
    api: TinyApi, client: ApiWriter, taken: Taken
) -> None:
    writer = writer_of(client, taken, Everything())
    is_there(api, MPI_JOBS.path("default", "j"))
    await writer.perform(VIEW, DeleteJob(ref=VIEW.ref, note=NOTE))
    assert counted(writer) == {}


async def test_a_refused_deletion_is_not(proxy: FaultProxy, writer: Writer) -> None:
    action = DeletePlaceholder(ref=ref("j-worker-1"), note=NOTE)
    with proxy.inject(Answer(status=403), on=writes), pytest.raises(errors.KubeError):
        await writer.perform(VIEW, action)
    assert counted(writer) == {}


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(but(VIEW, facts=but(VIEW.facts, replicas=5)), id="another size"),
        pytest.param(but(VIEW, parked=(1,)), id="another worker is parked"),
        pytest.param(but(VIEW, spec_elastic=False), id="not elastic"),
        pytest.param(but(VIEW, ref=ref("j", uid="new")), id="another job of that name"),
    ],
)
def test_the_count_begins_anew_once_the_job_asks_for_something_else(changed: object) -> None:
    clock = Clock()
    deletions = Deletions(clock=clock)
    deletions.add(VIEW, "j-worker-1")
    clock.now += 2.0
    assert deletions.seen(but(VIEW, notices="Parked: it is")) == {
        "j-worker-1": Deleted(count=1, ago=2.0)
    }
    assert deletions.seen(changed) == {}  # type: ignore[arg-type]
    assert deletions.seen(VIEW) == {}


def annotated(second: int, **annotations: str) -> JobView:
    """The job as stored after somebody has set only an annotation, at a second."""
    stored = objects.mpi_job(name="j", uid="u", replicas=2, annotations=annotations)
    size: Object = {"f:spec": {"f:mpiReplicaSpecs": {"f:Worker": {"f:replicas": {}}}}}
    edit: Object = {"f:metadata": {"f:annotations": {f"f:{key}": {} for key in annotations}}}
    stored["metadata"]["managedFields"] = [
        {"manager": "kubectl", "time": "2026-11-28T10:00:00Z", "fieldsV1": size},
        {"manager": "tool", "time": f"2026-11-28T10:01:{second:02}Z", "fieldsV1": edit},
    ]
    return but(VIEW, facts=capabilities.read(msgspec.json.encode(stored)))


@pytest.mark.parametrize("key", ["a-tool/seen", names.PHASE, names.CHANGE])
def test_an_edit_that_asks_for_nothing_begins_no_count_anew(key: str) -> None:
    """A tool that notes a time all day, and our own marks, would make the deletions a hot loop."""
    deletions = Deletions(clock=Clock())
    for second in range(5):
        deletions.add(annotated(second, **{key: str(second)}), "j-worker-1")
    assert deletions.seen(annotated(9, **{key: "9"}))["j-worker-1"].count == 5


def test_a_deletion_of_long_ago_is_forgotten() -> None:
    clock = Clock()
    deletions = Deletions(clock=clock)
    deletions.add(VIEW, "j-worker-1")
    clock.now += FORGIVEN_AFTER
    assert deletions.seen(VIEW) == {}
    deletions.add(VIEW, "j-worker-1")
    assert deletions.seen(VIEW)["j-worker-1"].count == 1
