"""Apply manifests server-side: fields that a manifest does not name keep their owners and values.

So the webhook's caBundle, the Lease's holder and whatever others put on our objects survive every repetition.
https://kubernetes.io/docs/reference/using-api/server-side-apply/
"""

from dataclasses import dataclass
from typing import Any

from mpijob_elastic import names
from mpijob_elastic.install import Refused, objects
from mpijob_elastic.install.objects import Change, Identity, Manifest, Outcome, identity
from mpijob_elastic.install.server import Server
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import NAMESPACES
from mpijob_elastic.kube.writer import ApiWriter

WORKLOADS = ("Deployment",)
HOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_RIGHTS = ("ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding")
_GUARDS = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "FlowSchema", "NetworkPolicy")
_ANY_OTHER = ""
# Rights and guards before the workloads that need them, hooks after the webhook itself.
_ORDER = ("Namespace", "PriorityClass", "ServiceAccount", *_RIGHTS, *_GUARDS, _ANY_OTHER, *WORKLOADS, *HOOKS)


def order(kind: str) -> int:
    """Return a sort key for the order in which objects are applied."""
    return _ORDER.index(kind if kind in _ORDER else _ANY_OTHER)


@dataclass(frozen=True, kw_only=True)
class Applier:
    """Applies objects. dry_run: the API server checks and answers, but stores nothing.

    force: take over fields that another field manager has set to another value.
    """

    client: ApiWriter
    server: Server
    dry_run: bool = False
    force: bool = False

    async def apply(self, manifest: Manifest) -> Change:
        """Apply the object and return its change. Raises `Refused` or `errors.KubeError`."""
        one = identity(manifest)
        if (one.api_version, one.kind) not in self.server.served:
            return Change(identity=one, outcome=Outcome.SKIPPED, note=f"not served by {self.server.version}")
        live = await self.read(one)
        home = NAMESPACES.path(name=one.namespace)
        if live is None and self.dry_run and one.namespace and await self.client.find(home) is None:
            return Change(identity=one, outcome=Outcome.CREATED, note="not checked: its namespace does not exist yet")
        try:
            return objects.changed(one, live, await self._write(one, manifest))
        except errors.AlreadyExists:
            # Somebody created it since we looked. An apply of an existing object never ends this way.
            return objects.changed(one, await self.read(one), await self._write(one, manifest))

    async def read(self, one: Identity) -> dict[str, Any] | None:
        """Return the live object, None if there is none. Raises `errors.KubeError`."""
        body = await self.client.find(self.server.path(one))
        return None if body is None else objects.read(body)

    async def _write(self, one: Identity, manifest: Manifest) -> dict[str, Any]:
        query = {"fieldManager": names.PROGRAM, "force": "true" if self.force else "false"}
        query |= {"dryRun": "All"} if self.dry_run else {}
        try:
            body = await self.client.apply_object(self.server.path(one), query=query, body=manifest)
        except errors.AlreadyExists:
            raise
        except errors.Conflict as error:
            raise Refused(
                f"{one}: {error.message}; undo that change, or run again with --force-conflicts to overrule it"
            ) from error
        except (errors.Invalid, errors.Forbidden) as error:
            raise Refused(f"{one}: {error}") from error
        return objects.read(body)
