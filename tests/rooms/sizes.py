"""Words for sizes."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.policy import Policy
from mpijob_elastic.model.sizes import AllowedSizes
from tests.builders import but
from tests.room_words import Words


def _allowed(policy: Policy, sizes: Sequence[int]) -> Policy:
    text = ",".join(map(str, sizes))
    return replace(policy, sizes=AllowedSizes(sizes=sizes, text=text) if sizes else None)


def sizes(view: JobView, random: Random) -> JobView:
    """A job that may have some sizes only, and perhaps not the one that it asks for."""
    return but(view, sizes=random.choice([(1, 2, 4), (2, 4), (3,), (4,), range(2, 10_000, 2)]))


WORDS = Words(policy={"sizes": _allowed}, draw=sizes)
