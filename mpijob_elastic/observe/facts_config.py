"""The facts of a job's ConfigMap and Role, as the operator made them."""

from collections.abc import Iterator

import msgspec

from mpijob_elastic import names
from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.model.job import ConfigFacts, Role
from mpijob_elastic.model.wire import Wire, owned, seconds


class _Fields(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    data: dict[str, msgspec.Raw] = msgspec.field(name="f:data", default_factory=dict)


class _Managed(Wire, frozen=True):
    """https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management."""

    manager: str = ""
    time: str | None = None
    fields_v1: _Fields = _Fields()


class _Metadata(ObjectMeta, frozen=True, gc=False):
    managed_fields: tuple[_Managed, ...] | None = None


class _ConfigMap(Wire, frozen=True):
    metadata: _Metadata
    data: msgspec.Raw = msgspec.Raw(b"null")


class _Rule(Wire, frozen=True):
    resources: list[str] | None = None
    resource_names: list[str] | None = None


class _Role(Wire, frozen=True):
    metadata: ObjectMeta
    rules: list[_Rule] | None = None


_config_maps = msgspec.json.Decoder(_ConfigMap)
_texts = msgspec.json.Decoder(dict[str, str] | None)
_roles = msgspec.json.Decoder(_Role)


def read_config(raw: bytes) -> ConfigFacts:
    """Return the facts in a ConfigMap's JSON. Raises msgspec.DecodeError if it is none."""
    config = _config_maps.decode(raw)
    metadata = owned(config.metadata)
    if not metadata.job:
        return ConfigFacts(metadata=metadata)  # another program's with the same label; its data may be large
    data = _texts.decode(config.data) or {}
    written_at, writer = max(_writers(config.metadata), default=(0.0, ""))
    return ConfigFacts(
        metadata=metadata,
        script=data.get(names.KEY_DISCOVER_HOSTS),
        hostfile=data.get(names.KEY_HOSTFILE, ""),
        memory=config.metadata.annotations.get(names.MEMORY),
        kubexec=data.get(names.KEY_KUBEXEC),
        writer=writer,
        written_at=written_at,
    )


def _writers(metadata: _Metadata) -> Iterator[tuple[float, str]]:
    for entry in metadata.managed_fields or ():
        if f"f:{names.KEY_DISCOVER_HOSTS}" in entry.fields_v1.data:
            yield seconds(entry.time) or 0.0, entry.manager


def read_role(raw: bytes) -> Role:
    """Return the facts in a Role's JSON. Raises msgspec.DecodeError if it is none."""
    role = _roles.decode(raw)
    for index, rule in enumerate(role.rules or ()):
        if rule.resources == ["pods/exec"]:
            names_ = tuple(rule.resource_names or ())
            return Role(metadata=owned(role.metadata), exec_rule=index, exec_names=names_)
    return Role(metadata=owned(role.metadata))
