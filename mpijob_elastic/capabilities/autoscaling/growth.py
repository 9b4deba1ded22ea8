"""What the job's memory holds of its size; anybody who may edit the ConfigMap may write it."""

from typing import Annotated

import msgspec

from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.memory import Count, Time

NAME = "growth"


class Ceiling(msgspec.Struct, frozen=True, kw_only=True):
    """A size beyond which the last growth was not worth it."""

    #: The size that the job keeps.
    size: Count
    #: The size that was tried.
    tried: Count
    #: The samples per second gained by that, as a part of those before; negative for a loss.
    gain: Annotated[float, msgspec.Meta(ge=-1.0, le=1e4)]
    #: When that was found.
    at: Time
    #: The largest size that the job was allowed then.
    most: Count
    #: The launcher of that time, as `pod_fingerprint` has it.
    launcher: Annotated[str, msgspec.Meta(max_length=8)]


class Growth(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The sizes that a job has had."""

    #: The last size that worked.
    worked: Count
    #: The size that is asked for.
    asked: Count
    #: Since when it is asked for.
    at: Time
    #: The size from which `fill` has let the job grow, while nobody knows the worth of that; else
    #: 0.
    grown_from: Count = 0
    #: The last size that somebody else has set before `fill` set one; 0 if `asked` is that.
    typed: Count = 0
    #: The size at which `fill` stops for now; None without one.
    ceiling: Ceiling | None = None


_decoder = msgspec.json.Decoder(Growth)
_encoder = msgspec.json.Encoder(order="sorted")


def remembered(view: JobView) -> Growth | None:
    """Return what the job's memory says; None if it says nothing that can be read."""
    try:
        return _decoder.decode(view.memory.own[NAME]) if NAME in view.memory.own else None
    except (msgspec.DecodeError, RecursionError):
        return None


def encoded(growth: Growth) -> bytes:
    """Return the entry in the memory."""
    return _encoder.encode(growth)
