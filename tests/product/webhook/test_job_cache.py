"""The HPAs that scale a job, in whatever order they come, change and go."""

import json
from random import Random

from mpijob_elastic.kube.writer import ApiWriter
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
    watched = Watched(client, namespace=None, random=Random(1))
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
