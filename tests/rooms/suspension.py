"""Words for suspension."""

from dataclasses import replace

from tests.room_words import Words

WORDS = Words(policy={"suspended_by": lambda policy, by: replace(policy, suspend=bool(by))})
