"""The facts of a job's ConfigMap and Role, as the operator made them."""

import msgspec

from mpijob_elastic import names
from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.model.wire import Owned, Wire, owned


class _ConfigMap(Wire, frozen=True):
    metadata: ObjectMeta
    data: msgspec.Raw = msgspec.Raw(b"null")


class _Written(Wire, frozen=True):
    manager: str = ""
    time: str = ""
    fields_v1: msgspec.Raw = msgspec.Raw()


class _Managed(Wire, frozen=True):
    managed_fields: list[_Written] | None = None


class _Origin(Wire, frozen=True):
    metadata: _Managed


class _Rule(Wire, frozen=True):
    resources: list[str] | None = None
    resource_names: list[str] | None = None


class _Role(Wire, frozen=True):
    metadata: ObjectMeta
    rules: list[_Rule] | None = None


class ConfigFacts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A ConfigMap that an MPIJob controls; of any other only the metadata. Absent texts are None.

    forgotten: its script is of this controller, and the memory written with it is gone.
    """

    metadata: Owned
    script: str | None = None
    hostfile: str | None = None
    memory: str | None = None
    kubexec: str | None = None
    forgotten: bool = False


class RoleFacts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A Role; `exec_rule` is the index of its rule on pods/exec, -1 without."""

    metadata: Owned
    exec_rule: int = -1
    exec_names: tuple[str, ...] = ()


_config_maps = msgspec.json.Decoder(_ConfigMap)
_origins = msgspec.json.Decoder(_Origin)
_texts = msgspec.json.Decoder(dict[str, str] | None)
_roles = msgspec.json.Decoder(_Role)


def read_config(raw: bytes) -> ConfigFacts:
    """Return the facts in a ConfigMap's JSON. Raises msgspec.DecodeError if it is none."""
    config = _config_maps.decode(raw)
    metadata = owned(config.metadata)
    if not metadata.job:
        return ConfigFacts(metadata=metadata)  # another program's with the same label; its data may be large
    data = _texts.decode(config.data) or {}
    memory = config.metadata.annotations.get(names.MEMORY)
    return ConfigFacts(
        metadata=metadata,
        script=data.get(names.KEY_DISCOVER_HOSTS),
        hostfile=data.get(names.KEY_HOSTFILE),
        memory=memory,
        kubexec=data.get(names.KEY_KUBEXEC),
        forgotten=memory is None and _is_ours(raw),
    )


def _is_ours(raw: bytes) -> bool:
    """Tell whether this controller wrote the script, and nobody has written another key since.

    https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management
    """
    written = _origins.decode(raw).metadata.managed_fields or ()
    last = max((each.time for each in written if b'"f:data"' in bytes(each.fields_v1)), default="")
    script = f'"f:{names.KEY_DISCOVER_HOSTS}"'.encode()
    return any(
        each.manager == names.PROGRAM and each.time == last and script in bytes(each.fields_v1) for each in written
    )


def read_role(raw: bytes) -> RoleFacts:
    """Return the facts in a Role's JSON. Raises msgspec.DecodeError if it is none."""
    role = _roles.decode(raw)
    for index, rule in enumerate(role.rules or ()):
        if rule.resources == ["pods/exec"]:
            names_ = tuple(rule.resource_names or ())
            return RoleFacts(metadata=owned(role.metadata), exec_rule=index, exec_names=names_)
    return RoleFacts(metadata=owned(role.metadata))
