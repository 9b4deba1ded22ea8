"""Words for KubeQueue."""

from mpijob_elastic.capabilities.kube_queue import KubeQueue
from mpijob_elastic.capabilities.kube_queue import actions as of_kube_queue
from mpijob_elastic.capabilities.kube_queue.facts import Held
from tests.room_words import Words, asked_of

WORDS = Words(
    asked={"held_in_queue": lambda _, is_held: {Held: Held() if is_held else None}},
    seen={"kube_queue": lambda _, known: {KubeQueue: known}},
    plan={
        of_kube_queue.CreateUnit: lambda asked: f"ask unit of {asked.workers}: {asked_of(asked.pods)}",
        of_kube_queue.DeleteUnit: lambda _: "withdraw unit",
        of_kube_queue.MarkRunning: lambda _: "mark unit running",
        of_kube_queue.ReleaseJob: lambda _: "release job",
        of_kube_queue.HoldJob: lambda _: "hold job",
    },
)
