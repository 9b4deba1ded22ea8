"""An uninstallation beside pods that wait at a gate of ours."""

import pytest

from mpijob_elastic import names
from mpijob_elastic.install import removal
from mpijob_elastic.install.inventory import Found
from mpijob_elastic.install.objects import Identity
from mpijob_elastic.install.refusal import Refused
from mpijob_elastic.install.server import Server
from mpijob_elastic.kube.resources import DEPLOYMENTS, PODS
from mpijob_elastic.kube.writer import ApiWriter
from tests.doubles.api import TinyApi

SERVER = Server(version="v1.34.4", minor=34, served={("apps/v1", "Deployment"): DEPLOYMENTS})


async def test_pods_that_came_to_a_gate_after_the_question_are_seen(api: TinyApi, client: ApiWriter) -> None:
    controller = await api.create(DEPLOYMENTS.path(names.NAMESPACE), names.CONTROLLER)
    identity = Identity(api_version="apps/v1", kind="Deployment", namespace=names.NAMESPACE, name=names.CONTROLLER)
    found = [Found(identity=identity, uid=controller["metadata"]["uid"])]
    await api.create(PODS.path(), "train-launcher", spec={"schedulingGates": [{"name": names.GATE_QUEUED}]})
    with pytest.raises(Refused, match=r"gate of ours that nobody else takes off: /train-launcher\. Resume"):
        await removal.stop(client, SERVER, found, seconds=1, say=print)
    assert api.deletions == []
