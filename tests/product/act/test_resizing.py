"""The answer of the API server to a change of a job's size."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import pytest

from mpijob_elastic.act.autoscalers import Altered
from mpijob_elastic.decide.actions import Fill, RollBack
from mpijob_elastic.kube.writer import ApiWriter
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
