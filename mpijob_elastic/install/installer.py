"""Install step by step.

- examine the API server, and adapt the manifests (rendered from config/, overlays combined) to it;
- check everything that can fail, before anything is changed;
- apply rights, guards and workloads, wait for the workloads, and compare the version that they run;
- apply the webhook configurations, last so that no missing webhook is called, and wait until they
  are trusted;
- remove objects of other overlays.
"""

from dataclasses import dataclass, field, replace

from mpijob_elastic import __version__, names
from mpijob_elastic.install import (
    Refused,
    optional_parts,
    overlays,
    pod_versions,
    removal,
    rollout,
    server,
)
from mpijob_elastic.install.objects import Manifest, Say, identity, read
from mpijob_elastic.install.optional_parts import TypedChoices
from mpijob_elastic.install.overlays import EVERYBODY, Overlay
from mpijob_elastic.install.server import HOOKS, OLDEST, OPTIONAL_KINDS, WORKLOADS, Applier, Server
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import ApiReader, list_objects
from mpijob_elastic.kube.resources import (
    DEPLOYMENTS,
    MPI_JOBS,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    VALIDATING_WEBHOOKS,
)
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model.phrases import listed

# Server-side apply needs patch, and create for an object that does not exist yet.
APPLY_VERBS = ("get", "create", "patch")


@dataclass(frozen=True, kw_only=True)
class InstallPlan:
    """An installation."""

    overlays: tuple[Overlay, ...] = ()
    #: None for the image that runs.
    image: str | None = None
    #: The namespaces whose jobs are managed; none for all namespaces.
    jobs_namespaces: tuple[str, ...] = ()
    #: The webhook puts the labels of pod templates back.
    template_labels: bool = True
    #: With the overlay user-roles: the group that reads the controllers' Lease; "" for nobody.
    lease_readers: str = EVERYBODY

    def __post_init__(self) -> None:
        """Raise ValueError if the plan makes no sense."""
        if Overlay.SINGLE_NAMESPACE in self.overlays and not self.jobs_namespaces:
            raise ValueError("--overlay single-namespace needs the namespaces whose jobs to manage")
        if never := names.NOT_FOR_JOBS.intersection(self.jobs_namespaces):
            raise ValueError(f"jobs in {min(never)} are never managed; name another namespace")

    def manifests(self) -> list[Manifest]:
        """Return the manifests for the newest API server, in the order of their application."""
        narrow = (Overlay.SINGLE_NAMESPACE,) if self.jobs_namespaces else ()
        manifests = overlays.combined(dict.fromkeys((*self.overlays, *narrow)))
        if self.image:
            manifests = overlays.with_image(manifests, self.image)
        if not self.template_labels:
            manifests = overlays.without_template_labels(manifests)
        if Overlay.USER_ROLES in self.overlays:
            manifests = overlays.with_lease_readers(manifests, self.lease_readers)
        if self.jobs_namespaces:
            manifests = overlays.for_jobs_in(manifests, self.jobs_namespaces)
        return sorted(manifests, key=lambda manifest: server.order(manifest["kind"]))


@dataclass(frozen=True, kw_only=True)
class InstallOptions:
    """The options of an installation."""

    #: As in `Applier`.
    dry_run: bool = False
    #: As in `Applier`.
    force: bool = False
    #: See `removal.check_coverage`.
    uncover: bool = False
    #: What was typed, for a part that was chosen before and is not named now.
    choices: TypedChoices = field(default_factory=TypedChoices)
    #: Wait for readiness.
    wait: bool = True
    #: Seconds to wait at most.
    timeout: float = 120.0


async def with_image(client: ApiReader, plan: InstallPlan) -> InstallPlan:
    """Return the plan with an image: the one that runs, unless the plan names one.

    Raises `Refused` if none runs.
    """
    if plan.image:
        return plan
    found = await list_objects(
        client, DEPLOYMENTS.path(names.NAMESPACE), read, selector=server.SELECTOR
    )
    images = {
        container["image"]
        for one in found
        for container in one["spec"]["template"]["spec"]["containers"]
    }
    if len(images) != 1:
        running = f"the images {listed(sorted(images))} run" if images else "no image runs yet"
        raise Refused(
            f"{running}, so name the one to run: --image REPOSITORY/{names.PROGRAM}:{__version__}"
        )
    return replace(plan, image=images.pop())


_REGISTRATIONS = (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)
_UNREGISTER = (
    f"kubectl delete {','.join(one.kind.lower() for one in _REGISTRATIONS)} "
    f"{names.WEBHOOK_CONFIGURATION}"
)


