"""The answer of the API server to a change of a job's size, or of its PodGroup."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import pytest

from mpijob_elastic.act.gate import Altered
from mpijob_elastic.decide.actions import Fill, LowerPodGroup, RollBack, TunePodGroup
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model.gang import Gang
from tests.builders import job, ref
from tests.faults.faults import writes
from tests.faults.proxy import FaultProxy
from tests.product.act.test_deleting import NOTE, Answered, Nothing, Taken, writer


@pytest.mark.parametrize("change", [Fill, RollBack])
@pytest.mark.parametrize(("answered", "outcome"), [(4, nullcontext()), (3, pytest.raises(Altered))])
async def test_a_size_that_admission_changes_is_an_error_and_so_not_written_again_at_once(
    proxy: FaultProxy,
    client: ApiWriter,
    change: Callable[..., Fill | RollBack],
    answered: int,
    outcome: AbstractContextManager[object],
) -> None:
    taken, spec = Taken(), {"mpiReplicaSpecs": {"Worker": {"replicas": answered}}}
    answer = Answered(body={"metadata": {"name": "j", "resourceVersion": "8"}, "spec": spec})
    with proxy.inject(answer, on=writes), outcome:
        await writer(client, taken, Nothing()).perform(job(3), change(ref=ref("j"), before=3, after=4, note=NOTE))
    assert taken.versions == [8]


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
    client: ApiWriter,
    change: TunePodGroup | LowerPodGroup,
    version: str,
    outcome: AbstractContextManager[object],
) -> None:
    answer = Answered(body={"metadata": {"name": "j", "resourceVersion": version}})
    volcano = job(3, gang=Gang(scheduler="volcano"))
    with proxy.inject(answer, on=writes), outcome:
        await writer(client, Taken(), Nothing()).perform(volcano, change)
