"""Find the operators of MPIJobs in the cluster."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from mpijob_elastic.kube import errors
from mpijob_elastic.kube.list import list_objects
from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import DEPLOYMENTS, PODS, Resource
from upgrade import operator_images
from upgrade.operator_images import Kind, Operator
from upgrade.refusal import Refused


class _Container(msgspec.Struct):
    image: str = ""
    command: list[str] = []
    args: list[str] = []


class _PodSpec(msgspec.Struct):
    containers: list[_Container] = []


class _Template(msgspec.Struct):
    spec: _PodSpec


class _DeploymentSpec(msgspec.Struct):
    template: _Template
    replicas: int = 1


class _Deployment(msgspec.Struct):
    metadata: ObjectMeta
    spec: _DeploymentSpec


class _Pod(msgspec.Struct):
    metadata: ObjectMeta
    spec: _PodSpec


async def operators_in(client: ApiReader) -> list[Operator] | None:
    """Return the operators in Deployments, and in pods without a Deployment; None if this account may list neither.

    Raises `errors.KubeError`.
    """
    deployments = await _readable(client, DEPLOYMENTS, _of_deployment)
    pods = await _readable(client, PODS, _of_pod)
    if deployments is None and pods is None:
        return None
    return sorted({operator for found in (*(deployments or ()), *(pods or ())) for operator in found})


async def check(client: ApiReader) -> list[Operator] | None:
    """Return the same as `operators_in`. Raises `Refused` if an operator resizes jobs itself."""
    found = await operators_in(client)
    elastic = [operator for operator in found or () if operator.kind is Kind.ELASTIC]
    if elastic:
        raise Refused(
            f"{elastic[0]} changes the size of jobs itself, and two controllers that do so would hurt every job: do "
            "not upgrade this cluster. To keep v0.2.3 instead, remove that operator first"
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
    deployment = msgspec.json.decode(raw, type=_Deployment)
    if deployment.spec.replicas == 0:
        return []  # switched off
    where = f"Deployment {deployment.metadata.namespace}/{deployment.metadata.name}"
    return _operators(where, deployment.spec.template.spec)


def _of_pod(raw: bytes) -> list[Operator]:
    pod = msgspec.json.decode(raw, type=_Pod)
    owner = pod.metadata.controller
    if owner is not None and owner.kind == "ReplicaSet":
        return []  # found by its Deployment
    return _operators(f"Pod {pod.metadata.namespace}/{pod.metadata.name}", pod.spec)


def _operators(where: str, spec: _PodSpec) -> list[Operator]:
    found = [operator_images.recognise(where, one.image, (*one.command, *one.args)) for one in spec.containers]
    return [operator for operator in found if operator is not None]
