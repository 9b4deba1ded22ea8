"""Looking for operators in the cluster."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from mpijob_elastic.kube import errors
from mpijob_elastic.kube.list import list_objects
from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import PODS, Resource
from upgrade import operator_images
from upgrade.operator_images import Kind, Operator
from upgrade.refusal import Refused

DEPLOYMENTS = Resource(group="apps", version="v1", plural="deployments", kind="Deployment")


class _Container(msgspec.Struct):
    image: str = ""
    command: list[str] = []
    args: list[str] = []


class _PodSpec(msgspec.Struct):
    containers: list[_Container] = []


class _Template(msgspec.Struct):
    spec: _PodSpec


class _Deployment(msgspec.Struct):
    class Spec(msgspec.Struct):
        """Its template, and how many pods are made of it."""

        template: _Template
        replicas: int = 1

    metadata: ObjectMeta
    spec: Spec


class _Pod(msgspec.Struct):
    metadata: ObjectMeta
    spec: _PodSpec


async def operators_in(client: ApiReader) -> list[Operator] | None:
    """Every operator of MPIJobs, also one that runs in a pod without a Deployment; None where we may not look.

    Raises `errors.KubeError`.
    """
    deployments = await _readable(client, DEPLOYMENTS, _of_deployment)
    pods = await _readable(client, PODS, _of_pod)
    if deployments is None and pods is None:
        return None
    return sorted({one for found in (*(deployments or ()), *(pods or ())) for one in found})


async def check(client: ApiReader) -> list[Operator] | None:
    """The same as `operators_in`; raise `Refused` where one of them is elastic itself."""
    found = await operators_in(client)
    elastic = [one for one in found or () if one.kind is Kind.ELASTIC]
    if elastic:
        raise Refused(
            f"{elastic[0]} changes the size of jobs itself, and two that do would hurt every job: nothing is to be "
            "upgraded here. Remove that operator first if v0.2.3 is the one to keep"
        )
    return found


async def _readable(
    client: ApiReader, resource: Resource, read: Callable[[bytes], list[Operator]]
) -> list[list[Operator]] | None:
    try:
        return await list_objects(client, resource.path(), read)
    except (errors.Forbidden, errors.NotFound):
        return None


def _of_deployment(raw: bytes) -> list[Operator]:
    one = msgspec.json.decode(raw, type=_Deployment)
    if one.spec.replicas == 0:
        return []  # switched off
    return _operators(f"Deployment {one.metadata.namespace}/{one.metadata.name}", one.spec.template.spec)


def _of_pod(raw: bytes) -> list[Operator]:
    one = msgspec.json.decode(raw, type=_Pod)
    owner = one.metadata.controller
    if owner is not None and owner.kind == "ReplicaSet":
        return []  # its Deployment says the same
    return _operators(f"Pod {one.metadata.namespace}/{one.metadata.name}", one.spec)


def _operators(where: str, spec: _PodSpec) -> list[Operator]:
    found = [operator_images.recognise(where, one.image, (*one.command, *one.args)) for one in spec.containers]
    return [one for one in found if one is not None]
