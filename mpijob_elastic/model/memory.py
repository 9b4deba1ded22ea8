"""What must outlive a restart of ours, written as an annotation of the job's ConfigMap.

It stands beside discover_hosts.sh and changes in the same write, so that the two can never disagree: whoever reads that
a worker is gone from the script also reads since when. Times are seconds since the epoch, by the writer's clock.
As text: see memory_text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Annotated

import msgspec

# Whoever may edit the ConfigMap may write anything here; what is out of these bounds is no memory of ours.
Time = Annotated[float, msgspec.Meta(ge=0.0, le=1e11)]
Count = Annotated[int, msgspec.Meta(ge=0, le=10**9)]
Try = Annotated[int, msgspec.Meta(ge=1, le=10**9)]
Number = Annotated[int, msgspec.Meta(ge=0, le=10**8)]


class Left(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A pod that is no longer in discover_hosts.sh, and since when.

    pod: fingerprint of its uid, "" if the pod was gone already. known_at: when the launcher was shown the list without
    it, written down once something else is published; 0 before.
    """

    pod: str
    at: Time
    known_at: Time = 0.0


class Host(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The host name that was last given to a worker: its number (see names.host), and to which pod.

    pod: fingerprint of the pod's uid; "" where the name is free for any, because the pod before was seen to drain.
    """

    pod: str
    incarnation: Number = 0


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """The last change of size that was published: workers before and after, and when."""

    before: Count
    after: Count
    at: Time


class Growth(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes of a job with a scale-timeout: the last that worked, the one asked for now, and since when."""

    worked: Count
    asked: Count
    at: Time


class Tries(msgspec.Struct, frozen=True, kw_only=True):
    """How often something was tried, when last, and on which incarnation."""

    count: Try
    at: Time
    uid: str


class Memory(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All of it.

    left: pods that left discover_hosts.sh, by pod name, kept while the driver may still take a pod for one of them.
    added_at, removed_at: when hosts were last added to, removed from the script.
    dropped_at: when a name was last removed from the hostfile before the launcher's main container had started.
    scale: the last published change of size.
    replaced: replacements of failed workers, by pod name.
    moved: workers that were moved from where they would have been disrupted, by pod name.
    growth: what the scale-timeout counts from; None where there is no such timeout.
    hosts: host names given to workers, by pod name.
    renamed: host names given up because their rank was lost while the pod ran on, by pod name.
    launchers: launchers re-created because they cannot see the host list.
    elders: pods among which the one is whose host the driver has known for longest; empty where it may be any.
    mended_at: when a discover_hosts.sh that somebody else had written was last replaced.
    script: names the discover_hosts.sh that this was written with.
    """

    left: Mapping[str, Left] = msgspec.field(default_factory=dict)
    added_at: Time = 0.0
    removed_at: Time = 0.0
    dropped_at: Time = 0.0
    scale: Scale | None = None
    replaced: Mapping[str, Tries] = msgspec.field(default_factory=dict)
    moved: Mapping[str, Tries] = msgspec.field(default_factory=dict)
    growth: Growth | None = None
    hosts: Mapping[str, Host] = msgspec.field(default_factory=dict)
    renamed: Mapping[str, Tries] = msgspec.field(default_factory=dict)
    launchers: Tries | None = None
    elders: tuple[str, ...] = ()
    mended_at: Time = 0.0
    script: str = ""


def pod_fingerprint(uid: str) -> str:
    """Return a short form of a pod's uid; it tells pods of the same name apart."""
    return hashlib.sha256(uid.encode()).hexdigest()[:8]


def script_fingerprint(script: str) -> str:
    """Return a short form of discover_hosts.sh for `Memory.script`."""
    return hashlib.sha256(script.encode()).hexdigest()[:12]


def pod_key(name: str, fingerprint: str) -> str:
    """Return a key that no two pods share: fingerprints tell only pods of the same name apart."""
    return f"{name}#{fingerprint}"
