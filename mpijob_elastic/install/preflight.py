"""Check what must be there before anything is written: the kinds, MPIJobs, the namespace of the jobs, the rights."""

import asyncio
from collections.abc import Iterable

from mpijob_elastic.install import Refused
from mpijob_elastic.install.objects import Manifest, identity, read
from mpijob_elastic.install.server import OLDEST, OPTIONAL_KINDS, Found, Server, resources
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import MPI_JOBS, NAMESPACES, Resource

# Server-side apply needs patch, and create for an object that does not exist yet.
APPLY_VERBS = ("get", "create", "patch")
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

# A resource, the namespace ("" for none or all), a verb.
Right = tuple[Resource, str, str]


async def check(
    client: ApiReader, server: Server, manifests: Iterable[Manifest], *, jobs_namespaces: Iterable[str]
) -> None:
    """Raise `Refused` if these manifests cannot be applied as they are."""
    if server.minor < OLDEST:
        raise Refused(f"Kubernetes {server.version} is too old: 1.{OLDEST} is the oldest that is supported")
    wanted = [identity(manifest) for manifest in manifests]
    kinds = {(one.api_version, one.kind) for one in wanted if one.kind not in OPTIONAL_KINDS}
    if missing := sorted(f"{kind} ({version})" for version, kind in kinds - server.served.keys()):
        raise Refused(
            f"API server {server.version} does not serve {', '.join(missing)}: install what provides them "
            "(cert-manager, the Prometheus operator) first, or leave out that --overlay"
        )
    if (MPI_JOBS.api_version, MPI_JOBS.kind) not in await resources(client, MPI_JOBS.api_version):
        raise Refused(
            f"the API server does not serve {MPI_JOBS.plural}.{MPI_JOBS.group}/{MPI_JOBS.version}: "
            "install mpi-operator v0.2.3 with its CustomResourceDefinition first"
        )
    for namespace in jobs_namespaces:
        if await client.find(NAMESPACES.path(name=namespace)) is None:
            raise Refused(f"--jobs-namespace: there is no namespace {namespace}; create it, or name another")
    served = [(server.resource(one), one.namespace) for one in wanted]
    rights = [(resource, namespace, verb) for resource, namespace in served if resource for verb in APPLY_VERBS]
    await check_rights(client, rights)


async def check_deletions(client: ApiReader, found: Iterable[Found]) -> None:
    """Raise `Refused` if this account may not delete these objects."""
    await check_rights(client, [(one.resource, one.namespace, "delete") for one in found])


async def check_rights(client: ApiReader, wanted: Iterable[Right], *, name: str = "") -> None:
    """Raise `Refused` if RBAC does not give this account all these rights. The check itself needs none.

    name: of the object; "" for any object.
    """
    questions = sorted(set(wanted))
    answers = await asyncio.gather(*(_allowed(client, right, name) for right in questions))
    missing = [
        f"{verb} {resource.kind}" + (f" in {namespace}" if namespace else "")
        for (resource, namespace, verb), allowed in zip(questions, answers, strict=True)
        if not allowed
    ]
    if missing:
        raise Refused(
            f"your account may not {', '.join(missing)}; ask an administrator of the cluster to run this, "
            "or --print the manifests for the administrator"
        )


async def _allowed(client: ApiReader, right: Right, name: str) -> bool:
    resource, namespace, verb = right
    asked = {"verb": verb, "group": resource.group, "resource": resource.plural, "namespace": namespace, "name": name}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": asked},
    }
    return bool(read(await client.review(REVIEWS, body=review))["status"].get("allowed"))
