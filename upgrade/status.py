"""Report the progress of an upgrade, for people and programs."""

from dataclasses import dataclass

from mpijob_elastic import names
from mpijob_elastic.install import inventory, rollout
from mpijob_elastic.install.objects import Identity
from mpijob_elastic.install.refusal import Refused
from mpijob_elastic.install.server_side_apply import HOOKS, WORKLOADS, Applier
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.writer import ApiWriter
from upgrade import cleanup, crd, jobs, live_crd, operators, record
from upgrade.operators import Kind, Operator

_MOST_JOBS = 8  # that are named


@dataclass(frozen=True, kw_only=True)
class Status:
    """The output of `upgrade status`.

    phase: "" without an upgrade. recorded_at: "" without a usable record. damaged: why the record cannot be used.
    scalable: True if the definition has the scale subresource. objects: the number of our objects. late: what is not
    ready yet, in words. left: our traces on jobs. elastic: operators that resize jobs themselves. handed_over: jobs
    (namespace/name) that another operator manages.
    """

    phase: str
    recorded_at: str
    damaged: str
    scalable: bool
    objects: int
    late: str
    left: list[str]
    elastic: list[Operator]
    handed_over: list[str]

    @property
    def begun(self) -> bool:
        """True if any part of an upgrade is there."""
        return bool(self.phase or self.damaged or self.objects)

    @property
    def complete(self) -> bool:
        """True if all parts of an upgrade are there and work."""
        missing = self.late or self.damaged or self.elastic
        return self.phase == record.Phase.APPLIED and self.scalable and not missing

    def lines(self) -> list[str]:
        """Return the status for people."""
        more = len(self.handed_over) - _MOST_JOBS
        named = ", ".join(self.handed_over[:_MOST_JOBS]) + (f" and {more} more" if more > 0 else "")
        recorded = f"state before recorded {self.recorded_at}" if self.recorded_at else "no state before recorded"
        lines = [
            f"upgrade: {self.phase or 'none'}; {self.damaged or recorded}",
            f"definition: {'scalable' if self.scalable else 'without the scale subresource'}",
            f"objects of ours: {self.objects}" + (f"; {self.late or 'all ready'}" if self.begun else ""),
            *(f"left on jobs: {trace}" for trace in self.left),
            *(
                f"operator: {one} changes the size of jobs itself; `mpijob-elastic upgrade rollback` leaves them to it"
                for one in self.elastic
            ),
        ]
        if named:
            lines.append(f"handed over: {named}: another operator manages them, and we no longer write to them")
        return lines


async def look(client: ApiWriter) -> Status:
    """Look at everything. Raises `Refused` if there is no definition, and `errors.KubeError`."""
    kept, damaged = None, ""
    try:
        kept = await record.read(client)
    except Refused as error:
        damaged = str(error)
    server, found = await inventory.look(client)
    left = (await cleanup.look(client)).removals if kept is None else ()
    return Status(
        phase=kept.phase if kept else "",
        recorded_at=kept.record.taken_at if kept else "",
        damaged=damaged,
        scalable=crd.is_scalable(await live_crd.read(client)),
        objects=len(found),
        late=await _late(Applier(client=client, server=server), [one.identity for one in found]),
        left=[str(trace) for trace in left],
        elastic=[one for one in await operators.operators_in(client) or () if one.kind is Kind.ELASTIC],
        handed_over=await _handed_over(client),
    )


async def _handed_over(client: ApiReader) -> list[str]:
    try:
        views = await jobs.views_of_all(client)
    except errors.Forbidden:
        return []
    return [f"{view.namespace}/{view.name}" for view in views if view.foreign or view.handed_over]


async def _late(applier: Applier, found: list[Identity]) -> str:
    there = {(one.kind, one.name) for one in found}
    deployments = [("Deployment", name) for name in (names.CONTROLLER, names.WEBHOOK)]
    hooks = [(kind, names.WEBHOOK_CONFIGURATION) for kind in HOOKS]
    late = [f"{kind} {name} does not exist" for kind, name in (*deployments, *hooks) if (kind, name) not in there]
    running = [one for one in found if one.kind in WORKLOADS]
    return ", ".join([*late, *[why for one in running if (why := rollout.rollout(one, await applier.read(one)))]])
