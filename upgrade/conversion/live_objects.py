"""Convert a job in the cluster."""

from __future__ import annotations

from pathlib import Path

import msgspec

from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import Resource
from upgrade.conversion import documents
from upgrade.conversion.files import File
from upgrade.refusal import Refused

_KINDS = {
    "mpijob": Resource(group="kubeflow.org", version="v1alpha2", plural="mpijobs", kind="MPIJob"),
    "trainingjob": Resource(
        group="kai.alibabacloud.com", version="v1alpha1", plural="trainingjobs", kind="TrainingJob"
    ),
}


async def convert(client: ApiReader, wanted: str, namespace: str) -> File:
    """Convert `KIND/NAME`. Raises `Refused` and `errors.KubeError`."""
    kind, _, name = wanted.partition("/")
    resource = _KINDS.get(kind.lower().removesuffix("s"))
    if resource is None or not name:
        raise Refused(f"--live {wanted}: use mpijob/NAME or trainingjob/NAME")
    try:
        raw = await client.get(resource.path(namespace, name))
    except errors.NotFound as error:
        raise Refused(f"--live {wanted}: {error.message} in namespace {namespace} ({resource.api_version})") from error
    return File(name=Path(f"{name}.yaml"), objects=(documents.convert(msgspec.json.decode(raw)),))
