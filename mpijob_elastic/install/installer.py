"""The whole installation.

- look at the API server, and put the manifests together for it;
- check that all of it can be done, before anything is;
- apply rights, guards and workloads, and wait for the workloads;
- apply the webhook configurations, and wait until they are trusted;
- remove what other overlays had put there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mpijob_elastic import names
from mpijob_elastic.install import (
    customize,
    inventory,
    overlays,
    preflight,
    removal,
    rollout,
    server,
    server_side_apply,
)
from mpijob_elastic.install.changes import Say
from mpijob_elastic.install.objects import Identity, Manifest, identity
from mpijob_elastic.install.overlays import Overlay
from mpijob_elastic.install.server import Server
from mpijob_elastic.install.server_side_apply import HOOKS, Applier
from mpijob_elastic.kube.writer import ApiWriter

# Where a job is no job of a user's.
NOT_FOR_JOBS = frozenset({"kube-system", "kube-public", "kube-node-lease", names.NAMESPACE})


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is to be installed. image: None for the manifests' own; jobs_namespace: None for all namespaces."""

    overlays: tuple[Overlay, ...] = ()
    image: str | None = None
    jobs_namespace: str | None = None

    def __post_init__(self) -> None:
        """Raise ValueError where the plan makes no sense."""
        if (Overlay.SINGLE_NAMESPACE in self.overlays) != (self.jobs_namespace is not None):
            raise ValueError("it says whose jobs to look after, and goes together with --overlay single-namespace")
        if self.jobs_namespace in NOT_FOR_JOBS:
            raise ValueError(f"jobs in {self.jobs_namespace} are never looked after; name another")

    def manifests(self) -> list[Manifest]:
        """The manifests, for the newest API server, in the order in which they are to be applied."""
        changes = [customize.with_image(self.image)] if self.image else []
        changes += [customize.for_jobs_in(self.jobs_namespace)] if self.jobs_namespace else []
        return sorted(customize.tailored(overlays.combined(self.overlays), changes), key=server_side_apply.order)


@dataclass(frozen=True, kw_only=True)
class Options:
    """How: dry_run and force as in `Applier`; wait: for readiness, at most `timeout` seconds each time."""

    dry_run: bool = False
    force: bool = False
    wait: bool = True
    timeout: float = 120.0


async def install(client: ApiWriter, plan: Plan, options: Options, *, say: Say) -> None:
    """Install, telling `say` of each object. Raises `InstallError` and `errors.KubeError`."""
    wanted, known = plan.manifests(), inventory.manifests()
    found = await server.examine(client, [*wanted, *known])
    await preflight.check(client, found, wanted, jobs_namespace=plan.jobs_namespace)
    stale = await _stale(client, found, wanted, known)
    applier = Applier(client=client, server=found, dry_run=options.dry_run, force=options.force)
    waits = options.wait and not options.dry_run
    manifests = customize.tailored(wanted, [customize.for_version(found.minor)])
    hooks = [manifest for manifest in manifests if manifest["kind"] in HOOKS]
    rest = [manifest for manifest in manifests if manifest["kind"] not in HOOKS]
    await _apply(applier, rest, say)
    if waits:
        deployments = _of_kinds(rest, server_side_apply.WORKLOADS)
        await rollout.for_deployments(applier, deployments, seconds=options.timeout, say=say)
    await _apply(applier, hooks, say)
    if waits:
        await rollout.for_bundles(applier, _of_kinds(hooks, HOOKS), seconds=options.timeout, say=say)
    await removal.delete(client, found, stale, say, dry_run=options.dry_run)


async def _apply(applier: Applier, manifests: Iterable[Manifest], say: Say) -> None:
    for manifest in manifests:
        say(await applier.apply(manifest))


async def _stale(
    client: ApiWriter, found: Server, wanted: Iterable[Manifest], known: Iterable[Manifest]
) -> list[inventory.Found]:
    """What other overlays put there, or the same one for another namespace; checked that we may delete it."""
    kept = {identity(manifest) for manifest in wanted}
    keys = {inventory.key(one) for one in map(identity, known) if one not in kept}
    stale = [one for one in await inventory.find(client, found, keys) if one.identity not in kept]
    await preflight.check_rights(client, found, [one.identity for one in stale], verbs=("delete",))
    return stale


def _of_kinds(manifests: Iterable[Manifest], kinds: tuple[str, ...]) -> list[Identity]:
    return [identity(manifest) for manifest in manifests if manifest["kind"] in kinds]
