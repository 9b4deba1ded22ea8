"""Words for autoscaling."""

from dataclasses import replace
from typing import Any

import msgspec

from mpijob_elastic.capabilities.autoscaling import Autoscaling, growth
from mpijob_elastic.capabilities.autoscaling import actions as of_scaling
from mpijob_elastic.capabilities.autoscaling.facts import Scaling
from mpijob_elastic.model.job import JobView
from tests.builders import LONG_AGO, but
from tests.room_words import ByType, Words


def grown(worked: int, *, asked: int, at: float = LONG_AGO) -> dict[str, bytes]:
    """What the memory tells of the sizes that worked and were asked for."""
    return {growth.NAME: msgspec.json.encode(growth.Growth(worked=worked, asked=asked, at=at), order="sorted")}


def _with(before: ByType, **facts: Any) -> ByType:
    return {Autoscaling: replace(before.get(Autoscaling) or Autoscaling(), **facts)}


def _resized(view: JobView, action: Any) -> JobView:
    return but(view, replicas=action.after)


WORDS = Words(
    asked={"scaling": lambda _, scaling: {Scaling: scaling}},
    seen={
        "autoscalers": lambda before, found: _with(before, autoscalers=found),
        "others_wait": lambda before, waits: _with(before, others_wait=waits),
    },
    plan={
        of_scaling.RollBack: lambda size: f"return {size.before} to {size.after}",
        of_scaling.Fill: lambda size: f"fill {size.before} to {size.after}",
        of_scaling.MakeAutoscaler: lambda _: "make HPA",
        of_scaling.ChangeAutoscaler: lambda _: "change HPA",
        of_scaling.DeleteAutoscaler: lambda _: "delete HPA",
    },
    done={of_scaling.RollBack: _resized, of_scaling.Fill: _resized},
)
