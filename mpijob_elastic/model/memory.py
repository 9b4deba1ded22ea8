"""The memory: the state that must survive a restart, in an annotation of the job's ConfigMap.

It is written together with discover_hosts.sh, so the two always agree: a reader who finds that a
worker has left the script also finds when it left. Times are seconds since the epoch, by the
writer's clock.
"""

import base64
import hashlib
import zlib
from collections.abc import Mapping
from itertools import islice
from typing import Annotated

import msgspec

from mpijob_elastic.model.bounds import (
    LARGEST_MEMORY,
    LATEST,
    LONGEST_MANAGER,
    MOST_INT32,
    MOST_WORKERS,
)
from mpijob_elastic.model.goodput import Spent

# The memory is JSON that people can read, and is compressed when it is long: all annotations of an
# object together hold 256 KiB (TotalAnnotationSizeLimitB in Kubernetes'
# apimachinery/pkg/api/validation/objectmeta.go). 10,000 leaving workers and 2,000 host names take
# at most 240 KiB. This prefix marks a compressed value; no JSON begins like this.
COMPRESSED = "zlib:"
# Bytes of the longest plain value.
PLAIN = 32 * 1024
# Entries of capabilities, and bytes of each. An entry stays undecoded here, so that a bad entry
# does not make the rest of the memory unreadable.
MOST_OWN, LARGEST_OWN = 8, 1024

# Anybody who may edit the ConfigMap may write anything here; a value out of these bounds is not
# ours.
Time = Annotated[float, msgspec.Meta(ge=0.0, le=LATEST)]
Count = Annotated[int, msgspec.Meta(ge=0, le=MOST_INT32)]
Try = Annotated[int, msgspec.Meta(ge=1, le=10**9)]
Manager = Annotated[str, msgspec.Meta(max_length=LONGEST_MANAGER)]
Number = Annotated[int, msgspec.Meta(ge=0, le=10**8)]


class Left(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A pod that is no longer in discover_hosts.sh."""

    #: Fingerprint of its uid; "" if the pod was gone already.
    pod: str
    #: When it left the script.
    at: Time
    #: When the launcher was shown the list without it. Written down once something else is
    #: published; 0 until then.
    known_at: Time = 0.0
    #: The number of the list with which it left; 0 if that list has no number.
    list: Count = 0


class Host(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The host name that a worker got last."""

    #: Fingerprint of the pod's uid; "" if any pod may have the name, because the last pod under
    #: this name was seen to drain.
    pod: str
    #: The number in the host name (see names.host).
    incarnation: Number = 0
    #: True if the pod was lost with its node, and the other ranks had formed their ring again
    #: before it left the list.
    reformed: bool = False


class SizeChange(msgspec.Struct, frozen=True, kw_only=True):
    """The last published change of size."""

    #: Workers before the change.
    before: Count
    #: Workers after the change.
    after: Count
    #: Time of the change.
    at: Time


class Tries(msgspec.Struct, frozen=True, kw_only=True):
    """Repeated tries."""

    #: Number of tries.
    count: Try
    #: Time of the last try.
    at: Time
    #: Uid of the pod of the last try.
    uid: str


class Reminded(msgspec.Struct, frozen=True, kw_only=True):
    """The reminders that Horovod's driver got since hosts were last added or removed."""

    #: Number of reminders. A reminder that is part of the change itself does not count.
    count: Count
    #: Time of the last reminder.
    at: Time


class Mended(msgspec.Struct, frozen=True, kw_only=True):
    """Replacements of a foreign discover_hosts.sh."""

    #: Number of replacements.
    count: Try
    #: Time of the last replacement.
    at: Time
    #: The field manager that had written the replaced script.
    writer: Manager


class Memory(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything remembered of a job; mappings are by pod name."""

    #: Pods that left discover_hosts.sh, kept while the driver may still take a new pod for any of
    #: them.
    left: Mapping[str, Left] = msgspec.field(default_factory=dict)
    #: When hosts were last added to the script; 0 if never.
    added_at: Time = 0.0
    #: When hosts were last removed from the script; 0 if never.
    removed_at: Time = 0.0
    #: When a name was last removed from the hostfile before the launcher's main container had
    #: started; 0 if never.
    dropped_at: Time = 0.0
    #: The last published change of size.
    scale: SizeChange | None = None
    #: Replacements of failed workers.
    replaced: Mapping[str, Tries] = msgspec.field(default_factory=dict)
    #: Moves of workers away from a disruption.
    moved: Mapping[str, Tries] = msgspec.field(default_factory=dict)
    #: The host name that each worker got last.
    hosts: Mapping[str, Host] = msgspec.field(default_factory=dict)
    #: Host names given up because their rank was lost while the pod ran on.
    renamed: Mapping[str, Tries] = msgspec.field(default_factory=dict)
    #: Launchers recreated because they could not see the host list.
    launchers: Tries | None = None
    #: Pods that may be the host that the driver has known for longest; empty if any pod may be.
    elders: tuple[str, ...] = ()
    #: Replacements of a foreign discover_hosts.sh.
    mended: Mended | None = None
    #: Reminders of the list; None if there was none since the last change.
    reminded: Reminded | None = None
    #: What the pods that have left the list have spent; None if nobody has counted.
    spent: Spent | None = None
    #: Fingerprint of the discover_hosts.sh together with which this was written.
    script: str = ""
    #: What capabilities remember, as JSON that only they read, by name. In the annotation each
    #: entry stands beside the fields above.
    own: Mapping[str, bytes] = msgspec.field(default_factory=dict)

    @property
    def is_final(self) -> bool:
        """True if it has what a job that is over has spent."""
        return self.spent is not None and self.spent.is_final


def pod_fingerprint(uid: str) -> str:
    """Return a short form of a pod's uid; it tells pods of the same name apart."""
    return hashlib.sha256(uid.encode()).hexdigest()[:8]


def pod_key(name: str, fingerprint: str) -> str:
    """Return a key that no two pods share: a fingerprint only tells pods of the same name apart."""
    return f"{name}#{fingerprint}"


_decoder = msgspec.json.Decoder(Memory)
_FIELDS = frozenset(Memory.__struct_encode_fields__)
_parts = msgspec.json.Decoder(dict[str, msgspec.Raw])
_encoder = msgspec.json.Encoder(order="sorted")


def parse_memory(text: str | None) -> Memory | None:
    """Return the memory in an annotation's value; None if it is absent or unreadable."""
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
