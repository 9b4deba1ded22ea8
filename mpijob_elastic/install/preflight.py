"""What must be there before anything is written: the kinds, the MPIJob, the namespace of the jobs, the rights."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import msgspec

from mpijob_elastic.install.failure import InstallError
from mpijob_elastic.install.objects import Identity, Manifest, identity
from mpijob_elastic.install.server import OPTIONAL_KINDS, Server, resources
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import MPI_JOBS, NAMESPACES

# Server-side apply asks for patch, and for create where the object is not there yet.
APPLY_VERBS = ("get", "create", "patch")
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


class _Status(msgspec.Struct):
    allowed: bool = False


class _Review(msgspec.Struct):
    status: _Status


async def check(
    client: ApiReader, server: Server, manifests: Iterable[Manifest], *, jobs_namespace: str | None
) -> None:
    """Raise `InstallError` where these manifests cannot be applied as they are."""
    wanted = [identity(manifest) for manifest in manifests]
    _check_kinds(server, wanted)
    await _check_mpi_jobs(client)
    if jobs_namespace:
        await _check_namespace(client, jobs_namespace)
    await check_rights(client, server, wanted, verbs=APPLY_VERBS)


def _check_kinds(server: Server, wanted: Iterable[Identity]) -> None:
    kinds = {(one.api_version, one.kind) for one in wanted if one.kind not in OPTIONAL_KINDS}
    missing = sorted(f"{kind} ({version})" for version, kind in kinds - server.served.keys())
    if missing:
        raise InstallError(
            f"API server {server.version} does not serve {', '.join(missing)}: install what provides them "
            "(cert-manager, the Prometheus operator) first, or leave out that --overlay"
        )


async def _check_mpi_jobs(client: ApiReader) -> None:
    served = await resources(client, MPI_JOBS.api_version)
    if (MPI_JOBS.api_version, MPI_JOBS.kind) not in served:
        raise InstallError(
            f"the API server does not serve {MPI_JOBS.plural}.{MPI_JOBS.group}/{MPI_JOBS.version}: "
            "install mpi-operator v0.2.3 with its CustomResourceDefinition first"
        )


async def _check_namespace(client: ApiReader, name: str) -> None:
    try:
        await client.get(NAMESPACES.path(name=name))
    except errors.NotFound:
        raise InstallError(f"--namespace: there is no namespace {name}; create it, or name another") from None


async def check_rights(
    client: ApiReader, server: Server, wanted: Iterable[Identity], *, verbs: tuple[str, ...]
) -> None:
    """Raise `InstallError` unless we may do all this to all of these, as far as RBAC says; needs no rights itself."""
    places = sorted({(one.api_version, one.kind, one.namespace) for one in wanted})
    questions = [(verb, place) for place in places if place[:2] in server.served for verb in verbs]
    answers = await asyncio.gather(*(_allowed(client, server, verb, place) for verb, place in questions))
    missing = [_phrase(verb, place) for (verb, place), allowed in zip(questions, answers, strict=True) if not allowed]
    if missing:
        raise InstallError(
            f"your account may not {', '.join(missing)}; ask an administrator of the cluster to run this, "
            "or --print the manifests for one"
        )


async def _allowed(client: ApiReader, server: Server, verb: str, place: tuple[str, str, str]) -> bool:
    resource = server.served[place[0], place[1]]
    asked = {"verb": verb, "group": resource.group, "resource": resource.plural, "namespace": place[2]}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": asked},
    }
    return msgspec.json.decode(await client.review(REVIEWS, body=review), type=_Review).status.allowed


def _phrase(verb: str, place: tuple[str, str, str]) -> str:
    return f"{verb} {place[1]}" + (f" in {place[2]}" if place[2] else "")
