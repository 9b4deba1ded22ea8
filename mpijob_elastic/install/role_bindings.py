"""Bindings of others to our roles for users, which outlive the roles."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import msgspec

from mpijob_elastic.install.server import Found
from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.kube.reader import ApiReader, list_objects
from mpijob_elastic.kube.resources import ROLE_BINDINGS, Resource
from mpijob_elastic.model.phrases import listed

_CLUSTER_ROLE = "ClusterRole"
_KINDS = (
    ROLE_BINDINGS,
    Resource(group=ROLE_BINDINGS.group, plural="clusterrolebindings", kind="ClusterRoleBinding"),
)


class RoleReference(msgspec.Struct, frozen=True):
    """`roleRef` of a binding."""

    kind: str = ""
    name: str = ""


class Binding(msgspec.Struct, frozen=True, rename="camel"):
    """A RoleBinding or a ClusterRoleBinding."""

    metadata: ObjectMeta
    role_ref: RoleReference


@dataclass(frozen=True, kw_only=True)
class LeftBinding:
    """A binding that gives no right once the role has gone."""

    #: The kind, with namespace and name, as `RoleBinding ml/train`.
    binding: str
    #: The name of the ClusterRole.
    role: str


_read = msgspec.json.Decoder(Binding).decode


async def left(client: ApiReader, going: Collection[Found]) -> list[LeftBinding]:
    """Return the bindings to ClusterRoles that are to go, except those that go, too.

    Raises `errors.KubeError`.
    """
    roles = {one.name for one in going if one.resource.kind == _CLUSTER_ROLE}
    if not roles:
        return []
    ours = {one.uid for one in going}
    found = []
    for kind in _KINDS:
        bindings = await list_objects(client, kind.path(), _read)
        others = [one for one in bindings if one.metadata.uid not in ours]
        found += [_left(kind, one) for one in others if _names_one_of(one.role_ref, roles)]
    return found


def _names_one_of(reference: RoleReference, roles: Collection[str]) -> bool:
    return reference.kind == _CLUSTER_ROLE and reference.name in roles


def _left(kind: Resource, one: Binding) -> LeftBinding:
    whole = "/".join(filter(None, (one.metadata.namespace, one.metadata.name)))
    return LeftBinding(binding=f"{kind.kind} {whole}", role=one.role_ref.name)


def lines(found: Iterable[LeftBinding]) -> list[str]:
    """Return a line, for people, for each role whose bindings stay."""
    by_role: dict[str, list[str]] = {}
    for one in found:
        by_role.setdefault(one.role, []).append(one.binding)
    return [
        f"These bindings to the ClusterRole {role} stay, and give no right without it: "
        f"{listed(sorted(bindings))}. With the next role of that name they give its rights again; "
        "delete them if that is not wanted."
        for role, bindings in sorted(by_role.items())
    ]
