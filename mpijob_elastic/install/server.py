"""The API server: its version and kinds, our objects, the user's rights, and how to apply objects.

Our objects have our label and a name from the manifests of any overlay.
https://kubernetes.io/docs/concepts/overview/kubernetes-api/#discovery-api

Manifests are applied server-side: fields that a manifest does not name keep their owners and
values. So the webhook's caBundle, the Lease's holder and whatever others put on our objects survive
every repetition. https://kubernetes.io/docs/reference/using-api/server-side-apply/
"""

import asyncio
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from mpijob_elastic import names
from mpijob_elastic.install import Refused, objects, overlays
from mpijob_elastic.install.objects import (
    Manifest,
    ObjectChange,
    ObjectIdentity,
    Outcome,
    identity,
    read,
)
from mpijob_elastic.install.overlays import Overlay
from mpijob_elastic.kube import envelopes, errors
from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.kube.reader import ApiReader, list_objects
from mpijob_elastic.kube.resources import NAMESPACES, Resource
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model.phrases import listed

# The oldest minor version of Kubernetes 1 that can be installed into: the first whose webhooks have
# matchConditions.
OLDEST = 28
# The optional kinds, and the first minor version of Kubernetes 1 that serves each; every other kind
# is needed.
OPTIONAL_KINDS = {
    "FlowSchema": 29,
    "ValidatingAdmissionPolicy": 30,
    "ValidatingAdmissionPolicyBinding": 30,
}
DEFINITION = "CustomResourceDefinition"
SELECTOR = f"app.kubernetes.io/name={names.PROGRAM}"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
RULES = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"

# A resource, the namespace ("" for none or all), a verb.
Right = tuple[Resource, str, str]

WORKLOADS = ("Deployment",)
HOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_RIGHTS = ("ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding")
_GUARDS = (
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "FlowSchema",
    "NetworkPolicy",
)
_ANY_OTHER = ""
# Rights and guards before the workloads that need them, hooks after the webhook itself.
_ORDER = (
    "Namespace",
    "PriorityClass",
    "ServiceAccount",
    *_RIGHTS,
    *_GUARDS,
    _ANY_OTHER,
    *WORKLOADS,
    *HOOKS,
)


class _Version(msgspec.Struct, rename={"git": "gitVersion"}, kw_only=True):
    """https://kubernetes.io/docs/reference/using-api/."""

    minor: str
    git: str


@dataclass(frozen=True, kw_only=True)
class Server:
    """An API server."""

    #: As `v1.34.4`.
    version: str
    #: The minor version, as 34.
    minor: int
    #: The resource of every kind that was asked for and is served.
    served: Mapping[tuple[str, str], Resource]

    def resource(self, one: ObjectIdentity) -> Resource | None:
        """Return the resource for an object; None if its kind is not served."""
        return self.served.get((one.api_version, one.kind))


async def examine(client: ApiReader, manifests: Iterable[Manifest]) -> Server:
    """Ask the API server about itself and the kinds of these manifests.

    Raises `errors.KubeError`.
    """
    version = await _version(client)
    wanted = sorted({identity(manifest).api_version for manifest in manifests})
    found = await asyncio.gather(*(resources(client, api_version) for api_version in wanted))
    served = {kind: resource for resources_of in found for kind, resource in resources_of.items()}
    # Some providers append a plus sign to the number.
    minor = int(re.sub(r"\D", "", version.minor) or 0)
    return Server(version=version.git, minor=minor, served=served)


async def _version(client: ApiReader) -> _Version:
    """Return the version. Raises `errors.Unreachable` if something else answers."""
    try:
        return msgspec.json.decode(await client.get("/version"), type=_Version)
    except msgspec.DecodeError:
        raise errors.Unreachable(
            f"{client.host}/version: what answers is not an API server"
        ) from None


async def resources(client: ApiReader, api_version: str) -> dict[tuple[str, str], Resource]:
    """Return the resources of an API version such as `apps/v1`, none if it is not served.

    Raises `errors.KubeError`.
    """
    group, _, version = api_version.rpartition("/")
    body = await client.find(f"/apis/{api_version}" if group else f"/api/{api_version}")
    if body is None:
        return {}
    return {
        (api_version, one["kind"]): Resource(
            group=group, version=version, plural=one["name"], kind=one["kind"]
        )
        for one in read(body).get("resources") or ()
        if "/" not in one["name"]
    }


@dataclass(frozen=True, kw_only=True)
class Found:
    """An object in the cluster; namespace is "" for cluster-scoped objects."""

    resource: Resource
    namespace: str
    name: str
    uid: str

    @property
    def identity(self) -> ObjectIdentity:
        """The object in words."""
        kind, version = self.resource.kind, self.resource.api_version
        return ObjectIdentity(
            api_version=version, kind=kind, namespace=self.namespace, name=self.name
        )


def every_manifest() -> list[Manifest]:
    """Return every manifest of every overlay."""
    return [
        manifest for name in (overlays.DEFAULT, *Overlay) for manifest in overlays.rendered(name)
    ]


async def look(client: ApiReader) -> tuple[Server, list[Found]]:
    """Return the API server and our objects in it. Raises `errors.KubeError`."""
    known = every_manifest()
    found = await examine(client, known)
    return found, await find(client, found, known)


