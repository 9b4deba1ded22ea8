"""Find the operators of MPIJobs in the cluster, and recognise each by its image.

Only v0.2.3 is tested. v0.3.0 and later and the training-operator are elastic themselves: two
controllers that delete the same workers would hurt every job.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from mpijob_elastic.install import Refused, objects
from mpijob_elastic.install.objects import Manifest
from mpijob_elastic.kube import envelopes, errors
from mpijob_elastic.kube.reader import LARGE_PAGE, ApiReader, list_objects
from mpijob_elastic.kube.resources import DEPLOYMENTS, PODS, Resource

KNOWN = (0, 2, 3)
_FIRST_ELASTIC = (0, 3, 0)
# A digest tells no version, and a colon before a slash is a port.
_IMAGE = re.compile(r"([^@]*/)?(?P<name>mpi-operator|training-operator)(:(?P<tag>[^/:@]*))?(@.*)?")
_VERSION = re.compile(r"v?(?P<major>\d+)\.(?P<minor>\d+)(\.(?P<patch>\d+))?")


class Kind(StrEnum):
    """The kind of an operator."""

    KNOWN = "known"
    #: It resizes jobs itself.
    ELASTIC = "elastic"
    #: Of the family of v0.2.3, but untested.
    OTHER = "other"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True, order=True)
class Operator:
    """An operator of MPIJobs."""

    #: As `Deployment mpi-operator/mpi-operator`.
    where: str
    image: str
    #: "" if the image has none.
    version: str
    kind: Kind

    def __str__(self) -> str:
        version = f"version {self.version}" if self.version else "version unknown"
        return f"{self.where} ({self.image}, {version}: {self.kind})"


async def operators_in(client: ApiReader) -> list[Operator] | None:
    """Return the operators in Deployments, and in pods without a Deployment.

    None if this account may list neither.
    """
    deployments = await _readable(client, DEPLOYMENTS, _of_deployment)
    pods = await _readable(client, PODS, _of_pod)
    if deployments is None and pods is None:
        return None
    return sorted(
        {operator for found in (*(deployments or ()), *(pods or ())) for operator in found}
    )


async def check(client: ApiReader) -> None:
    """Raise `Refused` if an operator resizes jobs itself."""
    elastic = [
        operator for operator in await operators_in(client) or () if operator.kind is Kind.ELASTIC
    ]
    if elastic:
        raise Refused(
            f"{elastic[0]} changes the size of jobs itself, and two controllers that do "
            "so would hurt every job: do not upgrade this cluster. To keep v0.2.3 "
            "instead, remove that operator first"
        )


def recognise(where: str, image: str, command: tuple[str, ...] = ()) -> Operator | None:
    """Return the operator that runs this image with this command.

    None if it is no operator of MPIJobs.
    """
    found = _IMAGE.fullmatch(image)
    if found is None:
        return None
    tag = found["tag"] or ""
    match = _VERSION.match(tag)
    version = tag.removeprefix("v") if match else ""
    is_newer = found["name"] == "training-operator" or any("v2beta" in part for part in command)
    kind = Kind.ELASTIC if is_newer else _kind(match)
    return Operator(where=where, image=image, version=version, kind=kind)


def _kind(version: re.Match[str] | None) -> Kind:
    if version is None:
        return Kind.UNKNOWN
    number = tuple(int(version[part] or 0) for part in ("major", "minor", "patch"))
    if number >= _FIRST_ELASTIC:
        return Kind.ELASTIC
    return Kind.KNOWN if number == KNOWN else Kind.OTHER


async def _readable(
    client: ApiReader, resource: Resource, read: Callable[[bytes], list[Operator]]
) -> list[list[Operator]] | None:
    try:
        return await list_objects(client, resource.path(), read, size=LARGE_PAGE)
    except (errors.Forbidden, errors.NotFound):
        return None


def _of_deployment(raw: bytes) -> list[Operator]:
    deployment = objects.read(raw)
    if deployment["spec"].get("replicas") == 0:
        return []  # switched off
    return _operators("Deployment", deployment, deployment["spec"]["template"]["spec"])


def _of_pod(raw: bytes) -> list[Operator]:
    pod = objects.read(raw)
    owner = envelopes.read_stub(raw).metadata.controller
    if owner is not None and owner.kind == "ReplicaSet":
        return []  # found by its Deployment
    return _operators("Pod", pod, pod["spec"])


def _operators(kind: str, found: Manifest, spec: Mapping[str, Any]) -> list[Operator]:
    where = f"{kind} {found['metadata']['namespace']}/{found['metadata']['name']}"
    return [
        operator
        for one in spec.get("containers") or ()
        if (
            operator := recognise(
                where, one.get("image", ""), (*one.get("command", ()), *one.get("args", ()))
            )
        )
    ]
