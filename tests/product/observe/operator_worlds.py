"""A job and its objects as the operator made them, and the view of them."""

import json
from typing import Any

from lab.operator import objects
from mpijob_elastic import capabilities
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.pod import Probe
from mpijob_elastic.observe import facts_config, facts_pod, views

UID = "job-uid"
World = dict[str, Any]


def created(sample: str = "two-workers") -> World:
    """Return the sample's job and objects with uids, and with pods that are Ready."""
    text = json.dumps(objects.sample(sample))
    world: World = json.loads(text.replace(objects.UID, UID))
    for name, thing in world.items():
        thing["metadata"].update(
            uid=UID if name.startswith("MPIJob/") else f"uid of {name}", resourceVersion="7"
        )
        thing["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    for pod in pods_of(world):
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:05Z"}
        pod["status"]["conditions"] = [ready]
    return world


def pods_of(world: World) -> list[Any]:
    return [thing for name, thing in world.items() if name.startswith("Pod/")]


def look(
    world: World,
    job: str = "scale",
    probes: views.Probes = lambda uid, at: Probe(),
) -> JobView:
    raw = {name: json.dumps(thing).encode() for name, thing in world.items()}
    config, role = raw.get(f"ConfigMap/{job}-config"), raw.get(f"Role/{job}-launcher")
    return views.view(
        capabilities.read(raw[f"MPIJob/{job}"]),
        pods=[facts_pod.read(raw[name]) for name in raw if name.startswith("Pod/")],
        config=facts_config.read_config(config) if config else None,
        role=facts_config.read_role(role) if role else None,
        probes=probes,
    )
