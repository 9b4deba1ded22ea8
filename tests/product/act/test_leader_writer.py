"""The writer of the leader: how long a write may take, and what is said of a write for which that was not enough."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from mpijob_elastic.act.leader_writer import LONGEST_WRITE, LeaderWriter, NotLeader, limits_of
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.lease import LeaseTimes
from mpijob_elastic.kube.resources import PODS
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.telemetry.metrics import Metrics
from tests.builders import ref
from tests.faults.faults import Answer, writes
from tests.faults.proxy import FaultProxy
from tests.product.act.writes import leader_writer_of

# Seconds for which the API server waits for a webhook that says nothing of its timeout.
WEBHOOK = 10.0
TIMES = LeaseTimes()


@pytest.mark.parametrize(
    ("left", "server", "ours"),
    [
        pytest.param(TIMES.duration, 12.0, 13.0, id="just renewed"),
        pytest.param(13.0, 12.0, 13.0, id="renewed two seconds ago"),
        pytest.param(12.0, 11.0, 12.0, id="renewed three seconds ago"),
        pytest.param(5.0, 4.0, 5.0, id="about to be lost"),
        pytest.param(1.0, 0.5, 1.0, id="a short lease"),
        pytest.param(0.2, 0.1, 0.2, id="a shorter lease"),
    ],
)
def test_a_write_takes_no_longer_than_admission_needs_and_the_lease_lasts(
    left: float, server: float, ours: float
) -> None:
    limits = limits_of(left)
    assert (limits.server, limits.attempt, limits.throttled) == (server, ours, 0.0)


def test_a_webhook_that_hangs_leaves_time_for_the_write_while_the_lease_is_renewed() -> None:
    """Also where one renewal takes as long as it may."""
    late = TIMES.duration - 1.25 * TIMES.retry
    server = limits_of(late).server
    assert server is not None
    assert server >= WEBHOOK + 1


@given(left=st.floats(min_value=0.001, max_value=1e6))
def test_the_server_gives_up_before_we_do_and_we_before_another_may_lead(left: float) -> None:
    limits = limits_of(left)
    assert limits.server is not None
    assert 0 < limits.server < limits.attempt <= left
    assert limits.server <= LONGEST_WRITE


async def send(leader_writer: LeaderWriter, verb: str) -> None:
    match verb:
        case "POST":
            await leader_writer.create_object(PODS, namespace="n", body={"metadata": {"name": "a"}})
        case "PATCH":
            await leader_writer.patch_object(PODS, namespace="n", name="a", body={"metadata": {}})
        case "DELETE":
            await leader_writer.delete_object(PODS, namespace="n", ref=ref("a"), at_version=False)


@pytest.mark.parametrize("verb", ["POST", "PATCH", "DELETE"])
async def test_every_write_tells_the_server_its_limit(
    proxy: FaultProxy, client: ApiWriter, verb: str
) -> None:
    leader_writer = leader_writer_of(client, Metrics(CollectorRegistry()), time_left=9.0)
    with contextlib.suppress(errors.NotFound):
        await send(leader_writer, verb)
    assert [(sent.method, sent.query["timeout"]) for sent in proxy.requests] == [(verb, "8000ms")]


@pytest.mark.parametrize("verb", ["POST", "PATCH", "DELETE"])
async def test_a_write_that_takes_too_long_is_said_to_wait_for_a_webhook(
    proxy: FaultProxy, client: ApiWriter, verb: str
) -> None:
    metrics = Metrics(CollectorRegistry())
    slow = Answer(status=504, reason="Timeout")
    with proxy.inject(slow, on=writes), pytest.raises(errors.TooSlow) as caught:
        await send(leader_writer_of(client, metrics), verb)
    assert "did not finish this write within 12 s" in caught.value.message
    assert "called for writes of pods, does not answer" in caught.value.message
    counted = metrics.writes.labels(verb, "pods", "TooSlow")._value.get()
    assert counted == 1


async def test_nothing_is_sent_without_the_lease(proxy: FaultProxy, client: ApiWriter) -> None:
    leader_writer = leader_writer_of(client, Metrics(CollectorRegistry()), time_left=0.0)
    with pytest.raises(NotLeader):
        await send(leader_writer, "PATCH")
    assert proxy.requests == []
