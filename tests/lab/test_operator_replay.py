"""The operator that the other tests run beside does what the real mpi-operator v0.2.3 was recorded doing."""

from collections.abc import AsyncIterator, Iterator

import pytest

from lab.cluster import Cluster
from lab.operator.process import Operator
from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.recording import Recording, read_all
from tests.lab.replay import NAMESPACE, replay

pytestmark = pytest.mark.lab
RECORDINGS = read_all()
ALONE = [recording for recording in RECORDINGS if recording.gang_scheduling is None]
IN_GANGS = [recording for recording in RECORDINGS if recording.gang_scheduling == "volcano"]


@pytest.fixture(scope="module")
def recorded_operator(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[Operator]:
    """An operator in the recordings' namespace, started with the --gang-scheduling that is the parameter."""
    with Operator.start(cluster, namespace=NAMESPACE, gang_scheduling=request.param, qps=0) as running:
        yield running


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[ApiWriter]:
    async with await connect(user_agent="replay", kubeconfig=cluster.kubeconfig) as connected:
        yield connected


@pytest.mark.parametrize("recorded_operator", [None], indirect=True, ids=["no-gang"])
@pytest.mark.parametrize("recording", ALONE, ids=str)
async def test_leaves_after_each_step_what_was_recorded(
    recorded_operator: Operator, client: ApiWriter, recording: Recording
) -> None:
    await replay(client, recording)


@pytest.mark.parametrize("recorded_operator", ["volcano"], indirect=True)
@pytest.mark.parametrize("recording", IN_GANGS, ids=str)
async def test_leaves_what_was_recorded_with_gang_scheduling(
    recorded_operator: Operator, client: ApiWriter, recording: Recording
) -> None:
    await replay(client, recording)


def test_every_recording_is_replayed() -> None:
    assert (len(ALONE), len(IN_GANGS)) == (15, 1)
