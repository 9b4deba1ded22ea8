"""Roll back in an order in which no missing webhook is called, and no controller interferes with the cleanup.

- webhook configurations, then controller and webhook, go or become what they were; their pods end;
- our traces on jobs go (`cleanup`), unless a controller from before the upgrade stays; the jobs run on meanwhile;
- the definition loses what we added;
- everything else goes or becomes what it was; last the record, or the namespace with it.

Run an interrupted rollback again to finish it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from mpijob_elastic import names
from mpijob_elastic.install import inventory, preflight, removal
from mpijob_elastic.install.changes import Ask, Change, Outcome, Say
from mpijob_elastic.install.inventory import Found
from mpijob_elastic.install.objects import Identity, Manifest, identity
from mpijob_elastic.install.server_side_apply import WORKLOADS, Applier
from mpijob_elastic.kube.resources import NAMESPACES
from mpijob_elastic.kube.writer import ApiWriter
from upgrade import apply, canary, cleanup, crd, live_crd, record, restore
from upgrade.record import Record

_NAMESPACE = Identity(api_version="v1", kind=NAMESPACES.kind, namespace="", name=names.NAMESPACE)


async def rollback(client: ApiWriter, *, ask: Ask, dry_run: bool, timeout: float, say: Say) -> bool:  # noqa: ASYNC109
    """Roll the upgrade back; return False if the user declined.

    `timeout` in seconds, for the pods and for the namespace each. Raises `Refused` and `errors.KubeError`.
    """
    kept = await record.read(client)
    if kept is None:
        return await cleanup.without_record(client, ask=ask, dry_run=dry_run, timeout=timeout, say=say)
    prepared = await Rollback.prepare(client, kept.record, timeout=timeout, say=say)
    await prepared.announce()
    if dry_run:
        return True
    if not ask():
        return False
    await prepared.run()
    return True


@dataclass(frozen=True, kw_only=True)
class Rollback:
    """A rollback to `record`; found: our objects that exist now."""

    record: Record
    applier: Applier
    found: tuple[Found, ...]
    timeout: float
    say: Say

    @classmethod
    async def prepare(cls, client: ApiWriter, record: Record, *, timeout: float, say: Say) -> Rollback:  # noqa: ASYNC109
        """Find our objects, and check that they can go. Raises as `rollback` does."""
        server, found = await inventory.look(client, record.objects)
        await preflight.check_deletions(client, server, found)
        removal.check_none_waits(await removal.held(client))
        await apply.check(client)
        applier = Applier(client=client, server=server)
        prepared = cls(record=record, applier=applier, found=tuple(found), timeout=timeout, say=say)
        if prepared.takes_namespace:
            await removal.check_no_jobs(client)
        return prepared

    @property
    def takes_namespace(self) -> bool:
        """True if our namespace did not exist before, so that everything in it goes with it."""
        return self.record.find(_NAMESPACE) is None

    @property
    def keeps_controller(self) -> bool:
        """True if a controller ran before the upgrade, and runs on after the rollback."""
        return any(
            one["metadata"]["name"] == names.CONTROLLER and one["kind"] in WORKLOADS for one in self.record.objects
        )

    async def announce(self) -> None:
        """Say what would be done."""
        client, trial = self.applier.client, replace(self.applier, dry_run=True)
        self.say("what would change")
        await removal.delete(client, trial.server, self._created(lambda _: True), self.say, dry_run=True)
        for before in self.record.objects:
            self._tell(await restore.restore(trial, before))
        self.say(await live_crd.change(client, self._former, dry_run=True))
        if not self.keeps_controller:
            left = await cleanup.look(client)
            for line in [f"to be removed from {trace}" for trace in left.removals] + left.lines():
                self.say(line)

    async def run(self) -> None:
        """Do it. Raises as `rollback` does."""
        client = self.applier.client
        removal.check_none_waits(
            await removal.held(client)
        )  # a job may have been suspended since the question was asked
        self.say("what changes")
        await record.set_phase(client, record.Phase.ROLLING_BACK)
        await canary.remove_all(client)
        await self._take_back(removal.runs)
        if not self.keeps_controller:
            await removal.wait_for_pods(client, seconds=self.timeout, say=self.say)
            await cleanup.sweep(client, say=self.say)
        self.say(await live_crd.change(client, self._former))
        await self._take_back(lambda one: not removal.runs(one))
        if self.takes_namespace:
            await removal.wait_for_namespace(client, seconds=self.timeout, say=self.say)
            return
        for name in record.SECRETS_OF_OURS:
            if name not in self.record.secrets:
                await record.delete(client, name)
        await record.delete(client)

    async def _take_back(self, chosen: Callable[[Identity], bool]) -> None:
        for before in self.record.objects:
            if chosen(identity(before)):
                self._tell(await restore.restore(self.applier, before))
        await removal.delete(self.applier.client, self.applier.server, self._created(chosen), self.say)

    def _created(self, chosen: Callable[[Identity], bool]) -> tuple[Found, ...]:
        """Return the objects that did not exist before, in the order in which they can go."""
        new = [one for one in self.found if self.record.find(one.identity) is None and chosen(one.identity)]
        apart = [one for one in new if not (self.takes_namespace and removal.goes_with_namespace(one.identity))]
        return tuple(sorted(apart, key=removal.order))

    def _tell(self, change: Change) -> None:
        if change.outcome is not Outcome.UNCHANGED:
            self.say(change)

    def _former(self, live: Manifest) -> dict[str, object]:
        return crd.reverted(live, self.record.crd)
