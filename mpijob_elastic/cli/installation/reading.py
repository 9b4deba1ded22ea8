"""Read an installation, as far as this user may."""

import asyncio
import base64
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from mpijob_elastic import __version__, names
from mpijob_elastic.cli import rights
from mpijob_elastic.cli.connection import DEFAULT_NAMESPACE
from mpijob_elastic.cli.installation.facts import (
    InstallationFacts,
    NotReadable,
    SeenDeployment,
    SeenWebhook,
)
from mpijob_elastic.cli.jobs import at_work, leader
from mpijob_elastic.cli.rights import UserRight
from mpijob_elastic.install import objects, server, webhook_call
from mpijob_elastic.install.installer import InstallPlan
from mpijob_elastic.install.overlays import LEAVES_LABELS
from mpijob_elastic.install.server import Server
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.lease import LeaseObject, LeaseSpec
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import (
    CLUSTER_ROLES,
    DEPLOYMENTS,
    LEASES,
    MPI_JOBS,
    MUTATING_WEBHOOKS,
    SECRETS,
    Resource,
)
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.observe import registration
from mpijob_elastic.observe.registration import Registration
from upgrade import operators, preflight
from upgrade.findings import PreflightFinding
from upgrade.operators import Operator
from webhook.certificates import pairs

T = TypeVar("T")

_SERVED = f"/apis/{MPI_JOBS.api_version}"
_UNSERVED = "the cluster serves no MPIJobs of v1, so the webhook could not be asked"
# What stands for an API server that does not tell its version.
_UNKNOWN = Server(version="", minor=0, served={})
# The Secrets with the webhook's certificate: its own, and that of cert-manager.
_SECRETS = (names.CERTIFICATE_SECRET, f"{names.WEBHOOK}-tls")
_RELEASE = "meta.helm.sh/release-name"


async def read(client: ApiWriter, namespace: str, *, now: float) -> InstallationFacts:
    """Read everything at time `now`, in seconds since the epoch.

    namespace: that of the user's jobs. Raises `errors.KubeError` if the API server does not answer.
    """
    found = await _readable(server.examine(client, ()), _lacks_path("/version"))
    registered = await registration.read(client)
    home = registration.home(registered)
    controller, webhook_pods, leaf = await asyncio.gather(
        _deployment(client, home, names.CONTROLLER),
        _deployment(client, home, names.WEBHOOK),
        _leaf(client, home),
    )
    lacks_lease = _lacks(LEASES, "get", f"in namespace {home}", names.LEASE)
    lease = await _readable(leader.read_lease(client, home), lacks_lease)
    found_operators = await operators.operators_in(client)
    subresources = await _readable(_subresources(client), _lacks_path(_SERVED))
    plan = _plan(controller, webhook_pods)
    asked = await _webhook(client, registered, _namespaces(plan.jobs_namespaces, namespace), home)
    return InstallationFacts(
        cli=__version__,
        kubernetes=found if isinstance(found, NotReadable) else found.version,
        groups=await _readable(_groups(client), _lacks_path("/apis")),
        subresources=subresources,
        lease=_lease(lease),
        trouble=await _trouble(client, lease, home, now=now),
        is_left=await _has_roles(client),
        controller=controller,
        webhook_pods=webhook_pods,
        webhook=asked if subresources is not None else replace(asked, unasked=_UNSERVED),
        unregistered=_UNREGISTERED if registered is None else None,
        authorities=_authorities(registered),
        leaf=leaf,
        operators=_UNLISTED if found_operators is None else found_operators,
        preflight=await _preflight(
            client,
            _UNKNOWN if isinstance(found, NotReadable) else found,
            plan,
            found_operators,
            now=now,
        ),
        namespace=namespace,
        blocked_commands=await _blocked_commands(client, namespace),
    )


async def _groups(client: ApiReader) -> Mapping[str, str]:
    """Return the preferred version of each API group that is served."""
    found = objects.read(await client.get("/apis"))
    return {one["name"]: one["preferredVersion"]["version"] for one in found.get("groups") or ()}


