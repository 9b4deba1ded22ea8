"""Words for Kueue."""

from dataclasses import replace

import msgspec

from mpijob_elastic.capabilities.kueue import Kueue
from mpijob_elastic.capabilities.kueue import actions as of_kueue
from mpijob_elastic.capabilities.kueue.facts import Asked
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.json_parts import controller
from tests.builders import but, ref
from tests.room_words import Words, asked_of, short


def _cleared(view: JobView, done: of_kueue.ClearWorkload) -> JobView:
    """The quota is given back, and the Workload waits for it again."""
    known = view.of(Kueue)
    queue = known.queue if known else None
    if queue is None:
        return view
    waits = msgspec.structs.replace(done.workload, reserved=False, admitted=False, evicted=False)
    return but(
        view, queue=replace(queue, workloads={**queue.workloads, waits.metadata.name: waits})
    )


def _adopted(view: JobView, done: of_kueue.AdoptWorkload) -> JobView:
    """It belongs to these pods."""
    known = view.of(Kueue)
    queue = known.queue if known else None
    found = queue.workloads.get(done.ref.name) if queue else None
    if queue is None or found is None:
        return view
    owned = msgspec.structs.replace(found, pods=tuple(pod.uid for pod in done.pods))
    return but(view, queue=replace(queue, workloads={**queue.workloads, done.ref.name: owned}))


WORDS = Words(
    asked={"kueue": lambda _, asked: {Asked: asked}},
    seen={"queue": lambda _, queue: {Kueue: Kueue(queue)}},
    plan={
        of_kueue.CreateWorkload: lambda asked: (
            f"ask {short(asked.name)}: {asked_of(asked.pods)}"
            + (f", priority {asked.priority}" if asked.priority else "")
        ),
        of_kueue.MarkReady: lambda found: f"ready {short(found.workload.metadata.name)}",
        of_kueue.ClearWorkload: lambda found: f"give back {short(found.workload.metadata.name)}",
        of_kueue.FinishWorkload: lambda found: f"finish {short(found.workload.metadata.name)}",
        of_kueue.DeleteWorkload: lambda found: f"withdraw {short(found.ref.name)}",
        of_kueue.AdoptWorkload: lambda found: f"adopt {short(found.ref.name)}",
    },
    patches=(
        (
            of_kueue.AdoptWorkload(ref=ref("x"), job=ref("j")),
            {},
            {"metadata": {"ownerReferences": [controller(ref("j"))]}},
        ),
    ),
    done={of_kueue.ClearWorkload: _cleared, of_kueue.AdoptWorkload: _adopted},
    refused={
        "AdoptWorkload, CreateWorkload, ClearWorkload, DeleteWorkload, FinishWorkload, MarkReady": (
            "tests/peers/capabilities/kueue/test_kueue_refused.py"
        ),
    },
    queues=True,
)
