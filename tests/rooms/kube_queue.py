"""Words for KubeQueue."""

from dataclasses import replace
from random import Random

import msgspec

from mpijob_elastic import names
from mpijob_elastic.capabilities.kube_queue import KubeQueue
from mpijob_elastic.capabilities.kube_queue import wishes as of_kube_queue
from mpijob_elastic.capabilities.kube_queue.facts import KUBEQUEUE_SUSPEND, HeldJob
from mpijob_elastic.decide.actions import Note
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.json_parts import controller
from tests.builders import but, ref
from tests.product.capabilities.kube_queue.units import queued, unit
from tests.product.properties.gated import gated
from tests.room_words import Words, asked_of

NOTE = Note(reason="Reason", message="because")


def kube_queue(view: JobView, random: Random) -> JobView:
    """It is held, or its turn has come, or that is over."""
    phase = random.choice(["", "Enqueued", "Dequeued", "Running", "Preempted", "TimeoutBackoff"])
    known = queued(random.choice([None, unit(phase), unit(phase)]))
    return but(
        gated(view, random, names.GATE_SUSPENDED),
        held_in_queue=random.random() < 0.5,
        kube_queue=known,
    )


def _adopted(view: JobView, done: of_kube_queue.AdoptUnit) -> JobView:
    """It belongs to these pods."""
    known = view.of(KubeQueue)
    if known is None or known.unit is None:
        return view
    owned = msgspec.structs.replace(known.unit, pods=tuple(pod.uid for pod in done.pods))
    return but(view, kube_queue=replace(known, unit=owned))


WORDS = Words(
    asked={"held_in_queue": lambda _, is_held: {HeldJob: HeldJob() if is_held else None}},
    seen={"kube_queue": lambda _, known: {KubeQueue: known}},
    plan={
        of_kube_queue.CreateUnit: lambda asked: (
            f"ask unit of {asked.workers}: {asked_of(asked.pods)}"
        ),
        of_kube_queue.DeleteUnit: lambda _: "withdraw unit",
        of_kube_queue.AdoptUnit: lambda _: "adopt unit",
        of_kube_queue.MarkRunning: lambda _: "mark unit running",
        of_kube_queue.ReleaseJob: lambda _: "release job",
        of_kube_queue.HoldJob: lambda _: "hold job",
    },
    said=(
        (
            of_kube_queue.CreateUnit(name="u", pods=(), workers=2),
            "ask KubeQueue for quota with the QueueUnit u",
        ),
        (of_kube_queue.DeleteUnit(ref=ref("j-mpi-qu")), "delete the QueueUnit j-mpi-qu"),
        (
            of_kube_queue.AdoptUnit(ref=ref("j-mpi-qu"), job=ref("j")),
            "make the job and its pods the owners of the QueueUnit j-mpi-qu",
        ),
        (of_kube_queue.MarkRunning(unit=unit()), "say in the QueueUnit j-mpi-qu that the job runs"),
        (of_kube_queue.ReleaseJob(unit=unit(), note=NOTE), NOTE.message),
        (of_kube_queue.HoldJob(ref=ref("j"), note=NOTE), NOTE.message),
    ),
    patches=(
        (
            of_kube_queue.HoldJob(ref=ref("x"), note=NOTE),
            {},
            {"metadata": {"annotations": {KUBEQUEUE_SUSPEND: "true"}}},
        ),
        (
            of_kube_queue.AdoptUnit(ref=ref("x"), job=ref("j")),
            {},
            {"metadata": {"ownerReferences": [controller(ref("j"))]}},
        ),
    ),
    done={of_kube_queue.AdoptUnit: _adopted},
    refused={
        "AdoptUnit, CreateUnit, DeleteUnit, HoldJob, MarkRunning, ReleaseJob": (
            "tests/lab/capabilities/kube_queue/test_kube_queue_refused.py"
        ),
    },
    annotations={KUBEQUEUE_SUSPEND: ("true", "false")},
    bodies={of_kube_queue.ReleaseJob: {"metadata": {"annotations": {KUBEQUEUE_SUSPEND: None}}}},
    queues=True,
    draw=kube_queue,
)
