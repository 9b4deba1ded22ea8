"""What a removal of the installation says before it is confirmed."""

import pytest

from mpijob_elastic.capabilities.kueue.facts import WORKLOADS
from mpijob_elastic.install.quota import Held, Quota
from mpijob_elastic.install.server import Server
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model.wire import Owned
from upgrade.traces import Traces
from upgrade.uninstall import Uninstallation

SERVER = Server(version="v1.34.4", minor=34, served={})
RUNNING = Quota(used=(Held(resource=WORKLOADS, ref=Owned(namespace="ml", name="train-launcher", job="train")),))


@pytest.mark.parametrize("traces", [None, Traces(), Traces(kept=("ml/train",))], ids=["alone", "traces", "a launcher"])
async def test_it_says_which_jobs_keep_their_quota(client: ApiWriter, traces: Traces | None) -> None:
    planned = Uninstallation(client=client, server=SERVER, found=[], takes_scale=False, traces=traces, quota=RUNNING)
    assert planned.is_empty
    assert [line for line in planned.stays() if "because their pods run: ml/train. It is free when" in line]