async def find(client: ApiReader, where: Server, known: Iterable[Manifest]) -> list[Found]:
    """Return the objects of these manifests that exist, in any namespace.

    Raises `errors.KubeError`.
    """
    # The namespace is left out: the user chooses where the Role for the jobs is.
    # A definition stays: all objects of its kind would go with it, whoever uses them.
    wanted = {
        (one.api_version, one.kind, one.name)
        for one in map(identity, known)
        if one.kind != DEFINITION
    }
    kinds = sorted({(version, kind) for version, kind, _ in wanted} & where.served.keys())
    lists = await asyncio.gather(
        *(metadata(client, where.served[kind].path(), SELECTOR) for kind in kinds)
    )
    return [
        Found(resource=where.served[kind], namespace=meta.namespace, name=meta.name, uid=meta.uid)
        for kind, found in zip(kinds, lists, strict=True)
        for meta in found
        if (*kind, meta.name) in wanted
    ]


async def metadata(client: ApiReader, path: str, selector: str = "") -> list[ObjectMeta]:
    """Return the metadata of every object in a collection. Raises `errors.KubeError`."""
    return [
        found.metadata
        for found in await list_objects(client, path, envelopes.read_stub, selector=selector)
    ]


async def check_rights(client: ApiReader, wanted: Iterable[Right], *, name: str = "") -> None:
    """Raise `Refused` if RBAC does not give this account all these rights.

    The check itself needs no right. name: that of the object; "" for any object.
    """
    questions = sorted(set(wanted))
    answers = await asyncio.gather(*(_allowed(client, right, name) for right in questions))
    missing = [right for right, allowed in zip(questions, answers, strict=True) if not allowed]
    if missing:
        raise Refused(
            f"your account may not {'; nor '.join(_in_words(missing))}; ask an administrator of "
            "the cluster to run this, or --print the manifests for the administrator"
        )


def _in_words(rights: Iterable[Right]) -> list[str]:
    """Return the rights in words: first those with the same verbs and namespace together."""
    verbs: dict[tuple[str, str], list[str]] = {}
    for resource, namespace, verb in rights:
        verbs.setdefault((namespace, resource.kind), []).append(verb)
    kinds: dict[tuple[str, str], list[str]] = {}
    for (namespace, kind), needed in verbs.items():
        kinds.setdefault((namespace, ", ".join(needed)), []).append(kind)
    return [
        f"{needed} {listed(of)}" + (f" in {namespace}" if namespace else "")
        for (namespace, needed), of in kinds.items()
    ]


async def check_deletions(client: ApiReader, found: Iterable[Found]) -> None:
    """Raise `Refused` if this account may not delete these objects."""
    await check_rights(client, [(one.resource, one.namespace, "delete") for one in found])


async def _allowed(client: ApiReader, right: Right, name: str) -> bool:
    resource, namespace, verb = right
    asked = {
        "verb": verb,
        "group": resource.group,
        "resource": resource.plural,
        "namespace": namespace,
        "name": name,
    }
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": asked},
    }
    return bool(read(await client.review(REVIEWS, body=review))["status"].get("allowed"))


async def own_rules(client: ApiReader, namespace: str) -> tuple[list[dict[str, list[str]]], bool]:
    """Return the rules of this account in a namespace, and whether they are all that it has.

    Asking needs no right. Raises `errors.KubeError`.
    """
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": namespace},
    }
    status = read(await client.review(RULES, body=review))["status"]
    return status.get("resourceRules") or [], not status.get("incomplete")


def order(kind: str) -> int:
    """Return a sort key for the order in which objects are applied."""
    return _ORDER.index(kind if kind in _ORDER else _ANY_OTHER)


@dataclass(frozen=True, kw_only=True)
class Applier:
    """Applies objects."""

    client: ApiWriter
    server: Server
    #: The API server checks and answers, but stores nothing.
    dry_run: bool = False
    #: Take over fields that another field manager has set to another value.
    force: bool = False

    async def apply(self, manifest: Manifest) -> ObjectChange:
        """Apply the object and return its change. Raises `Refused` or `errors.KubeError`."""
        one = identity(manifest)
        if self.server.resource(one) is None:
            return ObjectChange(
                identity=one, outcome=Outcome.SKIPPED, note=f"not served by {self.server.version}"
            )
        live = await self.read(one)
        home = NAMESPACES.path(name=one.namespace)
        if live is None and self.dry_run and one.namespace and await self.client.find(home) is None:
            return ObjectChange(identity=one, outcome=Outcome.CREATED, unchecked=True)
        try:
            return objects.changed(one, live, await self._write(one, manifest))
        except errors.AlreadyExists:
            # Somebody created it since we looked. An apply of an existing object never ends this
            # way.
            return objects.changed(one, await self.read(one), await self._write(one, manifest))

    async def read(self, one: ObjectIdentity) -> dict[str, Any] | None:
        """Return the live object, None if there is none. Raises `errors.KubeError`."""
        body = await self.client.find(self._path(one))
        return None if body is None else objects.read(body)

    async def _write(self, one: ObjectIdentity, manifest: Manifest) -> dict[str, Any]:
        query = {"fieldManager": names.PROGRAM, "force": "true" if self.force else "false"}
        query |= {"dryRun": "All"} if self.dry_run else {}
        try:
            body = await self.client.apply_object(self._path(one), query=query, body=manifest)
        except errors.AlreadyExists:
            raise
        except errors.Conflict as error:
            raise Refused(
                f"{one}: {error.message}; undo that change, or run again with "
                "--force-conflicts to overrule it"
            ) from error
        except (errors.Invalid, errors.Forbidden) as error:
            raise Refused(f"{one}: {error}") from error
        return objects.read(body)

    def _path(self, one: ObjectIdentity) -> str:
        return self.server.served[one.api_version, one.kind].path(one.namespace, one.name)
