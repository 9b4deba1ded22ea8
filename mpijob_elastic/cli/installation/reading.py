"""Read an installation, as far as this user may."""

import asyncio
import base64
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, TypeVar

from mpijob_elastic import __version__, names
from mpijob_elastic.cli import rights
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
from mpijob_elastic.kube.lease import LeaseSpec
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import (
    DEPLOYMENTS,
    LEASES,
    MPI_JOBS,
    MUTATING_WEBHOOKS,
    NAMESPACES,
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

# The Secrets with the webhook's certificate: its own, and that of cert-manager.
_SECRETS = (names.CERTIFICATE_SECRET, f"{names.WEBHOOK}-tls")
_RELEASE = "meta.helm.sh/release-name"


async def read(client: ApiWriter, namespace: str, *, now: float) -> InstallationFacts:
    """Read everything at time `now`, in seconds since the epoch.

    namespace: that of the user's jobs. Raises `errors.KubeError` if the API server does not answer.
    """
    found = await server.examine(client, ())
    groups = await _groups(client)
    registered = await registration.read(client)
    home = registration.home(registered)
    controller, webhook_pods, leaf = await asyncio.gather(
        _deployment(client, home, names.CONTROLLER),
        _deployment(client, home, names.WEBHOOK),
        _leaf(client, home),
    )
    lease, working = await _lease(client, home), await at_work.check(client, now=now)
    asked = _asked_namespace(controller, namespace)
    return InstallationFacts(
        cli=__version__,
        kubernetes=found.version,
        groups=groups,
        subresources=await _subresources(client),
        lease=lease,
        trouble=working.trouble if working.installed else "",
        controller=controller,
        webhook_pods=webhook_pods,
        webhook=await _webhook(client, registered, asked),
        unregistered=_UNREGISTERED if registered is None else None,
        authorities=_authorities(registered),
        leaf=leaf,
        operators=await _operators(client),
        preflight=await _preflight(client, found, _plan(controller, webhook_pods), now=now),
        namespace=namespace,
        blocked=await _blocked(client, namespace),
    )


async def _groups(client: ApiReader) -> Mapping[str, str]:
    """Return the preferred version of each API group that is served; anybody may ask that."""
    found = objects.read(await client.get("/apis"))
    return {one["name"]: one["preferredVersion"]["version"] for one in found.get("groups") or ()}


async def _subresources(client: ApiReader) -> frozenset[str] | None:
    """Return what is served of MPIJobs; None if MPIJobs of v1 are not."""
    raw = await client.find(f"/apis/{MPI_JOBS.api_version}")
    served = objects.read(raw).get("resources") or () if raw else ()
    found = frozenset(one["name"] for one in served)
    return found if MPI_JOBS.plural in found else None


def _lacks(resource: Resource, verb: str, where: str, name: str = "") -> NotReadable:
    right = UserRight(resource.group, resource.plural, verb)
    return NotReadable(verb=verb, what=f"{right.of} {name}".strip(), where=where)


_UNREGISTERED = _lacks(MUTATING_WEBHOOKS, "get", "in the cluster", names.WEBHOOK_CONFIGURATION)


async def _readable(read_it: Awaitable[T], lacks: NotReadable) -> T | NotReadable:
    """Return what was read, or the right that is missing. Raises `errors.KubeError`."""
    try:
        return await read_it
    except errors.Forbidden:
        return lacks


async def _lease(client: ApiReader, home: str) -> LeaseSpec | NotReadable | None:
    found = await leader.lease(client, home)
    if found is None:
        return _lacks(LEASES, "get", f"in namespace {home}", names.LEASE)
    return found.spec if found.metadata.name else None


async def _deployment(
    client: ApiReader, home: str, name: str
) -> SeenDeployment | NotReadable | None:
    lacks = _lacks(DEPLOYMENTS, "get", f"in namespace {home}", name)
    raw = await _readable(client.find(DEPLOYMENTS.path(home, name)), lacks)
    return seen(objects.read(raw)) if isinstance(raw, bytes) else raw


def seen(found: Mapping[str, Any]) -> SeenDeployment:
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


def author(metadata: Mapping[str, Any]) -> str:
    """Return the program that wrote the pods of a Deployment last, in words."""
    entries = [
        one
        for one in metadata.get("managedFields") or ()
        if "f:template" in (one.get("fieldsV1") or {}).get("f:spec", {})
    ]
    newest: Mapping[str, Any] = max(entries, key=lambda one: str(one.get("time", "")), default={})
    manager = str(newest.get("manager", "somebody"))
    if manager == names.PROGRAM:
        return f"`{names.INSTALL}`"
    if manager.startswith("helm"):
        release = (metadata.get("annotations") or {}).get(_RELEASE, "")
        return f"Helm (release {release})" if release else "Helm"
    return "kubectl" if manager.startswith("kubectl") else manager


def _asked_namespace(controller: SeenDeployment | NotReadable | None, namespace: str) -> str:
    """Return a namespace that the installation covers: the user's if it is one."""
    covered = controller.namespaces if isinstance(controller, SeenDeployment) else ()
    return namespace if not covered or namespace in covered else covered[0]


async def _webhook(
    client: ApiWriter, registered: Registration | None, namespace: str
) -> SeenWebhook:
    answers, unasked = None, ""
    try:
        answers = await webhook_call.is_answered(client, namespace)
    except errors.NotFound:
        unasked = f"there is no namespace {namespace} in which the webhook could be asked"
    except errors.ApiError as error:
        unasked = rights.in_words(error)
    trouble = "" if answers else await registration.trouble(client, registered)
    if answers is False and not trouble and await _is_left_out(client, namespace):
        trouble = f"namespace {namespace} is left out by its label {names.NAMESPACE_OPT_OUT}"
    known = None if registered is None else bool(registered)
    return SeenWebhook(
        registered=known,
        answers=answers,
        namespace=namespace,
        trouble=trouble,
        unasked=unasked,
    )


async def _is_left_out(client: ApiReader, namespace: str) -> bool:
    try:
        raw = await client.find(NAMESPACES.path(name=namespace))
    except errors.Forbidden:
        return False
    labels = objects.read(raw)["metadata"].get("labels", {}) if raw else {}
    return bool(labels.get(names.NAMESPACE_OPT_OUT) == "disabled")


def _authorities(registered: Registration | None) -> Sequence[float]:
    """Return when the CAs end that the API server trusts for the webhook; none if unseen."""
    if registered is None:
        return []
    bundles = [
        hook["clientConfig"].get("caBundle") or "" for hook in registered.get("webhooks", ())
    ]
    return [
        one.not_valid_after_utc.timestamp()
        for bundle in dict.fromkeys(bundles)
        for one in pairs.parse_bundle(base64.b64decode(bundle))
    ]


async def _leaf(client: ApiReader, home: str) -> float | NotReadable | None:
    """Return when the webhook's certificate ends; None if there is none."""
    for name in _SECRETS:
        lacks = _lacks(SECRETS, "get", f"in namespace {home}", name)
        raw = await _readable(client.find(SECRETS.path(home, name)), lacks)
        if isinstance(raw, NotReadable):
            return raw
        data = objects.read(raw).get("data") or {} if raw else {}
        if end := pairs.end_of(base64.b64decode(data.get("tls.crt", ""))):
            return end
    return None


async def _operators(client: ApiReader) -> Sequence[Operator] | NotReadable:
    found = await operators.operators_in(client)
    return _lacks(DEPLOYMENTS, "list", "in all namespaces") if found is None else found


def _plan(
    controller: SeenDeployment | NotReadable | None, webhook: SeenDeployment | NotReadable | None
) -> InstallPlan:
    """Return the options of this installation that matter to preflight, as far as they are seen."""
    covered = controller.namespaces if isinstance(controller, SeenDeployment) else ()
    arguments = webhook.arguments if isinstance(webhook, SeenDeployment) else ()
    return InstallPlan(jobs_namespaces=covered, template_labels=LEAVES_LABELS not in arguments)


async def _preflight(
    client: ApiReader, found: Server, plan: InstallPlan, *, now: float
) -> Sequence[PreflightFinding] | NotReadable:
    """Return what preflight says of the cluster and the jobs of this installation."""
    lacks = _lacks(MPI_JOBS, "list", "in all namespaces")
    try:
        await client.get(MPI_JOBS.path(), query={"limit": "1"})
        report = await preflight.judge(client, found, plan, now=now)
        return [*report.findings, await preflight.kueue(client)]
    except errors.Forbidden:
        return lacks
    except errors.NotFound:
        return []


async def _blocked(client: ApiReader, namespace: str) -> Mapping[str, frozenset[UserRight]] | None:
    """Return the commands that lack rights in the namespace; None if that cannot be told."""
    rules, is_complete = await server.own_rules(client, namespace)
    found = rights.blocked(rules)
    return found if is_complete or not found else None
