"""What the door for writes counts."""

import contextlib
import math

import pytest
from prometheus_client import CollectorRegistry

from mpijob_elastic.act.gate import Gate
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import PODS
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.telemetry.metrics import Metrics
from tests.faults.faults import Answer, writes
from tests.faults.proxy import FaultProxy


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
