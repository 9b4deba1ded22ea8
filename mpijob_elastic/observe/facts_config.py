"""The facts of the ConfigMap and Role that the operator made for a job; long texts stay compressed.

The lines of a host list of 1,000 workers, 140 KiB, differ only in numbers; compressed they take
7 KiB.
"""

import zlib
from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

import msgspec

from mpijob_elastic import names
from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.model import bounds, history
from mpijob_elastic.model.job import ConfigFacts, Role, script_fingerprint
from mpijob_elastic.model.json_parts import Managed, Owned, Wire, owned
from mpijob_elastic.model.memory import expanded

F = TypeVar("F", ConfigFacts, Role)

# Facts up to this size in bytes are kept uncompressed: a job of 100 workers has so much, and most
# jobs are smaller.
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

    Raises msgspec.DecodeError if that is no ConfigMap, or its owner's texts are too long.
    """
    config = _config_maps.decode(raw)
    metadata = bounds.kept(owned(config.metadata), most=bounds.LARGEST_POD)
    if not metadata.job or metadata.name != names.config_map(metadata.job):
        return ConfigFacts(metadata=metadata)  # it is in no view, and its data may be large
    data = _texts.decode(config.data) or {}
    managers = config.metadata.managed_fields or ()
    writers = [
        (one.at, one.manager)
        for one in managers
        if f"f:{names.KEY_DISCOVER_HOSTS}" in one.fields_v1.data
    ]
    written_at, writer = max(writers, default=(0.0, ""))
    kubexec, elastic = data.get(names.KEY_KUBEXEC), data.get(names.KEY_ELASTIC)
    # The memory comes first, because it must survive a restart: `_too_long` goes by this order.
    found = {names.MEMORY: config.metadata.annotations.get(names.MEMORY)}
    found |= {key: data.get(key) for key in (names.KEY_DISCOVER_HOSTS, names.KEY_HOSTFILE)}
    texts = {key: text for key, text in found.items() if text is not None}
    told = config.metadata.annotations.get(names.HISTORY, "").encode()
    told = told if len(told) <= history.LARGEST else b""
    cut = _too_long(metadata.job, texts, beside=len(told))
    texts |= {key: bounds.cut(texts[key]) for key in cut}
    return ConfigFacts(
        metadata=metadata,
        script=texts.get(names.KEY_DISCOVER_HOSTS),
        hostfile=texts.get(names.KEY_HOSTFILE, ""),
        memory=texts.get(names.MEMORY),
        history=told,
        kubexec=kubexec and kubexec[: bounds.LONGEST_KUBEXEC + 1],  # a longer script is not read
        # Of a text of any length only this is kept.
        elastic="" if elastic is None else script_fingerprint(elastic),
        has_hydra=names.KEY_HYDRA_HOSTFILE in data,
        writer=writer[: bounds.LONGEST_MANAGER],
        written_at=written_at,
        cut=cut,
    )


def _too_long(job: str, texts: Mapping[str, str], *, beside: int) -> tuple[str, ...]:
    """Return the keys of the texts that are too long to keep; `beside`: bytes of the history."""
    # A character has at most four bytes.
    if sum(map(len, texts.values())) <= bounds.LARGEST_FACTS // 4:
        return ()
    named = names.worker(job, 0).removesuffix("0")
    plain = {key: _plain(text) if key == names.MEMORY else text for key, text in texts.items()}
    # Beside these texts, the history, kubexec.sh and the first lines of the cut texts are kept.
    most = bounds.most_of_config(max(text.count(named) for text in plain.values()))
    left = most - 2 * bounds.LONGEST_KUBEXEC - beside
    cut = []
    for key, text in texts.items():
        if (size := packed_size(text)) > left:
            cut.append(key)
        else:
            left -= size
    return tuple(cut)


def _plain(text: str) -> str:
    """Return a memory's JSON; "" if the text holds none."""
    try:
        plain = expanded(text)
    except (ValueError, zlib.error):
        return ""
    return plain if isinstance(plain, str) else plain.decode(errors="replace")


def read_role(raw: bytes) -> Role:
    """Return the facts in a Role's JSON.

    Raises msgspec.DecodeError if that is no Role, or its owner's texts are too long.
    """
    role = _roles.decode(raw)
    metadata = bounds.kept(owned(role.metadata), most=bounds.LARGEST_POD)
    if metadata.name != names.launcher(metadata.job):
        return Role(metadata=metadata)  # it is in no view, and its names may be many
    for index, rule in enumerate(role.rules or ()):
        if rule.resources == ["pods/exec"]:
            return Role(
                metadata=metadata,
                exec_rule=index,
                exec_names=_kept(metadata.job, rule.resource_names or ()),
            )
    return Role(metadata=metadata)


def _kept(job: str, pods: Sequence[str]) -> tuple[str, ...]:
    """Return the names in a Role; if they are too many to keep, only those of the job's workers."""
    if sum(map(len, pods)) <= bounds.LARGEST_FACTS // 4:
        return tuple(pods)
    own = {pod: index for pod in pods if (index := names.worker_index(pod, job=job)) is not None}
    if packed_size(*pods) <= bounds.most_of_config(len(own)):
        return tuple(pods)
    return tuple(pod for pod, index in own.items() if index < bounds.MOST_WORKERS)


class Packed(msgspec.Struct, Generic[F], frozen=True, gc=False):
    """Facts as a cache keeps them: compressed if they are long."""

    metadata: Owned
    kind: type[F]
    #: The facts themselves, or compressed.
    kept: F | bytes

    def open(self) -> F:
        """Return the facts as they were read."""
        if isinstance(self.kept, bytes):
            return msgspec.msgpack.decode(zlib.decompress(self.kept), type=self.kind)
        return self.kept


def packed(facts: F) -> Packed[F]:
    """Return the facts as a cache keeps them."""
    plain = msgspec.msgpack.encode(facts)
    kept = facts if len(plain) <= PLAIN else zlib.compress(plain, _LEVEL)
    return Packed(metadata=facts.metadata, kind=type(facts), kept=kept)


def packed_size(*texts: str) -> int:
    """Return the bytes that texts take when they are compressed."""
    return len(zlib.compress("".join(texts).encode(), _LEVEL))
