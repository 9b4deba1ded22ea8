"""A removal of the installation: what it says before it is confirmed, and that it looks at pods again."""

import pytest

from mpijob_elastic import names
from mpijob_elastic.capabilities.kueue.facts import WORKLOADS
from mpijob_elastic.install import Refused
from mpijob_elastic.install.removal import Held, Quota
from mpijob_elastic.install.server import Found
from mpijob_elastic.kube.resources import DEPLOYMENTS, PODS
from mpijob_elastic.kube.writer import ApiWriter
from tests.doubles.api import TinyApi
from upgrade.traces import Traces
from upgrade.uninstall import Uninstallation

HELD = Held(
    resource=WORKLOADS, namespace="ml", name="train-launcher", uid="u", job="ml/train", job_uid="j"
)
RUNNING = Quota(used=(HELD,))


@pytest.mark.parametrize(
    "traces", [None, Traces(), Traces(kept=("ml/train",))], ids=["alone", "traces", "a launcher"]
)
async def test_it_says_which_jobs_keep_their_quota(
    client: ApiWriter, traces: Traces | None
) -> None:
    planned = Uninstallation(
        client=client, found=[], takes_scale=False, traces=traces, quota=RUNNING
    )
    assert planned.is_empty
    assert [
        line
        for line in planned.stays()
        if "because their pods run: ml/train. It is free when" in line
    ]


async def test_pods_that_came_to_a_gate_after_the_question_are_seen(
    api: TinyApi, client: ApiWriter
) -> None:
    controller = await api.create(DEPLOYMENTS.path(names.NAMESPACE), names.CONTROLLER)
    uid = controller["metadata"]["uid"]
    found = [Found(resource=DEPLOYMENTS, namespace=names.NAMESPACE, name=names.CONTROLLER, uid=uid)]
    await api.create(
        PODS.path(), "train-launcher", spec={"schedulingGates": [{"name": names.GATE_QUEUED}]}
    )
    planned = Uninstallation(
        client=client, found=found, takes_scale=False, traces=None, quota=Quota()
    )
    with pytest.raises(
        Refused, match=r"gate of ours that nobody else takes off: /train-launcher\. Resume"
    ):
        await planned.run(seconds=1, say=print)
    assert api.deletions == []
