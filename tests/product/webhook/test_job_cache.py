"""The HPAs that scale a job, in whatever order they come, change and go."""

import asyncio
import json
from contextlib import suppress
from random import Random

import pytest

from mpijob_elastic.kube.writer import ApiWriter
from tests.doubles.api import TinyApi
from tests.faults.proxy import FaultProxy
from tests.faults.waiting import eventually
from webhook import job_cache
from webhook.job_cache import Watched
from webhook.rules import hpa_facts
from webhook.rules.hpa_facts import HpaFacts


def hpa(name: str, job: str = "train", *, kind: str = "MPIJob") -> HpaFacts:
    target = {"apiVersion": "kubeflow.org/v1", "kind": kind, "name": job}
    made = {"metadata": {"name": name, "namespace": "default"}, "spec": {"scaleTargetRef": target, "maxReplicas": 2}}
    return hpa_facts.read(json.dumps(made).encode())


def scaling(watched: Watched, job: str = "train") -> list[str]:
    return sorted(one.metadata.name for one in watched.autoscalers("default", job))


async def test_hpas_come_change_their_job_and_go(client: ApiWriter) -> None:
    watched = Watched(client, namespaces=(), random=Random(1))
    assert scaling(watched) == []
    watched._changed(None, hpa("a"))
    watched._changed(None, hpa("b"))
    watched._changed(None, hpa("c", kind="Deployment"))
    assert scaling(watched) == ["a", "b"]
    watched._changed(hpa("a"), hpa("a", "other"))
    assert (scaling(watched), scaling(watched, "other")) == (["b"], ["a"])
    watched._changed(hpa("b"), hpa("b", kind="Deployment"))
    watched._changed(hpa("a", "other"), None)
    assert (scaling(watched), scaling(watched, "other")) == ([], [])
    assert watched.autoscalers("elsewhere", "train") == ()


@pytest.mark.parametrize(
    ("answer", "minor"),
    [
        ({"major": "1", "minor": "26+", "gitVersion": "v1.26.15"}, 26),
        ({"minor": "", "gitVersion": "v0.0.0-master"}, None),
        ({"minor": 1}, None),
    ],
)
async def test_the_version_is_asked_for(
    api: TinyApi,
    client: ApiWriter,
    proxy: FaultProxy,
    monkeypatch: pytest.MonkeyPatch,
    answer: dict[str, object],
    minor: int | None,
) -> None:
    monkeypatch.setattr(job_cache, "ASK_EVERY", 0.01)
    api.objects["/version"] = answer
    watched = Watched(client, namespaces=(), random=Random(1))
    watching = asyncio.create_task(watched.run())
    await eventually(lambda: proxy.count(lambda request: request.path == "/version") > 2)
    assert watched.minor() == minor
    watching.cancel()
    with suppress(asyncio.CancelledError):
        await watching
