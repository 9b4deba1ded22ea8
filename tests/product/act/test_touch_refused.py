"""A touch of the launcher that the API server refuses: it is remembered, and holds up nothing else."""

import math
from dataclasses import replace
from random import Random

import pytest
from prometheus_client import CollectorRegistry

from mpijob_elastic.act.events import Events
from mpijob_elastic.act.gate import Gate
from mpijob_elastic.act.writer import Writer
from mpijob_elastic.decide import decide
from mpijob_elastic.decide.actions import RefreshLauncher
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model.job import JobView
from mpijob_elastic.telemetry.metrics import Metrics
from tests.builders import NOW, config, job, launcher, pods, ref
from tests.faults.faults import Answer, writes
from tests.faults.proxy import FaultProxy
from tests.product.act.test_deleting import Answered, Nothing, Taken, ends_nothing

VIEW = job(known=False)
LATER = 120.0  # seconds; longer than any wait between two tries
POD: dict[str, object] = {"kind": "Pod", "metadata": {"name": "j-launcher", "resourceVersion": "8"}}


@pytest.fixture
def writer(client: ApiWriter) -> Writer:
    metrics = Metrics(CollectorRegistry())
    gate = Gate(client, time_left=lambda: math.inf, metrics=metrics)
    events = Events(gate, metrics=metrics, instance="test", now=lambda: NOW, random=Random(1))
    return Writer(gate, Taken(), recheck=Nothing(), begin_to_end=ends_nothing, events=events, metrics=metrics)


def touch(view: JobView, *, at: float = NOW) -> RefreshLauncher:
    [found] = [action for action in decide(view, now=at).actions if isinstance(action, RefreshLauncher)]
    return found


@pytest.mark.parametrize("status", [400, 403, 422, 500])
async def test_refusals_in_a_row_are_counted_and_forgotten_with_the_first_success(
    proxy: FaultProxy, writer: Writer, status: int
) -> None:
    view: JobView = VIEW
    for count in (1, 2):
        with proxy.inject(Answer(status=status, reason="a policy says no"), on=writes):
            await writer.perform(view, touch(view, at=NOW + LATER * count))
        view = writer.informed(VIEW)
        assert view.launcher is not None
        assert view.launcher.refused is not None
        assert view.launcher.refused.tries.count == count
    with proxy.inject(Answered(body=POD), on=writes):
        await writer.perform(view, touch(view, at=NOW + 3 * LATER))
    assert writer.informed(VIEW) == VIEW


async def test_a_refusal_is_of_one_launcher_and_ends_with_its_job(proxy: FaultProxy, writer: Writer) -> None:
    with proxy.inject(Answer(status=403), on=writes):
        await writer.perform(VIEW, touch(VIEW))
    successor = replace(VIEW, launcher=replace(launcher(), ref=ref("j-launcher", uid="another")))
    assert writer.informed(successor) == successor
    assert writer.informed(VIEW) != VIEW
    writer.forget(VIEW.namespace, VIEW.name)
    assert writer.informed(VIEW) == VIEW


async def test_a_refusal_is_of_one_change_of_the_list(proxy: FaultProxy, writer: Writer) -> None:
    """Else the next change would be said to be refused before it was tried."""
    with proxy.inject(Answer(status=403), on=writes):
        await writer.perform(VIEW, touch(VIEW))
    after = job(known=False, config=config(pods(0, 1)))
    assert writer.informed(after) == after
    assert writer.informed(VIEW) != VIEW


@pytest.mark.parametrize(("status", "error"), [(404, errors.NotFound), (409, errors.Conflict), (429, errors.Throttled)])
async def test_what_passes_by_itself_is_no_refusal(
    proxy: FaultProxy, writer: Writer, status: int, error: type[errors.ApiError]
) -> None:
    with proxy.inject(Answer(status=status), on=writes), pytest.raises(error):
        await writer.perform(VIEW, touch(VIEW))
    assert writer.informed(VIEW) == VIEW
