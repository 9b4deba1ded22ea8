"""What the preflight says of Volcano's configuration."""

import pytest

from mpijob_elastic.kube.writer import ApiWriter
from tests.faults.faults import Answer, Request
from tests.faults.proxy import FaultProxy
from tests.faults.tiny_api import TinyApi
from upgrade import volcano

PLACE = "/api/v1/namespaces/volcano-system/configmaps"
# installer/helm/chart/volcano/config/volcano-scheduler.conf of v1.14.1
DEFAULT = 'actions: "enqueue, allocate, backfill"\ntiers:\n- plugins:\n  - name: priority\n'
TAKING = DEFAULT.replace("backfill", "preempt, reclaim, backfill")


@pytest.fixture
def installed(api: TinyApi) -> None:
    api.objects["/apis/scheduling.volcano.sh"] = {"name": "scheduling.volcano.sh"}


async def test_it_is_not_there(client: ApiWriter) -> None:
    assert (await volcano.look(client)).text == "not installed"


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("configuration", "said"),
    [
        (DEFAULT, "it takes no pod from a running job"),
        (TAKING, "its actions preempt and reclaim take workers above min-replicas"),
        (TAKING.replace('"', ""), "its actions preempt and reclaim"),
        ("tiers: []", "is not said in"),
        (None, "is not said in"),
    ],
)
async def test_its_actions_say_what_it_takes(
    api: TinyApi, client: ApiWriter, configuration: str | None, said: str
) -> None:
    if configuration is not None:
        await api.create(PLACE, "volcano-scheduler-configmap", data={"volcano-scheduler.conf": configuration})
    assert said in (await volcano.look(client)).text


@pytest.mark.usefixtures("installed")
async def test_without_the_right_to_read_it_nothing_is_claimed(client: ApiWriter, proxy: FaultProxy) -> None:
    def reads(request: Request) -> bool:
        return request.path.startswith(PLACE)

    with proxy.inject(Answer(status=403), on=reads):
        assert "may not read" in (await volcano.look(client)).text
