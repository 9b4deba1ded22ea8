"""Words for Kueue."""

from mpijob_elastic.capabilities.kueue import Kueue
from mpijob_elastic.capabilities.kueue import actions as of_kueue
from mpijob_elastic.capabilities.kueue.facts import Asked
from tests.room_words import Words, asked_of, short

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
)
