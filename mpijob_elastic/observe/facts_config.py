"""The facts of a job's ConfigMap and Role, as the operator made them, and how they are kept: long texts compressed.

A host list of 1,000 workers is 140 KiB of text that differs in its numbers alone, and takes 7 KiB.
"""

import zlib
from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec

from mpijob_elastic import names
from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.model import bounds
from mpijob_elastic.model.job import ConfigFacts, Role
from mpijob_elastic.model.memory import expanded
from mpijob_elastic.model.wire import Managed, Wire, owned

F = TypeVar("F", ConfigFacts, Role)

# Bytes that are kept as they are: so much a job of 100 workers has, and most are smaller.
PLAIN = 16 * 2**10
# Three times as fast as the usual level, for a tenth more bytes.
_LEVEL = 1


class _Metadata(ObjectMeta, frozen=True, gc=False):
    managed_fields: tuple[Managed, ...] | None = None


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
    """Return the facts in a ConfigMap's JSON.

    Raises msgspec.DecodeError if it is none, or has a too long owner.
    """
    config = _config_maps.decode(raw)
    metadata = bounds.kept(owned(config.metadata), most=bounds.LARGEST_POD)
    if not metadata.job or metadata.name != names.config_map(metadata.job):
        return ConfigFacts(metadata=metadata)  # no view shows it, and its data may be large
    data = _texts.decode(config.data) or {}
    managers = config.metadata.managed_fields or ()
    writers = [
        (one.at, one.manager)
        for one in managers
        if f"f:{names.KEY_DISCOVER_HOSTS}" in one.fields_v1.data
    ]
    written_at, writer = max(writers, default=(0.0, ""))
    kubexec = data.get(names.KEY_KUBEXEC)
    # In this order: what must survive a restart first.
    found = {names.MEMORY: config.metadata.annotations.get(names.MEMORY)}
    found |= {key: data.get(key) for key in (names.KEY_DISCOVER_HOSTS, names.KEY_HOSTFILE)}
    texts = {key: text for key, text in found.items() if text is not None}
    cut = _too_long(metadata.job, texts)
    texts |= {key: bounds.cut(texts[key]) for key in cut}
    return ConfigFacts(
        metadata=metadata,
        script=texts.get(names.KEY_DISCOVER_HOSTS),
        hostfile=texts.get(names.KEY_HOSTFILE, ""),
        memory=texts.get(names.MEMORY),
        kubexec=kubexec and kubexec[: bounds.LONGEST_KUBEXEC + 1],  # a longer one is not read
        writer=writer[: bounds.LONGEST_MANAGER],
        written_at=written_at,
        cut=cut,
    )


def _too_long(job: str, texts: Mapping[str, str]) -> tuple[str, ...]:
    """Return the keys of the texts that are not kept."""
    if (
        sum(map(len, texts.values())) <= bounds.LARGEST_FACTS // 4
    ):  # a character has at most four bytes
        return ()
    named = names.worker(job, 0).removesuffix("0")
    plain = {key: _plain(text) if key == names.MEMORY else text for key, text in texts.items()}
    # Beside them kubexec.sh is kept, and what is left of those that are cut.
    left = (
        bounds.most_of_config(max(text.count(named) for text in plain.values()))
        - 2 * bounds.LONGEST_KUBEXEC
    )
    cut = []
    for key, text in texts.items():
        if (size := packed_size(text)) > left:
            cut.append(key)
        else:
            left -= size
    return tuple(cut)


def _plain(text: str) -> str:
    """Return a memory's JSON; "" if there is none."""
    try:
        plain = expanded(text)
    except (ValueError, zlib.error):
        return ""
    return plain if isinstance(plain, str) else plain.decode(errors="replace")


def read_role(raw: bytes) -> Role:
    """Return the facts in a Role's JSON.

    Raises msgspec.DecodeError if it is none, or has a too long owner.
    """
    role = _roles.decode(raw)
    metadata = bounds.kept(owned(role.metadata), most=bounds.LARGEST_POD)
    if metadata.name != names.launcher(metadata.job):
        return Role(metadata=metadata)  # no view shows it, and its names may be many
    for index, rule in enumerate(role.rules or ()):
        if rule.resources == ["pods/exec"]:
            return Role(
                metadata=metadata,
                exec_rule=index,
                exec_names=_kept(metadata.job, rule.resource_names or ()),
            )
    return Role(metadata=metadata)


def _kept(job: str, pods: Sequence[str]) -> tuple[str, ...]:
    """Return the names in a Role; where they are too many to keep, those of the job's workers."""
    if sum(map(len, pods)) <= bounds.LARGEST_FACTS // 4:
        return tuple(pods)
    own = {pod: index for pod in pods if (index := names.worker_index(pod, job=job)) is not None}
    if packed_size(*pods) <= bounds.most_of_config(len(own)):
        return tuple(pods)
    return tuple(pod for pod, index in own.items() if index < bounds.MOST_WORKERS)


def packed(facts: F) -> F:
    """Return the facts as they are kept."""
    plain = msgspec.msgpack.encode(facts)
    if len(plain) <= PLAIN:
        return facts
    return type(facts)(metadata=facts.metadata, packed=zlib.compress(plain, _LEVEL))


def unpacked(facts: F) -> F:
    """Return the facts as they were read."""
    return (
        msgspec.msgpack.decode(zlib.decompress(facts.packed), type=type(facts))
        if facts.packed
        else facts
    )


def packed_size(*texts: str) -> int:
    """Return the bytes that texts take when they are packed."""
    return len(zlib.compress("".join(texts).encode(), _LEVEL))
