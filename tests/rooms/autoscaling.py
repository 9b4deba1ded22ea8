"""Words for autoscaling."""

from dataclasses import replace
from typing import Any

from mpijob_elastic.capabilities.autoscaling import Autoscaling, autoscaler, size
from mpijob_elastic.capabilities.autoscaling.facts import Scaling
from mpijob_elastic.capabilities.autoscaling.growth import NAME, Growth, encoded
from mpijob_elastic.model.job import JobView
from tests.builders import LONG_AGO, but
from tests.room_words import ByType, Words


def grown(worked: int, *, asked: int, at: float = LONG_AGO, **more: Any) -> dict[str, bytes]:
    """What the memory tells of the sizes that worked and were asked for."""
    return {NAME: encoded(Growth(worked=worked, asked=asked, at=at, **more))}


def _with(before: ByType, **facts: Any) -> ByType:
    return {Autoscaling: replace(before.get(Autoscaling) or Autoscaling(), **facts)}


def _resized(view: JobView, action: Any) -> JobView:
    return but(view, replicas=action.after)


WORDS = Words(
    asked={"scaling": lambda _, scaling: {Scaling: scaling}},
    seen={
        "autoscalers": lambda before, found: _with(before, autoscalers=found),
        "others_wait": lambda before, waits: _with(before, others_wait=waits),
        "minor": lambda before, minor: _with(before, minor=minor),
    },
    plan={
        size.RollBack: lambda action: f"return {action.before} to {action.after}",
        size.Fill: lambda action: f"fill {action.before} to {action.after}",
        autoscaler.MakeAutoscaler: lambda _: "make HPA",
        autoscaler.ChangeAutoscaler: lambda _: "change HPA",
        autoscaler.DeleteAutoscaler: lambda _: "delete HPA",
    },
    done={size.RollBack: _resized, size.Fill: _resized},
)
