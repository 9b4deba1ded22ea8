"""Words for slow workers and silence."""

from mpijob_elastic.capabilities.stragglers.facts import ProgressTimeout
from tests.room_words import Words

WORDS = Words(
    asked={
        "progress_timeout": lambda _, seconds: {ProgressTimeout: ProgressTimeout(seconds=seconds)}
    }
)