async def _subresources(client: ApiReader) -> frozenset[str] | None:
    """Return what is served of MPIJobs; None if MPIJobs of v1 are not."""
    raw = await client.find(_SERVED)
    served = objects.read(raw).get("resources") or () if raw else ()
    found = frozenset(one["name"] for one in served)
    return found if MPI_JOBS.plural in found else None


def _lacks_path(path: str) -> NotReadable:
    return NotReadable(verb="get", what=path, where="of the API server")


def _lacks(resource: Resource, verb: str, where: str, name: str = "") -> NotReadable:
    right = UserRight(resource.group, resource.plural, verb)
    return NotReadable(verb=verb, what=f"{right.of} {name}".strip(), where=where)


_UNLISTED = _lacks(DEPLOYMENTS, "list", "in all namespaces")
_UNREGISTERED = _lacks(MUTATING_WEBHOOKS, "get", "in the cluster", names.WEBHOOK_CONFIGURATION)


async def _readable(read_it: Awaitable[T], lacks: NotReadable) -> T | NotReadable:
    """Return what was read, or the right that is missing. Raises `errors.KubeError`."""
    try:
        return await read_it
    except errors.Forbidden:
        return lacks


def _lease(found: LeaseObject | NotReadable) -> LeaseSpec | NotReadable | None:
    if isinstance(found, NotReadable):
        return found
    return found.spec if found.metadata.name else None


async def _trouble(
    client: ApiReader, found: LeaseObject | NotReadable, home: str, *, now: float
) -> str:
    """Return why nobody holds the Lease; "" if somebody does, or if there is none to be read."""
    if isinstance(found, NotReadable) or not found.metadata.name:
        return ""
    return (await at_work.leading(client, found, home, now=now)).trouble


async def _has_roles(client: ApiReader) -> bool:
    """Return True if ClusterRoles of ours are there; False also if this user may not list them."""
    try:
        return bool(await server.metadata(client, CLUSTER_ROLES.path(), server.SELECTOR))
    except errors.Forbidden:
        return False


async def _deployment(
    client: ApiReader, home: str, name: str
) -> SeenDeployment | NotReadable | None:
    lacks = _lacks(DEPLOYMENTS, "get", f"in namespace {home}", name)
    raw = await _readable(client.find(DEPLOYMENTS.path(home, name)), lacks)
    return deployment(objects.read(raw)) if isinstance(raw, bytes) else raw


def deployment(found: Mapping[str, Any]) -> SeenDeployment:
    """Return what matters of a Deployment."""
    [container, *_] = found["spec"]["template"]["spec"]["containers"]
    return SeenDeployment(
        image=container.get("image", ""),
        by=author(found["metadata"]),
        ready=found.get("status", {}).get("availableReplicas", 0),
        wanted=found["spec"].get("replicas", 1),
        namespaces=at_work.namespaces_of(found),
        arguments=tuple(container.get("args") or ()),
    )


