"""Words for suspension."""

from mpijob_elastic.capabilities.suspension import Suspended
from tests.room_words import Words

WORDS = Words(asked={"suspended_by": lambda _, by: {Suspended: Suspended() if by else None}})
