"""Words for parking."""

from collections.abc import Collection
from dataclasses import replace
from random import Random

from mpijob_elastic import names
from mpijob_elastic.decide.actions import normal
from mpijob_elastic.decide.parking import DeletePlaceholder
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.policy import Policy
from tests.builders import but, ref
from tests.room_words import Words

NOTE = normal("Unparked", "because")


def _parked(policy: Policy, indices: Collection[int]) -> Policy:
    return replace(policy, parked=frozenset(indices) or None)


def parked(view: JobView, random: Random) -> JobView:
    """A job that does without some workers; of those one may be a placeholder, as of others."""
    view = but(view, parked=random.choice([(), (0,), (1,), (0, 2), (1, 9)]))
    index = random.randrange(3)
    held = [worker for worker in view.workers if worker.index == index and random.random() < 0.5]
    gated = tuple(but(worker, gates=(names.GATE_PARKED,), ready_at=None) for worker in held)
    workers = tuple(worker for worker in view.workers if worker not in held)
    return replace(view, workers=workers, placeholders=gated)


def _deleted(view: JobView, action: DeletePlaceholder) -> JobView:
    return replace(
        view, placeholders=tuple(pod for pod in view.placeholders if pod.ref != action.ref)
    )


WORDS = Words(
    policy={"parked": _parked},
    plan={DeletePlaceholder: lambda action: f"delete the placeholder {action.ref.name}"},
    said=((DeletePlaceholder(ref=ref("j-worker-1"), note=NOTE), NOTE.message),),
    queues=True,
    draw=parked,
    done={DeletePlaceholder: _deleted},
)
