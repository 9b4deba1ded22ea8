"""An upgrade, in an order in which nothing that runs is ever worse off.

- look: the definition, the operators, what would change; the API server checks it all and keeps nothing;
- ask, and write down what stands there now;
- make the definition scalable: that alone changes the behaviour of nothing;
- install, webhook configurations last, and wait;
- run a canary job through it.

Whatever was interrupted is finished by running it again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from mpijob_elastic.install import installer, inventory, server
from mpijob_elastic.install.changes import Say
from mpijob_elastic.install.installer import Plan
from mpijob_elastic.install.server_side_apply import Applier
from mpijob_elastic.kube.writer import ApiWriter
from upgrade import canary, crd, findings, live_crd, operators, record_before, rights, store
from upgrade.canary import Canary

# Whether to go on; what it is about was said before.
Ask = Callable[[], bool]


@dataclass(frozen=True, kw_only=True)
class Options:
    """install: as the installer takes them. structural: see `crd.upgraded`. canary: None for none."""

    install: installer.Options
    structural: bool = False
    canary: Canary | None = None


async def apply(client: ApiWriter, plan: Plan, options: Options, *, ask: Ask, say: Say) -> bool:
    """Upgrade the cluster; whether it was confirmed. Raises `Refused`, `InstallError` and `errors.KubeError`."""
    wanted = partial(crd.upgraded, structural=options.structural)
    await _look(client, plan, options, wanted, say=say)
    if options.install.dry_run:
        return True
    if not ask():
        return False
    await _record(client, plan, say=say)
    say("what changes")
    say(await live_crd.change(client, wanted))
    await live_crd.wait_for_scale(client, seconds=options.install.timeout, say=say)
    await installer.install(client, plan, options.install, say=say)
    if options.canary:
        await canary.run(client, options.canary, say=say)
    await store.set_phase(client, store.Phase.APPLIED)
    return True


async def _look(client: ApiWriter, plan: Plan, options: Options, wanted: live_crd.Wanted, *, say: Say) -> None:
    for finding in findings.operators(await operators.check(client)):
        say(f"operator: {finding.text}")
    say("what would change")
    say(await live_crd.change(client, wanted, dry_run=True))
    await installer.install(client, plan, replace(options.install, dry_run=True), say=say)
    await rights.check(client)


async def _record(client: ApiWriter, plan: Plan, *, say: Say) -> None:
    wanted = plan.manifests()
    found = await server.examine(client, [*wanted, *inventory.manifests()])
    live = await live_crd.read(client)
    say(await record_before.keep(client, Applier(client=client, server=found), wanted, live))
