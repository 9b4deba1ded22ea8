"""Words for gangs."""

from dataclasses import replace
from typing import Any

from mpijob_elastic.capabilities.gangs import Gangs
from mpijob_elastic.capabilities.gangs import wishes as of_gangs
from mpijob_elastic.capabilities.gangs.facts import VOLCANO_POD_GROUPS, Gang, PodGroup
from mpijob_elastic.capabilities.gangs.wishes import LowerPodGroup, MakePodGroup, TunePodGroup
from mpijob_elastic.decide.actions import Note
from mpijob_elastic.model.job import JobView
from tests.builders import but, ref
from tests.room_words import ByType, Words

NOTE = Note(reason="Reason", message="because")


def _with(before: ByType, **facts: Any) -> ByType:
    return {Gangs: replace(before.get(Gangs) or Gangs(), **facts)}


def _group(view: JobView) -> PodGroup:
    group = (view.of(Gangs) or Gangs()).group
    assert group is not None
    return group


def _made(view: JobView, action: MakePodGroup) -> JobView:
    asked = action.gang
    made = PodGroup(
        metadata=ref(action.job.name), min_member=action.min_member, queue=asked.queue or "default"
    )
    return but(view, pod_group=but(made, annotations=asked.annotations))


def _lowered(view: JobView, action: LowerPodGroup) -> JobView:
    return but(view, pod_group=but(_group(view), min_member=action.after))


def _tuned(view: JobView, action: TunePodGroup) -> JobView:
    group = _group(view)
    annotations = {**group.annotations, **action.annotations}
    return but(view, pod_group=but(group, queue=action.queue, annotations=annotations))


WORDS = Words(
    asked={"gang": lambda _, gang: {Gang: gang}},
    seen={
        "pod_group": lambda before, group: _with(before, group=group),
        "serves_gangs": lambda before, serves: _with(before, serves=serves),
        "group_resource": lambda before, resource: _with(before, resource=resource),
    },
    nothing=(Gangs(),),
    plan={
        of_gangs.MakePodGroup: lambda made: f"make gang of {made.min_member}",
        of_gangs.LowerPodGroup: lambda size: f"lower gang {size.before} to {size.after}",
        of_gangs.TunePodGroup: lambda tuned: (
            f"tune gang {' '.join(filter(None, [tuned.queue, *tuned.annotations.values()]))}"
        ),
    },
    patches=(
        (
            LowerPodGroup(resource=VOLCANO_POD_GROUPS, ref=ref("x"), before=5, after=3, note=NOTE),
            {"spec": {"minMember": 5}},
            {"spec": {"minMember": 3}},
        ),
        (
            TunePodGroup(
                resource=VOLCANO_POD_GROUPS,
                ref=ref("x"),
                queue="team",
                annotations={"a": "b"},
                note=NOTE,
            ),
            {"spec": {"minMember": 5}},
            {"spec": {"minMember": 5, "queue": "team"}, "metadata": {"annotations": {"a": "b"}}},
        ),
    ),
    refused={
        "MakePodGroup, LowerPodGroup": "tests/lab/capabilities/gangs/test_gangs_refused.py",
        "TunePodGroup": "tests/peers/capabilities/gangs/test_gangs.py",
    },
    done={MakePodGroup: _made, LowerPodGroup: _lowered, TunePodGroup: _tuned},
)