async def check_address(client: ApiReader) -> None:
    """Raise `Refused` if the API server calls our webhook by a URL, so outside the cluster.

    The API server refuses an address that is both a URL and a Service, but only after Deployments
    were made beside the programs that run. An object that this account may not read is passed over:
    `check` names all missing rights. Raises `errors.KubeError` otherwise.
    """
    for resource in _REGISTRATIONS:
        try:
            raw = await client.find(resource.path(name=names.WEBHOOK_CONFIGURATION))
        except errors.Forbidden:
            continue
        hooks = (read(raw).get("webhooks") or ()) if raw else ()
        urls = [hook["clientConfig"]["url"] for hook in hooks if hook["clientConfig"].get("url")]
        if urls:
            raise Refused(
                f"{resource.kind} {names.WEBHOOK_CONFIGURATION} calls {urls[0]}, so webhook and "
                "controller run outside the cluster, and a cluster has one installation. To keep "
                "those, install nothing. To run them as Deployments instead, end those programs, "
                f"type `{_UNREGISTER}`, and run this command again"
            )


async def install(
    client: ApiWriter, plan: InstallPlan, options: InstallOptions, *, say: Say
) -> str:
    """Install, and tell `say` of each object. Raises `Refused` and `errors.KubeError`.

    Returns which pods run a version that is not known, as a sentence; "" if none does.
    """
    plan = await with_image(client, plan)
    wanted = plan.manifests()
    found = await server.examine(client, [*wanted, *server.every_manifest()])
    stale = await check(client, found, plan, uncover=options.uncover)
    await optional_parts.check_kept(client, stale, plan.overlays, options.choices)
    applier = Applier(client=client, server=found, dry_run=options.dry_run, force=options.force)
    waits = options.wait and not options.dry_run
    manifests = overlays.for_version(wanted, found.minor)
    hooks = [manifest for manifest in manifests if manifest["kind"] in HOOKS]
    rest = [manifest for manifest in manifests if manifest["kind"] not in HOOKS]
    for manifest in rest:
        say(await applier.apply(manifest))
    note = ""
    if waits:
        deployments = [identity(manifest) for manifest in rest if manifest["kind"] in WORKLOADS]
        await rollout.for_deployments(applier, deployments, seconds=options.timeout, say=say)
        note = await pod_versions.compare(client, seconds=options.timeout, say=say)
    for manifest in hooks:
        say(await applier.apply(manifest))
    if waits:
        await rollout.for_bundles(
            applier, [identity(manifest) for manifest in hooks], seconds=options.timeout, say=say
        )
    await removal.delete(client, stale, say, dry_run=options.dry_run)
    return note


async def check(
    client: ApiReader, found: Server, plan: InstallPlan, *, uncover: bool
) -> list[server.Found]:
    """Return our objects that are to go, after a check of everything that can fail.

    Raises as `install` does.
    """
    kept = {identity(manifest) for manifest in plan.manifests()}
    if found.minor < OLDEST:
        raise Refused(
            f"Kubernetes {found.version} is too old: 1.{OLDEST} is the oldest that is supported"
        )
    kinds = {(one.api_version, one.kind) for one in kept if one.kind not in OPTIONAL_KINDS}
    if missing := sorted(f"{kind} ({version})" for version, kind in kinds - found.served.keys()):
        raise Refused(
            f"API server {found.version} does not serve {', '.join(missing)}: "
            "install what provides them (cert-manager, the Prometheus operator) "
            "first, or leave out that --overlay"
        )
    if (MPI_JOBS.api_version, MPI_JOBS.kind) not in await server.resources(
        client, MPI_JOBS.api_version
    ):
        raise Refused(
            f"the API server does not serve {MPI_JOBS.plural}.{MPI_JOBS.group}/{MPI_JOBS.version}: "
            "install mpi-operator v0.2.3 with its CustomResourceDefinition first"
        )
    for namespace in plan.jobs_namespaces:
        if await client.find(NAMESPACES.path(name=namespace)) is None:
            raise Refused(
                f"--jobs-namespace: there is no namespace {namespace}; create it, or name another"
            )
    served = [(found.resource(one), one.namespace) for one in kept]
    rights = [
        (resource, namespace, verb)
        for resource, namespace in served
        if resource
        for verb in APPLY_VERBS
    ]
    await server.check_rights(client, rights)
    others = [manifest for manifest in server.every_manifest() if identity(manifest) not in kept]
    stale = [one for one in await server.find(client, found, others) if one.identity not in kept]
    await server.check_deletions(client, stale)
    await removal.check_coverage(client, stale, plan.jobs_namespaces, uncover=uncover)
    return stale
