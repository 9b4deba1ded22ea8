"""What the preflight says of Kueue's configuration."""

import pytest

from mpijob_elastic.kube.writer import ApiWriter
from tests.doubles.api import TinyApi
from tests.faults.faults import Answer, Request
from tests.faults.proxy import FaultProxy
from upgrade import kueue
from upgrade.findings import Verdict

PLACE = "/api/v1/namespaces/kueue-system/configmaps"
OFF = 'integrations:\n  frameworks:\n  - "batch/job"\n'
ON = f"{OFF}  - pod\n"
LEFT_ALONE = f"{ON}  externalFrameworks: [MPIJob.v1.kubeflow.org]\n"


@pytest.fixture(params=["v1beta2", "v1beta1"])
def installed(request: pytest.FixtureRequest, api: TinyApi) -> None:
    for served in ("kueue.x-k8s.io", f"kueue.x-k8s.io/{request.param}"):
        api.objects[f"/apis/{served}"] = {"name": served}


async def test_it_is_not_there(client: ApiWriter) -> None:
    assert (await kueue.look(client)).text == "not installed"


async def test_an_older_one_queues_no_job(api: TinyApi, client: ApiWriter) -> None:
    api.objects["/apis/kueue.x-k8s.io"] = {"name": "kueue.x-k8s.io"}
    found = await kueue.look(client)
    assert found.verdict is Verdict.CARE
    assert "does not serve kueue.x-k8s.io/v1beta2 or kueue.x-k8s.io/v1beta1" in found.text


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("configuration", "verdict", "said"),
    [
        (OFF, Verdict.GO, "its integration `pod` is off"),
        ("integrations: {}", Verdict.GO, "its integration `pod` is off"),
        (ON, Verdict.CARE, "a second time"),
        (LEFT_ALONE, Verdict.GO, "leaves the pods of MPIJobs alone"),
        ("integrations: [pod]", Verdict.CARE, "is not in"),
        ("{", Verdict.CARE, "cannot read"),
        (None, Verdict.CARE, "is not in"),
    ],
)
async def test_its_integration_for_pods_is_judged(
    api: TinyApi, client: ApiWriter, configuration: str | None, verdict: Verdict, said: str
) -> None:
    if configuration is not None:
        await api.create(PLACE, "kueue-manager-config", data={"controller_manager_config.yaml": configuration})
    found = await kueue.look(client)
    assert (found.verdict, said in found.text) == (verdict, True), found.text
    assert ("add MPIJob.v1.kubeflow.org to" in found.text) is (verdict is Verdict.CARE)


@pytest.mark.usefixtures("installed")
async def test_without_the_right_to_read_it_nothing_is_claimed(client: ApiWriter, proxy: FaultProxy) -> None:
    def reads(request: Request) -> bool:
        return request.path.startswith(PLACE)

    with proxy.inject(Answer(status=403), on=reads):
        found = await kueue.look(client)
    assert (found.verdict, "cannot read" in found.text) == (Verdict.CARE, True)
