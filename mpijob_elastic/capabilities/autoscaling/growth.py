"""Growth: what is remembered of the sizes of a job with a scale-timeout, or that fills."""

from collections.abc import Collection

import msgspec

from mpijob_elastic.decide.state import JobState, honest
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.memory import Count, Time

NAME = "growth"


class Growth(msgspec.Struct, frozen=True, kw_only=True):
    """The last size that worked, and the size asked for since `at`."""

    worked: Count
    asked: Count
    at: Time


_decoder = msgspec.json.Decoder(Growth)
_encoder = msgspec.json.Encoder(order="sorted")


def remembered(view: JobView) -> Growth | None:
    """Return what the job's memory says; None if nothing, or nothing that can be read."""
    try:
        return _decoder.decode(view.memory.own[NAME]) if NAME in view.memory.own else None
    except (msgspec.DecodeError, RecursionError):
        return None


def entry(state: JobState, published: Collection[str]) -> bytes:
    """Return what to remember once these pods are published."""
    view, old, now = state.view, state.view.memory, state.now
    asked = 0 if state.stopped else view.replicas  # the time that a job is suspended does not count
    before = remembered(view) or Growth(worked=old.scale.after if old.scale else 0, asked=asked, at=now)
    wanted = view.wanted_names
    whole = bool(wanted) and set(wanted) <= set(published)
    worked = view.replicas if whole else min(before.worked, view.replicas)
    believed = before.asked == asked and before.at == honest(before.at, now=now)
    return _encoder.encode(Growth(worked=worked, asked=asked, at=before.at if believed else now))