def _fields_of_spec(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of the spec that an entry of managedFields names."""
    return (entry.get("fieldsV1") or {}).get("f:spec") or {}


def author(metadata: Mapping[str, Any]) -> str:
    """Return the program that wrote the pods of a Deployment last, in words."""
    entries = [
        one for one in metadata.get("managedFields") or () if "f:template" in _fields_of_spec(one)
    ]
    newest: Mapping[str, Any] = max(entries, key=lambda one: str(one.get("time", "")), default={})
    manager = str(newest.get("manager", "somebody"))
    if manager == names.PROGRAM:
        return f"`{names.INSTALL}`"
    if manager.startswith("helm"):
        release = (metadata.get("annotations") or {}).get(_RELEASE, "")
        return f"Helm (release {release})" if release else "Helm"
    return "kubectl" if manager.startswith("kubectl") else manager


def _namespaces(covered: Sequence[str], namespace: str) -> Sequence[str]:
    """Return the namespaces in which the webhook may be asked: the user's first if it is covered.

    covered: by the installation; none for all.
    """
    if not covered:
        return [namespace, DEFAULT_NAMESPACE]
    return sorted(covered, key=lambda one: one != namespace)


async def _webhook(
    client: ApiWriter, registered: Registration | None, namespaces: Sequence[str], home: str
) -> SeenWebhook:
    """Ask the webhook in the first of these namespaces that is not left out."""
    namespace = await _first_asked(client, namespaces, home)
    left_out = "" if namespace == namespaces[0] else namespaces[0]
    seen = SeenWebhook(
        registered=None if registered is None else bool(registered),
        answers=None,
        namespace=namespace,
        left_out=left_out,
        trouble=await registration.trouble(client, registered),
    )
    if not namespace:
        return seen
    try:
        called = await webhook_call.called(client, namespace, registered=seen.registered)
    except errors.NotFound:
        unasked = f"there is no namespace {namespace} in which the webhook could be asked"
    except errors.ApiError as error:
        unasked = rights.in_words(error)
    else:
        return replace(
            seen,
            answers=called.answers,
            lacks=called.lacks(namespace),
            doubt=called.doubt(namespace),
            trouble="" if called.answers else seen.trouble,
        )
    # The answer in another namespace matters little to a namespace that is left out.
    return replace(seen, unasked="" if left_out else unasked)


async def _first_asked(client: ApiReader, namespaces: Sequence[str], home: str) -> str:
    """Return the first namespace for which the API server asks the webhook; "" if there is none."""
    for namespace in namespaces:
        if not await registration.is_left_out(client, namespace, home):
            return namespace
    return ""


def _authorities(registered: Registration | None) -> Sequence[float]:
    """Return when the CAs end that the API server trusts for the webhook; none if unseen."""
    if registered is None:
        return []
    bundles = [
        hook["clientConfig"].get("caBundle") or "" for hook in registered.get("webhooks") or ()
    ]
    return [
        one.not_valid_after_utc.timestamp()
        for bundle in dict.fromkeys(bundles)
        for one in pairs.parse_bundle(_decoded(bundle))
    ]


def _decoded(text: str) -> bytes:
    """Return what a text in Base64 means; nothing if it is none."""
    try:
        return base64.b64decode(text)
    except ValueError:
        return b""


async def _leaf(client: ApiReader, home: str) -> float | NotReadable | None:
    """Return when the webhook's certificate ends; None if there is none."""
    for name in _SECRETS:
        lacks = _lacks(SECRETS, "get", f"in namespace {home}", name)
        raw = await _readable(client.find(SECRETS.path(home, name)), lacks)
        if isinstance(raw, NotReadable):
            return raw
        data = objects.read(raw).get("data") or {} if raw else {}
        if end := pairs.end_of(_decoded(data.get("tls.crt", ""))):
            return end
    return None


def _plan(
    controller: SeenDeployment | NotReadable | None, webhook: SeenDeployment | NotReadable | None
) -> InstallPlan:
    """Return the options of this installation that matter to preflight, as far as they are seen."""
    covered = controller.namespaces if isinstance(controller, SeenDeployment) else ()
    arguments = webhook.arguments if isinstance(webhook, SeenDeployment) else ()
    return InstallPlan(jobs_namespaces=covered, template_labels=LEAVES_LABELS not in arguments)


async def _preflight(
    client: ApiReader,
    found: Server,
    plan: InstallPlan,
    found_operators: Sequence[Operator] | None,
    *,
    now: float,
) -> Sequence[PreflightFinding] | NotReadable:
    """Return what preflight says of the cluster and the jobs of this installation."""
    try:
        with suppress(errors.NotFound):  # of which preflight says more
            await client.get(MPI_JOBS.path(), query={"limit": "1"})
        report = await preflight.judge(client, found, plan, found_operators, now=now)
        return [*report.findings, await preflight.kueue(client)]
    except errors.Forbidden:
        return _lacks(MPI_JOBS, "list", "in all namespaces")


async def _blocked_commands(
    client: ApiReader, namespace: str
) -> Mapping[str, frozenset[UserRight]] | None:
    """Return the commands that lack rights in the namespace; None if that cannot be told."""
    try:
        rules, is_complete = await server.own_rules(client, namespace)
    except errors.Forbidden:
        return None
    found = rights.blocked_commands(rules)
    return found if is_complete or not found else None
