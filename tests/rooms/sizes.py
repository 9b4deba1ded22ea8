"""Words for sizes."""

from collections.abc import Sequence
from random import Random

from mpijob_elastic.capabilities.sizes import Allowed
from mpijob_elastic.model.job import JobView
from tests.builders import but
from tests.room_words import ByType, Words


def _allowed(_: ByType, sizes: Sequence[int]) -> ByType:
    return {Allowed: Allowed(sizes=sizes, text=",".join(map(str, sizes))) if sizes else None}


def sizes(view: JobView, random: Random) -> JobView:
    """A job that may have some sizes only, and perhaps not the one that it asks for."""
    return but(view, sizes=random.choice([(1, 2, 4), (2, 4), (3,), (4,), range(2, 10_000, 2)]))


WORDS = Words(asked={"sizes": _allowed}, draw=sizes)
