"""The memory: the state that must survive a restart, an annotation of the job's ConfigMap.

It is written together with discover_hosts.sh, so the two always agree: a reader who finds a worker
gone from the script also finds since when. Times are seconds since the epoch, by the writer's
clock.
"""

import base64
import hashlib
import zlib
from collections.abc import Mapping
from itertools import islice
from typing import Annotated

import msgspec

from mpijob_elastic.model.bounds import LARGEST_MEMORY, LONGEST_MANAGER, MOST_INT32, MOST_WORKERS

# JSON for people to read, compressed when it is long: all annotations of an object together hold
# 256 KiB (TotalAnnotationSizeLimitB in Kubernetes' apimachinery/pkg/api/validation/objectmeta.go).
# 10,000 leaving workers and 2,000 host names take at most 240 KiB. Marks a compressed value; no
# JSON begins like this.
COMPRESSED = "zlib:"
# Bytes of the longest plain value.
PLAIN = 32 * 1024
# A capability's entry stays undecoded, so a bad one costs nobody else the memory; in number and
# bytes:
MOST_OWN, LARGEST_OWN = 8, 1024

# Anybody who may edit the ConfigMap may write anything here; a value out of these bounds is not
# ours.
Time = Annotated[float, msgspec.Meta(ge=0.0, le=1e11)]
Count = Annotated[int, msgspec.Meta(ge=0, le=MOST_INT32)]
Try = Annotated[int, msgspec.Meta(ge=1, le=10**9)]
Manager = Annotated[str, msgspec.Meta(max_length=LONGEST_MANAGER)]
Number = Annotated[int, msgspec.Meta(ge=0, le=10**8)]


class Left(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A pod that is no longer in discover_hosts.sh, and since when.

    pod: fingerprint of its uid, "" if the pod was gone already. known_at: when the launcher was
    shown the list without it, written down once something else is published; 0 before.
    """

    pod: str
    at: Time
    known_at: Time = 0.0


class Host(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The host name that a worker got last: its number (see names.host) and its pod.

    pod: fingerprint of the pod's uid; "" if any pod may have the name, because its last pod was
    seen to drain. reformed: the other ranks had formed their ring again before that pod, lost with
    its node, left the list.
    """

    pod: str
    incarnation: Number = 0
    reformed: bool = False


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """The last published change of size: workers before and after, and its time."""

    before: Count
    after: Count
    at: Time


class Tries(msgspec.Struct, frozen=True, kw_only=True):
    """A count of tries, the time of the last, and its pod."""

    count: Try
    at: Time
    uid: str


class Mended(msgspec.Struct, frozen=True, kw_only=True):
    """Replacements of a foreign discover_hosts.sh: their count, the last time, and who had written it."""

    count: Try
    at: Time
    writer: Manager


class Memory(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything remembered of a job; mappings are by pod name.

    left: pods that left discover_hosts.sh, kept while the driver may still take a new pod for one
    of them. added_at, removed_at: when hosts were last added to, removed from the script.
    dropped_at: when a name was last removed from the hostfile before the launcher's main container
    had started. replaced: replacements of failed workers. moved: workers moved away from a
    disruption. renamed: host names given up because their rank was lost while the pod ran on.
    launchers: launchers recreated because they cannot see the host list. elders: pods that may be
    the host the driver has known for longest; empty if any may be. script: fingerprint of the
    discover_hosts.sh that this was written with. own: what capabilities remember, as JSON that only
    they read; in the text each stands beside the fields above.
    """

    left: Mapping[str, Left] = msgspec.field(default_factory=dict)
    added_at: Time = 0.0
    removed_at: Time = 0.0
    dropped_at: Time = 0.0
    scale: Scale | None = None
    replaced: Mapping[str, Tries] = msgspec.field(default_factory=dict)
    moved: Mapping[str, Tries] = msgspec.field(default_factory=dict)
    hosts: Mapping[str, Host] = msgspec.field(default_factory=dict)
    renamed: Mapping[str, Tries] = msgspec.field(default_factory=dict)
    launchers: Tries | None = None
    elders: tuple[str, ...] = ()
    mended: Mended | None = None
    script: str = ""
    own: Mapping[str, bytes] = msgspec.field(default_factory=dict)


def pod_fingerprint(uid: str) -> str:
    """Return a short form of a pod's uid; it tells pods of the same name apart."""
    return hashlib.sha256(uid.encode()).hexdigest()[:8]


def pod_key(name: str, fingerprint: str) -> str:
    """Return a key that no two pods share: fingerprints tell only pods of the same name apart."""
    return f"{name}#{fingerprint}"


_decoder = msgspec.json.Decoder(Memory)
_FIELDS = frozenset(Memory.__struct_encode_fields__)
_parts = msgspec.json.Decoder(dict[str, msgspec.Raw])
_encoder = msgspec.json.Encoder(order="sorted")


def parse_memory(text: str | None) -> Memory | None:
    """Return the memory in an annotation's value; None if there is none or it is unreadable."""
    if text is None:
        return None
    try:
        plain = expanded(text)
        memory = _decoder.decode(plain)
    except (msgspec.DecodeError, RecursionError, ValueError, zlib.error):
        return None
    parts = (
        memory.left,
        memory.replaced,
        memory.moved,
        memory.hosts,
        memory.renamed,
        memory.elders,
    )
    if any(len(part) > MOST_WORKERS for part in parts):
        return None
    own = ((name, bytes(raw)) for name, raw in _parts.decode(plain).items() if name not in _FIELDS)
    kept = dict(islice(((name, raw) for name, raw in own if len(raw) <= LARGEST_OWN), MOST_OWN))
    return msgspec.structs.replace(memory, own=kept) if kept else memory


def render_memory(memory: Memory) -> str:
    """Return the annotation's value. The same memory always gives the same text."""
    plain = _encoder.encode(msgspec.structs.replace(memory, own={}))
    if memory.own:
        own = {name: msgspec.Raw(raw) for name, raw in memory.own.items()}
        plain = _encoder.encode({**_parts.decode(plain), **own})
    if len(plain) <= PLAIN:
        return plain.decode()
    return COMPRESSED + base64.b64encode(zlib.compress(plain)).decode()


def expanded(text: str) -> str | bytes:
    """Return the JSON in an annotation's value.

    Raises ValueError or zlib.error if it is not as we write it.
    """
    if not text.startswith(COMPRESSED):
        return text
    stream = zlib.decompressobj()
    plain = stream.decompress(
        base64.b64decode(text.removeprefix(COMPRESSED), validate=True), LARGEST_MEMORY
    )
    if not stream.eof:
        raise ValueError(f"the compressed memory is cut off, or larger than {LARGEST_MEMORY} bytes")
    return plain
