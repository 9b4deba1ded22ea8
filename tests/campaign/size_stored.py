"""Size: what a tenant can store: MPIJobs as large as an API server takes them, and ConfigMaps of 0.84 MiB."""

from collections.abc import Iterator
from functools import partial
from random import Random
from typing import Any

import msgspec

from mpijob_elastic import names
from mpijob_elastic.kube import resources
from mpijob_elastic.kube.resources import Resource
from tests.campaign.size_fleet import Made

NAMESPACE = "neighbour"
# Bytes of labels of a pod template, as etcd takes objects of 1.5 MiB, and of a ConfigMap's data
# without names of jobs.
LABELS, DATA = 1_300 * 2**10, 2**20 - 2**18
# MPIJobs, and ConfigMaps.
STORED = 500


def stored(first: int, random: Random) -> Iterator[Made]:
    """Yield MPIJobs with labels, and ConfigMaps of jobs with texts of which no compression makes much less.

    Each ConfigMap names as many workers as the largest job has, so that the most of it is kept.
    first: the latest resourceVersion so far.
    """
    labels = {
        f"l{number}": f"{random.getrandbits(256):063x}"[:63] for number in range(LABELS // 74)
    }
    template = {"metadata": {"labels": labels}}
    job = {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 1, "template": template}}}}
    lines = (f"{names.worker('', index)} {random.getrandbits(176):x}\n" for index in range(10_000))
    text = "".join(lines)
    data = {names.KEY_HOSTFILE: text, names.KEY_KUBEXEC: text[: DATA - len(text)][::-1]}
    for number in range(STORED):
        name, version = f"stored-{number}", first + 2 * number + 1
        yield _made(resources.MPI_JOBS, name, name, version, job)
        yield _made(
            resources.CONFIG_MAPS, names.config_map(name), name, version + 1, {"data": data}
        )


def _made(resource: Resource, name: str, job: str, version: int, content: dict[str, Any]) -> Made:
    make = partial(_text, name, job, version, content)
    return resource.path(NAMESPACE, name), version, make


def _text(name: str, job: str, version: int, content: dict[str, Any]) -> bytes:
    owner = {
        "apiVersion": resources.MPI_JOBS.api_version,
        "kind": "MPIJob",
        "name": job,
        "uid": job,
    }
    metadata: dict[str, Any] = {
        "namespace": NAMESPACE,
        "name": name,
        "uid": name,
        "resourceVersion": str(version),
    }
    if "data" in content:
        metadata |= {
            "labels": {names.LABEL_APP: job},
            "ownerReferences": [{**owner, "controller": True}],
        }
        before, after = names.worker("", 0)[:-1], names.worker(job, 0)[:-1]
        content = {
            "data": {key: text.replace(before, after) for key, text in content["data"].items()}
        }
    return msgspec.json.encode({"metadata": metadata, **content})
