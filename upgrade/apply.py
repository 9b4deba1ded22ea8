"""Upgrade in an order in which no running job is ever worse off.

- look: the definition, the operators, what would change; the API server checks everything and stores nothing;
- ask, and record the state before;
- make the definition scalable: that alone changes no behaviour;
- install, webhook configurations last, and wait;
- run a canary job.

Run an interrupted upgrade again to finish it.
"""

from dataclasses import dataclass, replace

from mpijob_elastic import names
from mpijob_elastic.install import installer, inventory, server
from mpijob_elastic.install.changes import Ask, Say
from mpijob_elastic.install.installer import Plan
from mpijob_elastic.install.preflight import Right, check_rights
from mpijob_elastic.install.server_side_apply import Applier
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, MPI_JOBS, PODS, SECRETS
from mpijob_elastic.kube.writer import ApiWriter
from upgrade import canary, crd, findings, live_crd, operators, record
from upgrade.canary import Canary

# Rights that the installer does not check: for the definition, the record, and our traces on jobs.
RIGHTS: tuple[Right, ...] = tuple(
    (resource, namespace, verb)
    for resource, namespace, verbs in (
        (SECRETS, names.NAMESPACE, ("get", "create", "patch", "delete")),
        (CUSTOM_RESOURCE_DEFINITIONS, "", ("get", "patch")),
        (MPI_JOBS, "", ("list", "create", "patch", "delete")),
        (CONFIG_MAPS, "", ("list", "patch")),
        (PODS, "", ("list", "patch")),
    )
    for verb in verbs
)


@dataclass(frozen=True, kw_only=True)
class Options:
    """install: options of the installer. canary: None for no canary."""

    install: installer.Options
    canary: Canary | None = None


async def apply(client: ApiWriter, plan: Plan, options: Options, *, ask: Ask, say: Say) -> bool:
    """Upgrade the cluster; return False if the user declined. Raises `Refused` and `errors.KubeError`."""
    plan = await installer.with_image(client, plan)
    await _look(client, plan, options, say=say)
    if options.install.dry_run:
        return True
    if not ask():
        return False
    manifests = plan.manifests()
    found = await server.examine(client, [*manifests, *inventory.manifests()])
    live = await live_crd.read(client)
    say(await record.keep(client, Applier(client=client, server=found), manifests, live))
    say("what changes")
    say(await live_crd.change(client, crd.upgraded))
    await live_crd.wait_for_scale(client, seconds=options.install.timeout, say=say)
    await installer.install(client, plan, options.install, say=say)
    if options.canary and plan.image:
        await canary.run(client, options.canary, image=plan.image, say=say)
    await record.set_phase(client, record.Phase.APPLIED)
    return True


async def check(client: ApiReader) -> None:
    """Raise `Refused` if this account lacks a right that an upgrade and its rollback need."""
    await check_rights(client, RIGHTS)


async def _look(client: ApiWriter, plan: Plan, options: Options, *, say: Say) -> None:
    for finding in findings.operators(await operators.check(client)):
        say(f"operator: {finding.text}")
    say("what would change")
    say(await live_crd.change(client, crd.upgraded, dry_run=True))
    await installer.install(client, plan, replace(options.install, dry_run=True), say=say)
    await check(client)
