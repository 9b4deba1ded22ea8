"""How far an upgrade is, for people and programs."""

from __future__ import annotations

from dataclasses import dataclass

from mpijob_elastic import names
from mpijob_elastic.install import inventory, rollout, server
from mpijob_elastic.install.objects import Identity, identity
from mpijob_elastic.install.server_side_apply import HOOKS, WORKLOADS, Applier
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.writer import ApiWriter
from upgrade import cleanup, crd, jobs, live_crd, operators, store
from upgrade.operator_images import Kind, Operator
from upgrade.refusal import Refused

_MOST_JOBS = 8  # that are named


@dataclass(frozen=True, kw_only=True)
class Standing:
    """What `upgrade status` says.

    phase: "" where there is no upgrade. record: when the state before was written down, "" where it was not; damaged:
    why it cannot be used. scalable: whether the definition has the subresource. objects: how many of ours are there.
    late: what is not ready yet, in words. left: our traces on jobs. elastic: operators that do themselves what we do.
    handed_over: jobs (namespace/name) that such an operator looks after by now.
    """

    phase: str
    record: str
    damaged: str
    scalable: bool
    objects: int
    late: str
    left: list[str]
    elastic: list[Operator]
    handed_over: list[str]

    @property
    def begun(self) -> bool:
        """Whether anything of it is there."""
        return bool(self.phase or self.damaged or self.objects)

    def lines(self) -> list[str]:
        """All of it, for people."""
        recorded = f"the state before it is of {self.record}" if self.record else "no state before it is recorded"
        return [
            f"upgrade: {self.phase or 'none'}; {self.damaged or recorded}",
            f"definition: {'scalable' if self.scalable else 'without the subresource scale'}",
            f"objects of ours: {self.objects}" + (f"; {self.late or 'all ready'}" if self.begun else ""),
            *(f"left on jobs: {one}" for one in self.left),
            *(f"operator: {one} changes the size of jobs itself; {_ROLLBACK}" for one in self.elastic),
            *self._handed_over(),
        ]

    def _handed_over(self) -> list[str]:
        if not self.handed_over:
            return []
        more = len(self.handed_over) - _MOST_JOBS
        named = ", ".join(self.handed_over[:_MOST_JOBS]) + (f" and {more} more" if more > 0 else "")
        return [f"handed over: {named}: another operator looks after them, nothing is written to them any more"]

    @property
    def complete(self) -> bool:
        """Whether all of it is there and works."""
        missing = self.late or self.damaged or self.elastic
        return self.phase == store.Phase.APPLIED and self.scalable and not missing


_ROLLBACK = "`mpijob-elastic upgrade rollback` leaves them to it"


async def look(client: ApiWriter) -> Standing:
    """Look at everything. Raises `Refused` where there is no definition, and `errors.KubeError`."""
    kept, damaged = None, ""
    try:
        kept = await store.read(client)
    except Refused as error:
        damaged = str(error)
    known = inventory.manifests()
    found_server = await server.examine(client, known)
    found = await inventory.find(client, found_server, (inventory.key(identity(one)) for one in known))
    left = (await cleanup.look(client)).traces if kept is None else None
    return Standing(
        phase=kept.phase if kept else "",
        record=kept.record.taken_at if kept else "",
        damaged=damaged,
        scalable=crd.is_scalable(await live_crd.read(client)),
        objects=len(found),
        late=await _late(Applier(client=client, server=found_server), [one.identity for one in found]),
        left=[str(one) for one in left.removals] if left else [],
        elastic=[one for one in await operators.operators_in(client) or () if one.kind is Kind.ELASTIC],
        handed_over=await _handed_over(client),
    )


async def _handed_over(client: ApiWriter) -> list[str]:
    try:
        views = await jobs.views_of_all(client)
    except errors.Forbidden:
        return []
    return [f"{view.namespace}/{view.name}" for view in views if view.foreign or view.handed_over]


async def _late(applier: Applier, found: list[Identity]) -> str:
    there = {(one.kind, one.name) for one in found}
    deployments = [("Deployment", name) for name in (names.CONTROLLER, names.WEBHOOK)]
    missing = [
        f"{kind} {name} is not there"
        for kind, name in (*deployments, *((kind, names.WEBHOOK_CONFIGURATION) for kind in HOOKS))
        if (kind, name) not in there
    ]
    running = [one for one in found if one.kind in WORKLOADS]
    return ", ".join([*missing, *[why for one in running if (why := rollout.rollout(one, await applier.read(one)))]])
