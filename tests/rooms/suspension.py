"""Words for suspension."""

from dataclasses import replace
from random import Random

import msgspec

from mpijob_elastic.model.job import JobView
from tests.builders import but
from tests.room_words import Words


def at_zero(view: JobView, _random: Random) -> JobView:
    """A job that is suspended by its size."""
    facts = msgspec.structs.replace(view.facts, replicas=0)
    return but(view, facts=facts, replicas=0, zero_suspends=True)


WORDS = Words(
    policy={
        "suspended_by": lambda policy, by: replace(policy, suspend=bool(by)),
        "zero_suspends": lambda policy, said: replace(policy, zero_suspends=said),
    },
    draw=at_zero,
)
