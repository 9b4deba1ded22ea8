"""Objects made what their manifests say, by server-side apply: fields that these do not name stay whose they are.

So the webhook's caBundle, the Lease's holder and whatever others put on our objects outlive every repetition.
https://kubernetes.io/docs/reference/using-api/server-side-apply/
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from mpijob_elastic import names
from mpijob_elastic.install import changes
from mpijob_elastic.install.changes import Change, Outcome
from mpijob_elastic.install.failure import InstallError
from mpijob_elastic.install.objects import Identity, Manifest, identity
from mpijob_elastic.install.server import Server
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import NAMESPACES
from mpijob_elastic.kube.writer import ApiWriter

# Before these nothing else can be made, after these nothing; all other kinds are in between.
FIRST = ("Namespace", "PriorityClass", "ServiceAccount")
RIGHTS = ("ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding")
GUARDS = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "FlowSchema", "NetworkPolicy")
WORKLOADS = ("Deployment",)
HOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


def order(manifest: Manifest) -> tuple[int, int]:
    """A key to sort by: rights and guards before what runs under them, hooks after what answers them."""
    kind = manifest["kind"]
    for stage, kinds in ((0, FIRST), (1, RIGHTS), (2, GUARDS), (4, WORKLOADS), (5, HOOKS)):
        if kind in kinds:
            return stage, kinds.index(kind)
    return 3, 0


@dataclass(frozen=True, kw_only=True)
class Applier:
    """Applies one object after the other. dry_run: the API server checks and answers, but keeps nothing.

    force: take over fields that somebody else has set to another value.
    """

    client: ApiWriter
    server: Server
    dry_run: bool = False
    force: bool = False

    async def apply(self, manifest: Manifest) -> Change:
        """What became of the object. Raises `InstallError` or `errors.KubeError`."""
        one = identity(manifest)
        if not self.server.serves(manifest):
            return Change(identity=one, outcome=Outcome.SKIPPED, note=f"not served by {self.server.version}")
        live = await self.read(one)
        if live is None and self.dry_run and not await self._has_namespace(one):
            return Change(identity=one, outcome=Outcome.CREATED, note="not checked: its namespace is not there yet")
        try:
            return changes.changed(one, live, await self._write(one, manifest))
        except errors.AlreadyExists:
            # Somebody made it since we looked; once it is there, an apply never ends so.
            return changes.changed(one, await self.read(one), await self._write(one, manifest))

    async def read(self, one: Identity) -> dict[str, Any] | None:
        """The live object, None where there is none."""
        try:
            return _decode(await self.client.get(self.server.path(one)))
        except errors.NotFound:
            return None

    async def _write(self, one: Identity, manifest: Manifest) -> dict[str, Any]:
        query = {"fieldManager": names.PROGRAM, "force": "true" if self.force else "false"}
        query |= {"dryRun": "All"} if self.dry_run else {}
        try:
            body = await self.client.apply_object(
                self.server.path(one),
                query=query,
                body=manifest,
            )
        except errors.AlreadyExists:
            raise
        except errors.Conflict as error:
            raise InstallError(
                f"{one}: {error.message}; undo that change, or run again with --force-conflicts to overrule it"
            ) from error
        except (errors.Invalid, errors.Forbidden) as error:
            raise InstallError(f"{one}: {error}") from error
        return _decode(body)

    async def _has_namespace(self, one: Identity) -> bool:
        if not one.namespace:
            return True
        try:
            await self.client.get(NAMESPACES.path(name=one.namespace))
        except errors.NotFound:
            return False
        return True


def _decode(body: bytes) -> dict[str, Any]:
    decoded: dict[str, Any] = msgspec.json.decode(body)
    return decoded
