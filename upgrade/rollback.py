"""The way back, in an order in which nobody is asked who is gone and nothing is cleaned up under a running controller.

- webhook configurations, then controller and webhook, go or become what they were; their pods end;
- our traces on jobs go (`sweeping`), unless a controller from before the upgrade stays: the jobs run on meanwhile;
- the definition loses what we added;
- everything else goes or becomes what it was; last the record, or the namespace with it.

Whatever was interrupted is finished by running it again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mpijob_elastic import names
from mpijob_elastic.install import inventory, removal, rollout, server
from mpijob_elastic.install import server_side_apply as installing
from mpijob_elastic.install.changes import Change, Outcome, Say
from mpijob_elastic.install.inventory import Found
from mpijob_elastic.install.objects import Identity, Manifest, identity
from mpijob_elastic.install.preflight import check_rights
from mpijob_elastic.install.server_side_apply import HOOKS, WORKLOADS, Applier
from mpijob_elastic.kube.resources import MPI_JOBS, NAMESPACES, PODS
from mpijob_elastic.kube.writer import ApiWriter
from upgrade import canary, cleanup, crd, live_crd, record_before, restore, rights, store, unrecorded
from upgrade.record import Record
from upgrade.refusal import Refused

Ask = Callable[[], bool]


async def rollback(client: ApiWriter, *, ask: Ask, dry_run: bool, timeout: float, say: Say) -> bool:  # noqa: ASYNC109
    """Take the upgrade back; whether it was confirmed. `timeout` in seconds, for the pods and for the namespace each.

    Raises `Refused`, `InstallError` and `errors.KubeError`.
    """
    kept = await store.read(client)
    if kept is None:
        return await unrecorded.clear(client, ask=ask, dry_run=dry_run, timeout=timeout, say=say)
    way = await Rollback.prepare(client, kept.record, dry_run=dry_run, timeout=timeout, say=say)
    await way.announce()
    if dry_run:
        return True
    if not ask():
        return False
    await way.run()
    return True


@dataclass(frozen=True, kw_only=True)
class Rollback:
    """One rollback to what `record` says; found: what of ours is there now."""

    record: Record
    applier: Applier
    found: tuple[Found, ...]
    timeout: float
    say: Say

    @classmethod
    async def prepare(cls, client: ApiWriter, record: Record, *, dry_run: bool, timeout: float, say: Say) -> Rollback:  # noqa: ASYNC109
        """Look at what is there, and check that it can go. Raises as `rollback` does."""
        known = [*inventory.manifests(), *record.objects]
        found_server = await server.examine(client, known)
        keys = (inventory.key(identity(one)) for one in inventory.manifests())
        found = await inventory.find(client, found_server, keys)
        await check_rights(client, found_server, [one.identity for one in found], verbs=("delete",))
        await rights.check(client)
        applier = Applier(client=client, server=found_server, dry_run=dry_run)
        one = cls(record=record, applier=applier, found=tuple(found), timeout=timeout, say=say)
        if one.takes_namespace:
            await _check_no_jobs(client)
        return one

    @property
    def takes_namespace(self) -> bool:
        """Whether our namespace was not there before, so that everything in it goes with it."""
        return self.record.find(_NAMESPACE) is None

    @property
    def keeps_controller(self) -> bool:
        """Whether a controller ran before the upgrade, and runs on after it."""
        return any(
            one["metadata"]["name"] == names.CONTROLLER and one["kind"] in WORKLOADS for one in self.record.objects
        )

    async def announce(self) -> None:
        """Say what would be done."""
        self.say("what would change")
        for one in self._created(_everything):
            self.say(Change(identity=one.identity, outcome=Outcome.DELETED))
        for before in self.record.objects:
            if (change := await restore.restore(self._trial, before)).outcome is not Outcome.UNCHANGED:
                self.say(change)
        self.say(await live_crd.change(self.applier.client, self._former, dry_run=True))
        for note in crd.reverted(await live_crd.read(self.applier.client), self.record.crd).notes:
            self.say(note)
        if not self.keeps_controller:
            left = await cleanup.look(self.applier.client)
            for line in [f"to be removed from {one}" for one in left.traces.removals] + left.lines():
                self.say(line)

    async def run(self) -> None:
        """Do it. Raises as `rollback` does."""
        self.say("what changes")
        client = self.applier.client
        await store.set_phase(client, store.Phase.ROLLING_BACK)
        await canary.remove_all(client)
        await self._take(_runs)
        if not self.keeps_controller:
            await self._until(self._pods)
            await cleanup.sweep(client, say=self.say)
        self.say(await live_crd.change(client, self._former))
        await self._take(_rests)
        if self.takes_namespace:
            await self._until(self._namespace)
            return
        for name in record_before.SECRETS:
            if name not in self.record.secrets:
                await store.delete(client, name)
        await store.delete(client)

    async def _take(self, chosen: Callable[[Identity], bool]) -> None:
        for before in self.record.objects:
            if chosen(identity(before)):
                change = await restore.restore(self.applier, before)
                if change.outcome is not Outcome.UNCHANGED:
                    self.say(change)
        await removal.delete(self.applier.client, self.applier.server, self._created(chosen), self.say)

    def _created(self, chosen: Callable[[Identity], bool]) -> tuple[Found, ...]:
        """What was not there before, in the order in which it can go."""
        new = [one for one in self.found if self.record.find(one.identity) is None and chosen(one.identity)]
        apart = [one for one in new if not (self.takes_namespace and _goes_with_namespace(one.identity))]
        return tuple(sorted(apart, key=lambda one: (_reverse(one.identity), one.identity)))

    async def _until(self, missing: rollout.Missing) -> None:
        if late := await rollout.until(missing, seconds=self.timeout, say=self.say):
            raise Refused(f"after {self.timeout:.0f} s {late}; `kubectl describe` says why. Run the same command again")

    async def _pods(self) -> str:
        path = PODS.path(names.NAMESPACE)
        count = len(await inventory.metadata(self.applier.client, path, selector=inventory.SELECTOR))
        return f"{count} pods in {names.NAMESPACE} are still ending" if count else ""

    async def _namespace(self) -> str:
        return f"namespace {names.NAMESPACE} is still ending" if await store.has_namespace(self.applier.client) else ""

    @property
    def _trial(self) -> Applier:
        return Applier(client=self.applier.client, server=self.applier.server, dry_run=True)

    def _former(self, live: Manifest) -> dict[str, object]:
        return crd.reverted(live, self.record.crd).crd


_NAMESPACE = Identity(api_version="v1", kind=NAMESPACES.kind, namespace="", name=names.NAMESPACE)


async def _check_no_jobs(client: ApiWriter) -> None:
    jobs = await inventory.metadata(client, MPI_JOBS.path(names.NAMESPACE))
    if jobs:
        raise Refused(
            f"namespace {names.NAMESPACE} holds MPIJobs that would go with it: {', '.join(job.name for job in jobs)}. "
            "Delete them first"
        )


def _everything(_: Identity) -> bool:
    return True


def _runs(one: Identity) -> bool:
    return one.kind in (*HOOKS, *WORKLOADS)


def _rests(one: Identity) -> bool:
    return not _runs(one)


def _goes_with_namespace(one: Identity) -> bool:
    return one.namespace == names.NAMESPACE and one.kind not in WORKLOADS


def _reverse(one: Identity) -> tuple[int, ...]:
    return tuple(-part for part in installing.order({"kind": one.kind}))
